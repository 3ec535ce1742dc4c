"""A running daemon follows changes from outside: a reloaded file, and a rolled back table."""

import json
import uuid
from pathlib import Path

import pytest

from ingestd.dev.broker import DevBroker
from tests.support.command_line import run_command
from tests.support.daemon import run_daemon
from tests.support.daemon_progress import Watched
from tests.support.ledger import Ledger
from tests.support.ledger_judge import judge
from tests.support.oracle import Oracle
from tests.support.pipelines import DATABASE, pipeline

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]
EVENTS = 4_000


def test_a_topic_that_joins_and_a_table_rolled_back_are_ingested(
    tmp_path: Path, broker: DevBroker, oracle: Oracle, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger = Ledger(f"l{uuid.uuid4().hex[:8]}", EVENTS)
    ledger.produce(broker, 0, EVENTS // 2)
    only_accounts = pipeline(tmp_path, broker.bootstrap, rf"{ledger.prefix}\.bank\.account")
    tables = tmp_path / "warehouse" / f"{DATABASE}.db"
    with run_daemon(only_accounts, tmp_path) as daemon:
        daemon.wait_until((tables / "account" / "snapshot" / "snapshot-1").exists)
        assert not (tables / "entry").exists()
        only_accounts["sources"]["shop"]["topic-pattern"] = ledger.pattern
        only_accounts["tables"]["account"] = {"partition-keys": ["id"]}
        daemon.reload(only_accounts)
        daemon.wait_until((tables / "entry" / "snapshot" / "snapshot-1").exists)
        ledger.produce(broker, EVENTS // 2)
        Watched(daemon, "shop").await_offsets(EVENTS)
        first = min(_snapshots(tables / "entry"))
        name = f"{DATABASE}.entry"
        words = ("rollback", tmp_path / "warehouse", name, "--snapshot", first, "--yes", "--json")
        [reopened] = json.loads(run_command(capsys, *words).out)["reopened_by"]
        assert f"process {daemon.process.pid} on " in reopened
        # No record arrives, and it is filled again.
        daemon.wait_until(lambda: not judge(ledger, tmp_path / "warehouse", oracle))
        daemon.terminate()
        warned = daemon.logged("configuration_warning")["problem"]
        assert "partition-keys = [id] has no effect, the table exists with none" in warned
        assert daemon.wait() == 0
    assert judge(ledger, tmp_path / "warehouse", oracle) == []


def _snapshots(table: Path) -> list[int]:
    return [int(path.name.removeprefix("snapshot-")) for path in table.glob("snapshot/snapshot-*")]
