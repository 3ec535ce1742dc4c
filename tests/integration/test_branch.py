"""A daemon writes a branch of its table, Java continues it, and a fast-forward publishes it."""

from pathlib import Path
from typing import Any

import pytest

from ingestd.dev.broker import DevBroker
from ingestd.paimon.catalog.base import load_catalog
from ingestd.paimon.library.warehouse import Warehouse
from tests.support.change_events import event, key
from tests.support.command_line import run_command
from tests.support.daemon import run_daemon
from tests.support.daemon_progress import Watched
from tests.support.kafka_broker import Record, fresh_topic, produce
from tests.support.oracle import Oracle

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]
BRANCH = "orders$branch_fix"


def by_id(rows: list[dict[str, Any]]) -> dict[int, Any]:
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: (row["v"], row.get("w")) for row in rows}


def test_a_branch_is_written_continued_by_java_and_published(
    tmp_path: Path,
    broker: DevBroker,
    oracle: Oracle,
    oracle_2: Oracle,
    capsys: pytest.CaptureFixture[str],
) -> None:
    topic, lake = fresh_topic(broker), tmp_path / "lake"
    options = {"bucket": "-1", "num-sorted-run.compaction-trigger": "2"}
    config = {
        "pipeline": {"name": "shop", "trigger": "100ms"},
        "warehouse": {"path": str(lake), "database": "ods"},
        "sources": {
            "shop": {
                "kafka": {"bootstrap.servers": broker.bootstrap},
                "topics": [topic],
                "format": "debezium-json",
            }
        },
        "tables": {"orders": {"primary-keys": ["id"], "options": options}},
    }
    on_branch = {**config, "routing": {"table-mapping": {"orders": BRANCH}}}

    def published(table: str) -> dict[int, Any]:
        """The rows of the table or the branch, on which both Javas and ingestd agree."""
        for java in (oracle, oracle_2):
            assert java.fsck(lake, "ods", table) == []
        found = by_id(oracle.read(lake, "ods", table))
        assert by_id(oracle_2.read(lake, "ods", table)) == found
        opened = Warehouse(load_catalog("filesystem", str(lake))).table(f"ods.{table}")
        assert by_id(opened.scan().to_arrow().to_pylist()) == found
        return found

    sent = 0

    def read(*records: Record) -> None:
        """Produce records, and return once they are in the table or its branch."""
        nonlocal sent
        produce(broker, topic, records)
        sent += len(records)
        Watched(daemon, "shop").await_offsets(sent)

    def is_compacted(table: str) -> bool:
        lines = daemon.log.read_text().splitlines()
        return any("table_compacted" in line and table in line for line in lines)

    before = dict.fromkeys(range(20), ("main", None))
    with run_daemon(config, tmp_path) as daemon:
        read(*((key(id=n), event("c", {"id": n, "v": "main"})) for n in before))
        command = ("branch", "create", lake, "ods.orders", "fix", "--latest")
        assert run_command(capsys, *command).code == 0

        daemon.reload(on_branch)
        changes = [(key(id=n), event("u", {"id": n, "v": "fix", "w": n})) for n in range(5, 25)]
        gone = (key(id=0), event("d", before={"id": 0, "v": "main"}))
        read(*changes, gone, (key(id=1), b"no JSON"))
        daemon.wait_until(lambda: is_compacted(BRANCH))
        expected = dict.fromkeys(range(1, 5), ("main", None))
        expected |= {n: ("fix", n) for n in range(5, 25)}
        assert (published(BRANCH), published("orders")) == (expected, before)

        oracle.append(lake, "ods", BRANCH, [{"id": 100, "v": "java", "w": 1}], tmp_path)
        read((key(id=1), event("u", {"id": 1, "v": "later", "w": 1})))
        oracle_2.append(lake, "ods", BRANCH, [{"id": 101, "v": "java", "w": 2}], tmp_path)
        expected |= {1: ("later", 1), 100: ("java", 1), 101: ("java", 2)}
        assert (published(BRANCH), published("orders")) == (expected, before)

        forward = ("branch", "fast-forward", lake, "ods.orders", "fix", "--yes")
        assert run_command(capsys, *forward).code == 0
        daemon.reload(config)
        read((key(id=2), event("u", {"id": 2, "v": "after", "w": 2})))
        daemon.terminate()
        assert daemon.wait() == 0, daemon.tail()
    assert published(BRANCH) == expected
    assert published("orders") == expected | {2: ("after", 2)}
    letters = Warehouse(load_catalog("filesystem", str(lake))).table("ods.ingestd_dead_letters")
    assert [row["table"] for row in letters.scan().to_arrow().to_pylist()] == [None]
