"""What a development broker is told: its defaults, its listeners, its place among others."""

import socket
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field

CLIENTS = "PLAINTEXT"
"""The listener that every broker has, for clients that need not say who they are."""
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
}


@dataclass(frozen=True, slots=True)
class Listener:
    """One more address of a broker: its protocol, its own properties, and where clients find it.

    `protocol` is one of Kafka's, such as `SASL_SSL`. `advertised` is the HOST:PORT that the broker
    tells its clients, for what stands between; without it the listener's own.
    """

    protocol: str = "PLAINTEXT"
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)  # may hold secrets
    advertised: str | None = None


@dataclass(frozen=True, slots=True)
class Member:
    """A broker's place in a cluster: its number, the ports it has, the controllers of all.

    `ports` are the ones for clients and for controllers, `controllers` the latter by number.
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

    `controllers` are the ports of all controllers of the cluster by the numbers of their brokers.
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
    """Return a port for each listener and the controller: those of the member, else free ones."""
    names = (CLIENTS, _CONTROLLER, *listeners)
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    if member is not None:
        ports[CLIENTS], ports[_CONTROLLER] = member.ports
    return ports


def controllers_of(ports: Mapping[str, int], member: Member | None) -> Mapping[int, int]:
    """Return ports of all controllers by number: a broker without a cluster is its own."""
    return {1: ports[_CONTROLLER]} if member is None else member.controllers


def free_ports(count: int) -> list[int]:
    """So many different ports of 127.0.0.1 that nobody listens on now."""
    with ExitStack() as open_ones:
        probes = [open_ones.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


def _addresses(by_name: Mapping[str, str]) -> str:
    return ",".join(f"{name}://{address}" for name, address in by_name.items())
