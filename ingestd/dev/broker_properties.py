"""The properties of a development broker: defaults, listeners, and membership in a cluster."""

import socket
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field

CLIENTS = "PLAINTEXT"
"""The listener that every broker has, for clients without authentication."""
_CONTROLLER = "CONTROLLER"
_DEFAULTS: Mapping[str, object] = {
    "process.roles": "broker,controller",
    "controller.listener.names": _CONTROLLER,
    "inter.broker.listener.name": CLIENTS,
    "auto.create.topics.enable": "false",
    "num.partitions": 4,
    "offsets.topic.replication.factor": 1,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "transaction.state.log.num.partitions": 1,
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
    "group.initial.rebalance.delay.ms": 0,
    "num.network.threads": 2,
    "num.io.threads": 2,
    "message.max.bytes": 64 << 20,
    "log.retention.ms": -1,
    "log.message.timestamp.after.max.ms": 2**63 - 1,
    "log.cleaner.dedupe.buffer.size": 4 << 20,
    "log.cleaner.io.buffer.size": 128 << 10,
    "log.cleaner.backoff.ms": 200,
    "broker.heartbeat.interval.ms": 500,
    "broker.session.timeout.ms": 3000,
    "metadata.max.idle.interval.ms": 0,
}


@dataclass(frozen=True, slots=True)
class Listener:
    """An additional listener of a broker.

    `protocol` is a security protocol of Kafka, such as `SASL_SSL`. `advertised` is the HOST:PORT
    that the broker reports to clients, such as that of a proxy; by default the listener's own.
    """

    protocol: str = "PLAINTEXT"
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)  # may hold secrets
    advertised: str | None = None


@dataclass(frozen=True, slots=True)
class Member:
    """The membership of a broker in a cluster: its node id, its ports and all controllers.

    `ports` are those of the broker for clients and controllers, `controllers` the controller ports
    of all brokers by node id.
    """

    cluster_id: str
    number: int
    ports: tuple[int, int]
    controllers: Mapping[int, int]


def broker_properties(
    number: int,
    ports: Mapping[str, int],
    controllers: Mapping[int, int],
    listeners: Mapping[str, Listener],
) -> dict[str, object]:
    """Return the properties of a broker on 127.0.0.1; `ports` are those of `port_names`.

    `controllers` are the ports of all controllers of the cluster by node id.
    """
    advertised = {CLIENTS: None, **{name: one.advertised for name, one in listeners.items()}}
    protocols = {CLIENTS: "PLAINTEXT", _CONTROLLER: "PLAINTEXT"}
    protocols |= {name: one.protocol for name, one in listeners.items()}
    own = {name: f"127.0.0.1:{ports[name]}" for name in (CLIENTS, *listeners, _CONTROLLER)}
    found = {name: told or own[name] for name, told in advertised.items()}
    return {
        **_DEFAULTS,
        "node.id": number,
        "listeners": _addresses(own),
        "advertised.listeners": _addresses(found),
        "listener.security.protocol.map": ",".join(f"{a}:{b}" for a, b in protocols.items()),
        "controller.quorum.voters": ",".join(f"{n}@127.0.0.1:{p}" for n, p in controllers.items()),
        **{
            f"listener.name.{name.lower()}.{key}": value
            for name, one in listeners.items()
            for key, value in one.settings.items()
        },
    }


def choose_ports(listeners: Mapping[str, Listener], member: Member | None) -> dict[str, int]:
    """Return a port for each listener and the controller: that of the member, else a free one."""
    names = (CLIENTS, _CONTROLLER, *listeners)
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    if member is not None:
        ports[CLIENTS], ports[_CONTROLLER] = member.ports
    return ports


def controllers_of(ports: Mapping[str, int], member: Member | None) -> Mapping[int, int]:
    """Return controller ports by node id; a broker without a cluster is the only controller."""
    return {1: ports[_CONTROLLER]} if member is None else member.controllers


def free_ports(count: int) -> list[int]:
    """Return `count` different free ports of 127.0.0.1."""
    with ExitStack() as open_ones:
        probes = [open_ones.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


def _addresses(by_name: Mapping[str, str]) -> str:
    return ",".join(f"{name}://{address}" for name, address in by_name.items())
