"""The tutorial with the services of its compose file as processes of this machine, and queries."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

import ingestd.paimon as paimon
from ingestd.dev.broker import random_id
from ingestd.dev.jars import cache_folder, fetch, java_command, read_pins
from ingestd.errors import IngestdError
from tests.compat.engines import paimon_connector, spark_sql
from tests.live.connect_worker import ConnectWorker, write_properties
from tests.support.code_blocks import ROOT, shown
from tests.support.daemon import free_port, run_daemon
from tests.support.guarded_process import GuardedProcess
from tests.support.postgres_server import PostgresServer, is_supported
from tests.support.pypaimon import environment

pytestmark = [
    pytest.mark.integration,
    pytest.mark.chaos,
    pytest.mark.slow,
    pytest.mark.skipif(not is_supported(), reason="PostgreSQL is fetched for Linux on x86-64 only"),
    pytest.mark.skipif(shutil.which("curl") is None, reason="the connector is created with curl"),
]
FILES = ROOT / "config" / "tutorial"
PAGE, LAKE = "docs/tutorial.md", "config/tutorial/warehouse"
SERVICES = yaml.safe_load((FILES / "compose.yaml").read_text())["services"]
CONNECTOR = json.loads((FILES / "connector.json").read_text())


class Addresses(dict[str, str]):
    """Addresses that the compose file names, as they are on this machine."""

    def __init__(self) -> None:
        for address in ("kafka:9092", "kafka:9093", "connect:8083"):
            self[address] = f"127.0.0.1:{free_port()}"
        for port in ("9092", "9093"):
            self[f"://:{port}"] = "://" + self[f"kafka:{port}"]

    def here(self, text: str) -> str:
        """A text of the compose file with the addresses of this machine."""
        for address, local in self.items():
            text = text.replace(address, local)
        return text

    def properties(self, service: str, prefix: str = "") -> dict[str, object]:
        """The environment of a service as its image passes it to the program."""
        return {
            name.removeprefix(prefix).lower().replace("_", "."): self.here(value)
            for name, value in SERVICES[service]["environment"].items()
        }


@contextmanager
def kafka(addresses: Addresses, folder: Path) -> Iterator[None]:
    """The service `kafka`, with no other settings than those of the compose file."""
    folder.mkdir()
    file = folder / "server.properties"
    write_properties(file, {"log.dirs": folder / "data"} | addresses.properties("kafka", "KAFKA_"))
    pins = read_pins(ROOT / "ingestd" / "dev" / "kafka_jars.txt")
    jars = ":".join(map(str, fetch(list(pins), cache_folder() / "kafka", pins=pins)))
    java = [java_command(), "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", jars]
    storage = ["kafka.tools.StorageTool", "format", "-t", random_id(), "-c", str(file)]
    subprocess.run([*java, *storage], check=True, capture_output=True)
    process = GuardedProcess([*java, "kafka.Kafka", str(file)], folder / "kafka.log")
    try:
        yield
    finally:
        process.kill()


class TutorialWorker(ConnectWorker):
    """The service `connect`; its connector is created by the service `connector`."""

    program, files = "ConnectDistributed", ("worker",)

    def __init__(self, folder: Path, addresses: Addresses, port: int) -> None:
        self._addresses, self._port = addresses, port
        place = {"prefix": "shop", "schema": "public", "one_partition": ()}
        super().__init__(folder, addresses["kafka:9092"], port, **place)  # type: ignore[arg-type]  # one dictionary

    def worker(self) -> dict[str, object]:
        """Those of the compose file, and what the image's own file adds."""
        copies = {
            f"{name}.storage.replication.factor": 1 for name in ("config", "offset", "status")
        }
        listeners = {"listeners": f"http://{self._addresses['connect:8083']}"}
        return {**copies, **listeners, **self._addresses.properties("connect")}

    def create_connector(self) -> None:
        """Do what the service `connector` does, with the database of this machine."""
        here = {"database.hostname": "127.0.0.1", "database.port": str(self._port)}
        file = self._folder / "connector.json"
        file.write_text(json.dumps(CONNECTOR | here))
        command = SERVICES["connector"]["command"].replace("@/connector.json", f"@{file}")
        subprocess.run(["curl", *shlex.split(self._addresses.here(command))], check=True)


def orders(lake: Path) -> list[tuple[object, ...]]:
    try:
        rows = paimon.open(f"{lake}/shop.orders").to_arrow().to_pylist()
    except IngestdError:
        return []
    return sorted(tuple(map(str, row.values())) for row in rows)


def test_rows_of_postgresql_are_queried_with_duckdb_and_spark(tmp_path: Path) -> None:
    lake, addresses = tmp_path / "lake", Addresses()
    config = yaml.safe_load((FILES / "ingestd.yaml").read_text())
    with (
        PostgresServer() as database,
        kafka(addresses, tmp_path / "kafka"),
        database.connect() as client,
    ):
        client.run((FILES / "shop.sql").read_text())
        assert client.run("SHOW wal_level")[0][0] in SERVICES["postgres"]["command"]
        variables = {"BOOTSTRAP": addresses["kafka:9092"], "WAREHOUSE": str(lake)}
        with TutorialWorker(tmp_path / "connect", addresses, database.port) as worker:
            worker.create_connector()
            with run_daemon(config, tmp_path, environment=variables) as daemon:
                daemon.wait_until(lambda: len(orders(lake)) == 3)
                worker.wait_until_streaming()
                client.run(shown(PAGE, "UPDATE orders").text)
                expected = [("10", "1", "paid", "25.00", "None"),
                            ("12", "2", "paid", "99.90", "None"),
                            ("13", "2", "new", "5.00", "gift")]  # fmt: skip
                daemon.wait_until(lambda: orders(lake) == expected)
                daemon.terminate()
                assert daemon.wait() == 0, daemon.tail()
    assert duckdb_rows(lake) == [["new", "5.00"], ["paid", "124.90"]]
    assert spark_rows(lake) == {("Ada", "25.00"), ("Grace", "104.90")}


def duckdb_rows(lake: Path) -> list[list[str]]:
    """What the program of the page returns."""
    (packages,) = environment("frames").parent.parent.glob("lib/python*/site-packages")
    *lines, last = shown(PAGE, "import ingestd.paimon").text.replace(LAKE, str(lake)).splitlines()
    begin = [f"import json, sys; sys.path.append({str(packages)!r})", *lines]
    text = "\n".join([*begin, f"print(json.dumps({last}, default=str))"])
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows: list[list[str]] = json.loads(done.stdout)
    return rows


def spark_rows(lake: Path) -> set[tuple[str, str]]:
    """What the statement of the page returns."""
    text = shown(PAGE, "-- spark-sql").text.replace(f"file:{LAKE}", f"file:{lake}")
    (statement,) = re.findall(r"^(SELECT.*);$", text, re.MULTILINE)
    settings = dict(re.findall(r"--conf (\S+)=(\S+)", text))
    (rows,) = spark_sql([statement], settings, paimon_connector())
    return {(row["name"], str(row["total"])) for row in rows}
