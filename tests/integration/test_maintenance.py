"""A daemon that keeps its own tables fast: compaction and expiry beside the stream."""

import json
import os
import signal
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ingestd.dev.broker import DevBroker
from tests.support.daemon import Daemon, run_daemon
from tests.support.ledger import Ledger
from tests.support.ledger_judge import judge
from tests.support.oracle import Oracle
from tests.support.pipelines import DATABASE, pipeline

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]
EVENTS, PIECES = 6_000, 12
ACCOUNTS = 300
OPTIONS = {
    "bucket": "2",
    "num-sorted-run.compaction-trigger": "3",
    "snapshot.num-retained.min": "2",
    "snapshot.num-retained.max": "4",
}
TABLES = {
    "account": {"options": {"deletion-vectors.enabled": "true"}},
    # Rows without a key, in files that are put together as there get many of them.
    "entry": {"options": {"bucket": "-1", "compaction.min.file-num": "3"}},
}


@pytest.mark.parametrize("mode", ["background", "inline"])
def test_tables_stay_small_right_and_visible_while_they_are_written(
    tmp_path: Path, broker: DevBroker, oracle: Oracle, mode: str
) -> None:
    ledger = Ledger(f"u{uuid.uuid4().hex[:8]}", EVENTS, ACCOUNTS)
    config = _config(tmp_path, broker, ledger, mode)
    with run_daemon(config, tmp_path) as daemon:
        for number in range(PIECES):
            _produce(ledger, broker, number)
            daemon.wait_until(lambda number=number: _records(daemon) == _share(number + 1))
            if number == PIECES // 2:
                _kill_maintenance(daemon)
        daemon.wait_until(lambda: _status(daemon)["tables"]["ods.account"]["level_0"] == 0)
        daemon.wait_until(lambda: _snapshots(tmp_path, "account") <= 4)
        _, metrics = daemon.get("/metrics")
        status, page = daemon.get("/changes")
        of_table, table_page = daemon.get("/tables/ods.account")
        daemon.terminate()
        assert daemon.wait() == 0, daemon.tail()
    assert judge(ledger, tmp_path / "warehouse", oracle) == []
    assert 'ingestd_compactions_total{result="compacted",table="ods.account"}' in metrics
    assert 'ingestd_snapshots_expired_total{table="ods.account"}' in metrics
    assert status == 200
    assert "Compactions" in page
    assert of_table == 200
    assert "COMPACT" in table_page
    # Each piece made at least a file a bucket: what is on disk is what few snapshots need.
    assert _live_files(oracle, tmp_path, "entry") < PIECES
    assert len(list((tmp_path / "warehouse").rglob("bucket-*/data-*"))) < 5 * PIECES


def _config(folder: Path, broker: DevBroker, ledger: Ledger, mode: str) -> dict[str, Any]:
    return pipeline(
        folder,
        broker.bootstrap,
        ledger.pattern,
        options=OPTIONS,
        tables=TABLES,
        compaction={"mode": mode},
        expiry={"interval": "1s"},
    )


def _share(pieces: int) -> int:
    return EVENTS // PIECES * pieces


def _produce(ledger: Ledger, broker: DevBroker, number: int) -> None:
    ledger.produce(broker, _share(number), _share(number + 1))


def _status(daemon: Daemon) -> Mapping[str, Any]:
    code, body = daemon.get("/status")
    found: Mapping[str, Any] = json.loads(body)["maintenance"] if code == 200 else {"tables": {}}
    return found


def _records(daemon: Daemon) -> int:
    """Records that are in the tables."""
    code, body = daemon.get("/status")
    sources = json.loads(body)["sources"] if code == 200 else {}
    topics = [topic for source in sources.values() for topic in source["topics"].values()]
    return sum(value["position"] or 0 for topic in topics for value in topic.values())


def _kill_maintenance(daemon: Daemon) -> None:
    """SIGKILL to the process that compacts, whatever it does just then."""
    found = [pid for pid, command in daemon.family().items() if "ingestd-maint" in command]
    assert found, daemon.family()
    os.kill(found[0], signal.SIGKILL)


def _snapshots(folder: Path, table: str) -> int:
    return len(list((folder / "warehouse").glob(f"{DATABASE}.db/{table}/snapshot/snapshot-*")))


def _live_files(oracle: Oracle, folder: Path, table: str) -> int:
    return len(oracle.inspect(folder / "warehouse", DATABASE, table)["files"])
