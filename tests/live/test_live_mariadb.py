"""A live MariaDB under load: `ingestd compare` finds nothing but falsified rows."""

import json
import os
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import ingestd.paimon as paimon
from ingestd.dev.broker import DevBroker
from tests.live import mariadb_load
from tests.live.connect_worker import ConnectWorker
from tests.live.mariadb_load import KEYS, MariaDbLoad
from tests.support.command_line import run_command
from tests.support.daemon import run_daemon
from tests.support.mariadb_server import USER, MariaDbServer
from tests.support.pipelines import DATABASE, pipeline
from tests.support.postgres_server import is_supported

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.skipif(not is_supported(), reason="MariaDB is fetched for Linux on x86-64 only"),
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


def compared(
    capsys: Capture, folder: Path, server: MariaDbServer, *words: str
) -> Mapping[str, Any]:
    file = ("-c", folder / "ingestd.yaml", "--source", server.url, "--page-rows", "40")
    done = run_command(capsys, "compare", *file, *words, "--json")
    assert done.code in (0, 1), done.err
    document: dict[str, Any] = json.loads(done.out)
    return document


def falsify(folder: Path, number: int) -> set[tuple[str, str]]:
    """Change, delete and add a row in the lake; return the differences that this makes."""
    table = paimon.open_warehouse(str(folder / "warehouse")).table(f"{DATABASE}.accounts")
    rows = {row["id"]: row for row in table.to_arrow().to_pylist()}
    changed, deleted, added = KEYS + 1 + 2 * number, KEYS + 2 + 2 * number, 5000 + number
    table.write([{**rows[changed], "owner": "by hand"}, {**rows[changed], "id": added}])
    table.delete([rows[deleted]])
    return {("different", str(changed)), ("missing", str(deleted)), ("extra", str(added))}


@pytest.mark.timeout(3600)
def test_nothing_but_falsified_rows_is_found_under_load(tmp_path: Path, capsys: Capture) -> None:
    print(f"seed {SEED}, {RUNS} runs")  # shown when it fails
    with MariaDbServer() as server, DevBroker() as broker:
        server.run(*mariadb_load.SET_UP)
        place: Any = {"prefix": "live", "schema": "shop", "one_partition": []}
        load = MariaDbLoad(server, SEED)
        with MariaDbWorker(tmp_path / "connect", broker.bootstrap, server.port, **place) as worker:
            worker.wait_until_streaming()
            document = pipeline(
                tmp_path, broker.bootstrap, r"live\.shop\..*", tables={}, name="live"
            )
            daemon = run_daemon(document, tmp_path)
            load.start()
            try:
                database = tmp_path / "warehouse" / f"{DATABASE}.db"
                names = ("accounts", "transfers", "words")
                daemon.wait_until(
                    lambda: all((database / one / "snapshot").exists() for one in names)
                )
                changes = iter(mariadb_load.CHANGES)
                for _ in range(RUNS):
                    results = compared(capsys, tmp_path, server)["tables"]
                    assert [one["differences"] for one in results] == [[]] * len(results)
                    server.run("SET sql_mode = ''", next(changes, "SELECT 1"))
                expected: set[tuple[str, str]] = set()
                for number in range(3):
                    expected |= falsify(tmp_path, number)
                    [result] = compared(capsys, tmp_path, server, "accounts")["tables"]
                    kinds = {(one["kind"], one["key"]["id"]) for one in result["differences"]}
                    assert kinds == expected
            finally:
                load.stop()
                daemon.kill()
    assert load.surprises == []
    assert load.transactions > RUNS
