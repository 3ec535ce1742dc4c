"""A Kafka broker for demos and tests: one local process that listens on free loopback ports.

    with DevBroker() as broker:
        broker.create_topic("orders", partitions=4)
        ...  # clients connect to broker.bootstrap

The broker stops when the process that started it ends, even by a kill, and its files are removed.
"""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ingestd.dev.jars import cache_folder, fetch, java_command, read_pins
from ingestd.errors import IngestdError

_PINS = Path(__file__).with_name("kafka_jars.txt")
_START_SECONDS = 60.0
_MEMBER_START_SECONDS = 240.0
"""The limit for a broker of a cluster, whose brokers start concurrently and wait for each other."""
_STOP_SECONDS = 30.0
_LOG_LINES = 20
_PORT_TRIES = 5
_LOG_ERRORS = 3
"""The level of librdkafka's own lines on standard error."""
_FLAGS = (
    "-Xms64m",
    "-Xmx512m",
    "-Xss512k",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Xshare:auto",
    "-Djava.awt.headless=true",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
)
# Runs the broker. When the owner ends, the pipe on standard input closes; the script then stops the
# broker and removes the temporary folder.
_GUARD = """
scratch=$1; shift
exec 3<&0
"$@" </dev/null 3<&- & broker=$!
{
  read -r _ <&3
  kill -KILL $broker
  while kill -0 $broker; do sleep 0.02; done
  rm -rf "$scratch"
} >/dev/null 2>&1 &
exec 3<&-
wait $broker
"""
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


class BrokerError(IngestdError):
    """The development broker cannot be used.

    If it failed to start, the message ends with the last lines of its log.
    """


@dataclass(frozen=True, slots=True)
class Listener:
    """An additional listener of a broker.

    `protocol` is a security protocol of Kafka, such as `SASL_SSL`. `advertised` is the HOST:PORT
    that the broker reports to clients, such as the address of a proxy; None is the listener's own
    address. `settings` are properties of the listener without their prefix.
    """

    protocol: str = "PLAINTEXT"
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)  # may hold secrets
    advertised: str | None = None


@dataclass(frozen=True, slots=True)
class Member:
    """The place of a development broker in a cluster of several brokers.

    `number` is its node id, `ports` are its own ports for clients and for controllers, and
    `controllers` are the controller ports of all brokers by node id.
    """

    cluster_id: str
    number: int
    ports: tuple[int, int]
    controllers: Mapping[int, int]


class DevBroker:
    """A KRaft broker and controller in one process, started by `start` or by a `with` block.

    `settings` are broker properties that override the defaults. `log` is the file of the broker's
    log (default: a temporary file, removed with the broker's data). `listeners` are additional
    listeners by name. `member` is the broker's membership in a cluster, whose brokers must start
    together; None is a cluster of this broker alone. `classes` are folders of additional Java
    classes, such as those that validate tokens.
    """

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        log: Path | None = None,
        listeners: Mapping[str, Listener] | None = None,
        member: Member | None = None,
        classes: Sequence[Path] = (),
    ) -> None:
        self._classes = tuple(classes)
        self._settings = dict(settings or {})
        self._listeners = dict(listeners or {})
        self._member = member
        self._patience = _START_SECONDS if member is None else _MEMBER_START_SECONDS
        self._folder: Path | None = None
        self._given_log = log
        self._ports: Mapping[str, int] = {}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        """The address for clients, `127.0.0.1:PORT`; a restart does not change it."""
        return self.address(CLIENTS)

    def address(self, listener: str) -> str:
        """Return the address of a listener, `127.0.0.1:PORT`; a restart does not change it.

        The port is 0 until the broker is started.
        """
        return f"127.0.0.1:{self._ports.get(listener, 0)}"

    @property
    def log(self) -> Path:
        """The log file of the broker.

        Raises BrokerError if the log is temporary and the broker has not been started.
        """
        if self._given_log is not None:
            return self._given_log
        if self._folder is None:
            raise BrokerError("the broker has not been started: it has no log file")
        return self._folder / "broker.log"

    @property
    def running(self) -> bool:
        """Whether the process of the broker is alive."""
        return self._process is not None and self._process.poll() is None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the broker, if it is not running, and wait until topics can be created.

        Raises ConfigError without Java, JarError if Kafka cannot be downloaded, or BrokerError if
        the broker fails to start.
        """
        if self.running:
            return
        java = java_command()
        pins = read_pins(_PINS)
        classpath = [*self._classes, *fetch(list(pins), cache_folder() / "kafka", pins=pins)]
        command = ["-cp", ":".join(map(str, classpath)), "kafka.Kafka"]
        fresh = self._folder is None and self._member is None
        for attempt in range(_PORT_TRIES):
            folder = self._prepare(new_ports=fresh)
            # A killed JVM leaves the libraries that it has unpacked to its temporary folder.
            flags = [*_FLAGS, f"-Djava.io.tmpdir={folder}"]
            self._launch([java, *flags, *command, str(folder / "server.properties")], folder)
            try:
                self._wait_until_ready()
            except BrokerError as error:
                self._end()
                taken = "Address already in use" in error.message
                if not (fresh and taken and attempt + 1 < _PORT_TRIES):
                    self.stop()
                    raise
            else:
                return

    def stop(self) -> None:
        """Stop the broker and remove its data; does nothing if it was never started."""
        self._end()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def kill(self) -> None:
        """Kill the broker with SIGKILL, but leave its data for `restart`."""
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._reap()

    def restart(self) -> None:
        """Kill the broker if it is running, and start it again with the same address and data.

        Raises the errors of `start`.
        """
        self.kill()
        self.start()

    def create_topic(
        self, name: str, partitions: int = 1, config: Mapping[str, str] | None = None
    ) -> None:
        """Create a topic with the topic properties `config`.

        Raises BrokerError if the broker rejects the request or does not respond.
        """
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": _LOG_ERRORS})
        topic = NewTopic(name, partitions, 1, config=dict(config or {}))
        try:
            admin.create_topics([topic])[name].result(_START_SECONDS)
        except KafkaException as error:
            raise BrokerError(f"topic {name} was not created: {error}") from error

    def _prepare(self, *, new_ports: bool) -> Path:
        number = 1 if self._member is None else self._member.number
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="ingestd-broker-"))
            data = self._folder / "data"
            data.mkdir()
            cluster = random_id() if self._member is None else self._member.cluster_id
            meta = {"version": 1, "cluster.id": cluster, "node.id": number}
            _write_properties(data / "meta.properties", {**meta, "directory.id": random_id()})
        if new_ports or not self._ports:
            self._ports = choose_ports(self._listeners, self._member)
        controllers = controllers_of(self._ports, self._member)
        properties = {
            **broker_properties(number, self._ports, controllers, self._listeners),
            "log.dirs": self._folder / "data",
            **self._settings,
        }
        _write_properties(self._folder / "server.properties", properties)
        return self._folder

    def _launch(self, command: list[str], folder: Path) -> None:
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _GUARD, "ingestd-broker", str(folder), *command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=folder,
                start_new_session=True,
            )

    def _wait_until_ready(self) -> None:
        end = time.monotonic() + self._patience
        while time.monotonic() < end:
            if not self.running:
                raise BrokerError(f"the broker ended while starting\n{self._tail()}")
            if _answers(self.bootstrap):
                return
            time.sleep(0.02)
        raise BrokerError(f"the broker is not ready after {self._patience:.0f} s\n{self._tail()}")

    def _end(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()  # the guard script then stops the broker
            try:
                self._process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
        self._reap()

    def _reap(self) -> None:
        if self._process is not None:
            self._process.wait(_STOP_SECONDS)
            if self._process.stdin is not None:
                self._process.stdin.close()
            self._process = None

    def _tail(self) -> str:
        lines = self.log.read_text(errors="replace").splitlines()
        return "\n".join(lines[-_LOG_LINES:])


def _answers(address: str) -> bool:
    host, port = address.split(":")
    try:
        socket.create_connection((host, int(port)), 0.5).close()
    except OSError:
        return False
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    try:
        return bool(admin.list_topics(timeout=5).brokers)
    except KafkaException:
        return False


def random_id() -> str:
    """Return a random id in the form of Kafka's cluster and directory ids."""
    return urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


