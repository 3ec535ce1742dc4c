"""The tutorial with processes of this machine: PostgreSQL, Debezium, a broker, and queries."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import ingestd.paimon as paimon
from ingestd.dev.broker import DevBroker
from ingestd.errors import IngestdError
from tests.compat.engines import paimon_connector, spark_sql
from tests.live.connect_worker import ConnectWorker
from tests.support.code_blocks import shown
from tests.support.daemon import run_daemon
from tests.support.postgres_server import PostgresServer, is_supported
from tests.support.pypaimon import environment

pytestmark = [
    pytest.mark.integration,
    pytest.mark.chaos,
    pytest.mark.slow,
    pytest.mark.skipif(not is_supported(), reason="PostgreSQL is fetched for Linux on x86-64 only"),
]
FILES = Path(__file__).resolve().parents[2] / "config" / "tutorial"
PAGE, LAKE = "docs/tutorial.md", "config/tutorial/warehouse"
CONNECTOR = json.loads((FILES / "connector.json").read_text())


class TutorialWorker(ConnectWorker):
    """Kafka Connect with the connector of the tutorial, which has its database on this machine."""

    def connector(self, schema: str) -> dict[str, object]:
        """The properties of the tutorial's file."""
        assert CONNECTOR["schema.include.list"] == schema
        return {"name": "shop", **CONNECTOR, "database.hostname": "127.0.0.1"}


def orders(lake: Path) -> list[tuple[object, ...]]:
    try:
        rows = paimon.open(f"{lake}/shop.orders").to_arrow().to_pylist()
    except IngestdError:
        return []
    return sorted(tuple(map(str, row.values())) for row in rows)


def test_rows_of_postgresql_are_queried_with_duckdb_and_spark(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    config = yaml.safe_load((FILES / "ingestd.yaml").read_text())
    place = {"prefix": "shop", "schema": "public", "one_partition": ["orders"]}
    with PostgresServer() as database, DevBroker() as broker, database.connect() as client:
        client.run((FILES / "shop.sql").read_text())
        variables = {"BOOTSTRAP": broker.bootstrap, "WAREHOUSE": str(lake)}
        worker = TutorialWorker(tmp_path / "connect", broker.bootstrap, database.port, **place)  # type: ignore[arg-type]  # one dictionary
        with worker:
            worker.wait_until_streaming()
            with run_daemon(config, tmp_path, environment=variables) as daemon:
                daemon.wait_until(lambda: len(orders(lake)) == 3)
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


def test_the_page_and_the_compose_file_use_what_the_tutorial_runs() -> None:
    services = yaml.safe_load((FILES / "compose.yaml").read_text())["services"]
    mounted = [
        volume.split(":")[0] for one in services.values() for volume in one.get("volumes", ())
    ]
    files = [FILES / name for name in mounted if name.startswith("./")]
    assert len(files) == 3
    assert all(file.is_file() for file in files)
    assert CONNECTOR["database.hostname"] in services
    assert services["ingestd"]["environment"]["BOOTSTRAP"].split(":")[0] in services
    commands = shown(PAGE, "export BOOTSTRAP").text
    assert set(re.findall(r"-c (\S+)", commands)) == {"config/tutorial/ingestd.yaml"}
    assert set(re.findall(r"([A-Z]+)=", commands)) == set(services["ingestd"]["environment"])
    assert (
        services["postgres"]["environment"]["POSTGRES_PASSWORD"] == CONNECTOR["database.password"]
    )
