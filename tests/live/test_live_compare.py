"""A live database under load: `ingestd compare` finds nothing but falsified rows."""

import json
import os
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import ingestd.paimon as paimon
from ingestd.dev.broker import DevBroker
from tests.live import live_load, mariadb_load
from tests.live.connect_worker import ConnectWorker
from tests.live.test_live import TABLES
from tests.support.command_line import run_command
from tests.support.daemon import run_daemon
from tests.support.mariadb_server import USER, MariaDbServer
from tests.support.pipelines import DATABASE, pipeline
from tests.support.postgres_server import PostgresServer, is_supported

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.skipif(not is_supported(), reason="databases are fetched for Linux on x86-64 only"),
    pytest.mark.skipif("INGESTD_LONG" not in os.environ, reason="several minutes"),
]
RUNS = int(os.environ.get("INGESTD_LIVE_RUNS", "20"))
SEED = int(os.environ.get("INGESTD_LIVE_SEED", random.SystemRandom().randrange(10**6)))
Capture = pytest.CaptureFixture[str]


class MariaDbWorker(ConnectWorker):
    """A worker with Debezium's connector for MariaDB."""

    pins, cache = Path(__file__).with_name("mariadb_jars.txt"), "debezium-mariadb"
    streaming = "Keepalive thread is running"

    def connector(self, schema: str) -> dict[str, object]:
        """See `ConnectWorker`."""
        history = "io.debezium.storage.file.history.FileSchemaHistory"
        return {
            "name": "live",
            "connector.class": "io.debezium.connector.mariadb.MariaDbConnector",
            "tasks.max": "1",
            "database.hostname": "127.0.0.1",
            "database.user": USER,
            "database.password": "",
            "database.ssl.mode": "disable",
            "database.server.id": "77",
            "database.include.list": schema,
            "schema.history.internal": history,
            "schema.history.internal.file.filename": self.log.with_name("history"),
            "skipped.operations": "none",
            "poll.interval.ms": "50",
            "topic.creation.default.replication.factor": "1",
            "topic.creation.default.partitions": "3",
            "topic.creation.ordered.replication.factor": "1",
            "topic.creation.ordered.partitions": "1",
        }


@dataclass(frozen=True)
class Live:
    """A kind of database, its connector, its load, and the changes of its schema.

    The load does not change the ten rows of `accounts` after the key `keys`.
    """

    server: Callable[[], Any]
    run: Callable[[Any, str], object]
    worker: type[ConnectWorker]
    load: Callable[[Any, int], Any]
    schema: str
    set_up: Sequence[str]
    changes: Sequence[str]
    keys: int
    tables: Mapping[str, Any] = field(default_factory=dict)
    one_partition: Sequence[str] = ()


def run_in_postgres(server: PostgresServer, sql: str) -> None:
    with server.connect() as client:
        client.run(sql)


def run_in_mariadb(server: MariaDbServer, sql: str) -> None:
    server.run("SET sql_mode = ''", sql)


POSTGRES = Live(
    PostgresServer,
    run_in_postgres,
    ConnectWorker,
    live_load.Load,
    live_load.SCHEMA,
    [live_load.SET_UP],
    live_load.CHANGES,
    live_load.KEYS,
    TABLES,
    ["staging", "Odd_Names"],
)
MARIADB = Live(
    MariaDbServer,
    run_in_mariadb,
    MariaDbWorker,
    mariadb_load.MariaDbLoad,
    "shop",
    mariadb_load.SET_UP,
    mariadb_load.CHANGES,
    mariadb_load.KEYS,
)


def compared(capsys: Capture, folder: Path, url: str, *words: str) -> Sequence[Mapping[str, Any]]:
    """Return the results of the tables."""
    file = ("-c", folder / "ingestd.yaml", "--source", url, "--page-rows", "40")
    done = run_command(capsys, "compare", *file, *words, "--json")
    assert done.code in (0, 1), done.err
    results: list[dict[str, Any]] = json.loads(done.out)["tables"]
    return results


def falsify(folder: Path, keys: int, number: int) -> set[tuple[str, str]]:
    """Change, delete and add a row in the lake; return the differences that this makes."""
    table = paimon.open_warehouse(str(folder / "warehouse")).table(f"{DATABASE}.accounts")
    rows = {row["id"]: row for row in table.to_arrow().to_pylist()}
    changed, deleted, added = keys + 1 + 2 * number, keys + 2 + 2 * number, 5000 + number
    table.write([{**rows[changed], "owner": "by hand"}, {**rows[changed], "id": added}])
    table.delete([rows[deleted]])
    return {("different", str(changed)), ("missing", str(deleted)), ("extra", str(added))}


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("live", [POSTGRES, MARIADB], ids=["postgresql", "mariadb"])
def test_nothing_but_falsified_rows_is_found_under_load(
    live: Live, tmp_path: Path, capsys: Capture
) -> None:
    print(f"seed {SEED}, {RUNS} runs")  # shown when it fails
    with live.server() as server, DevBroker() as broker:
        for sql in live.set_up:
            live.run(server, sql)
        load = live.load(server, SEED)
        place: Any = {"prefix": "live", "schema": live.schema, "one_partition": live.one_partition}
        with live.worker(tmp_path / "connect", broker.bootstrap, server.port, **place) as worker:
            worker.wait_until_streaming()
            topics = rf"live\.{live.schema}\..*"
            document = pipeline(tmp_path, broker.bootstrap, topics, tables=live.tables, name="live")
            daemon = run_daemon(document, tmp_path)
            load.start()
            try:
                database = tmp_path / "warehouse" / f"{DATABASE}.db"
                daemon.wait_until(
                    lambda: all(
                        (database / name / "snapshot").exists()
                        for name in ("accounts", "transfers")
                    )
                )
                check_without_falsification(live, server, tmp_path, capsys)
                check_falsified_rows(live, server, tmp_path, capsys)
            finally:
                load.stop()
                daemon.kill()
    assert load.surprises == []
    assert load.transactions > RUNS


def check_without_falsification(live: Live, server: Any, folder: Path, capsys: Capture) -> None:
    changes = iter(live.changes)
    for _ in range(RUNS):
        results = compared(capsys, folder, server.url)
        assert [result["differences"] for result in results] == [[]] * len(results)
        print({result["table"]: (result["rows"], result["moving"]) for result in results})
        live.run(server, next(changes, "SELECT 1"))


def check_falsified_rows(live: Live, server: Any, folder: Path, capsys: Capture) -> None:
    expected: set[tuple[str, str]] = set()
    for number in range(3):
        expected |= falsify(folder, live.keys, number)
        [result] = compared(capsys, folder, server.url, "accounts")
        assert {
            (difference["kind"], difference["key"]["id"]) for difference in result["differences"]
        } == expected