def _write_properties(path: Path, properties: Mapping[str, object]) -> None:
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))


def broker_properties(
    number: int,
    ports: Mapping[str, int],
    controllers: Mapping[int, int],
    listeners: Mapping[str, Listener],
) -> dict[str, object]:
    """Return the properties of a broker on 127.0.0.1.

    `number` is its node id, `ports` are the result of `choose_ports` for the same `listeners`, and
    `controllers` the ports of all controllers of the cluster by node id.
    """
    advertised = {
        CLIENTS: None,
        **{name: listener.advertised for name, listener in listeners.items()},
    }
    protocols = {CLIENTS: "PLAINTEXT", _CONTROLLER: "PLAINTEXT"}
    protocols |= {name: listener.protocol for name, listener in listeners.items()}
    own = {name: f"127.0.0.1:{ports[name]}" for name in (CLIENTS, *listeners, _CONTROLLER)}
    addresses = {name: address or own[name] for name, address in advertised.items()}
    return {
        **_DEFAULTS,
        "node.id": number,
        "listeners": _addresses(own),
        "advertised.listeners": _addresses(addresses),
        "listener.security.protocol.map": ",".join(f"{a}:{b}" for a, b in protocols.items()),
        "controller.quorum.voters": ",".join(f"{n}@127.0.0.1:{p}" for n, p in controllers.items()),
        **{
            f"listener.name.{name.lower()}.{key}": value
            for name, listener in listeners.items()
            for key, value in listener.settings.items()
        },
    }


def choose_ports(listeners: Mapping[str, Listener], member: Member | None) -> dict[str, int]:
    """Return the ports of a broker by name: for clients, for the controller, for each listener.

    The names of the first two are those of their listeners in Kafka's properties. A `member` has
    given ports for clients and the controller; all other ports are free ones.
    """
    names = (CLIENTS, _CONTROLLER, *listeners)
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    if member is not None:
        ports[CLIENTS], ports[_CONTROLLER] = member.ports
    return ports


def controllers_of(ports: Mapping[str, int], member: Member | None) -> Mapping[int, int]:
    """Return the controller port of each node of a cluster, by node id.

    A broker without a cluster (`member` is None) has the node id 1; `ports` are its own ports, by
    the names of its listeners.
    """
    return {1: ports[_CONTROLLER]} if member is None else member.controllers


def free_ports(count: int) -> list[int]:
    """Return `count` different ports of 127.0.0.1 that are free at the time of the call."""
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


def _addresses(by_name: Mapping[str, str]) -> str:
    return ",".join(f"{name}://{address}" for name, address in by_name.items())
