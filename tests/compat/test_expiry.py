"""Expiry by ingestd and by Java of the same tables: the same files stay, and the same rows."""

import json
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.long_lived_changelogs import changelog_ids
from ingestd.paimon.table.metadata.snapshot_manager import read_snapshot
from ingestd.paimon.table.read.incremental_read import read_changelog
from ingestd.paimon.table.retention.auto_tags import make_auto_tags
from ingestd.paimon.table.retention.expire_changelogs import expire_changelogs
from ingestd.paimon.table.retention.expire_partitions import expire_partitions
from ingestd.paimon.table.retention.expire_plan import expire_settings
from ingestd.paimon.table.retention.expire_snapshots import expire_snapshots
from ingestd.paimon.table.retention.orphans import find_orphans, remove_orphans
from ingestd.paimon.table.retention.rollback import plan_rollback, rollback
from tests.support.native_tables import open_native
from tests.support.oracle import Oracle

pytestmark = pytest.mark.compat

KINDS: dict[str, dict[str, str]] = {
    "none": {"bucket": "2"},
    "dynamic": {"bucket": "-1"},
    "input": {"bucket": "2", "changelog-producer": "input"},
    "lookup": {"bucket": "1", "changelog-producer": "lookup"},
    "vectors": {"bucket": "1", "deletion-vectors.enabled": "true"},
    "indexed": {
        "bucket": "1",
        "file-index.bloom-filter.columns": "v",
        "file-index.in-manifest-threshold": "1 b",
    },
}
KEPT = [
    (kind, keep)
    for number, kind in enumerate(sorted(KINDS))
    for keep in ((1, 4) if "INGESTD_LONG" in os.environ else (1, 4)[number % 2 :][:1])
]
"""How many snapshots each kind keeps: in short one number of the two."""


def files(warehouse: Path) -> set[str]:
    root = warehouse / "db.db" / "t"
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def made(
    oracle: Oracle, warehouse: Path, options: Mapping[str, str], retention: Mapping[str, str]
) -> Path:
    """A table with a life: merges, upgrades, dropped partitions, tags."""
    warehouse.mkdir()
    rows = [
        [{"id": n, "p": n % 2, "v": f"{step}"} for n in range(step, step + 6)] for step in range(8)
    ]
    steps: list[Any] = [
        {"commit": {"rows": row, "compact": ("none", "auto", "full")[at % 3]}}
        for at, row in enumerate(rows)
    ]
    steps[3:3] = [{"tag": {"name": "a", "snapshot": 2}}]
    steps[6:6] = [{"tag": {"name": "b"}}, {"dropPartition": {"p": "1"}}]
    changes = [
        {"op": "option", "key": key, "value": value}
        for key, value in {"snapshot.time-retained": "0 ms", **retention}.items()
    ]
    spec = {
        "fields": [
            {"name": "id", "type": "INT"}, {"name": "p", "type": "INT"},
            {"name": "v", "type": "STRING"},
        ],
        "primaryKey": ["id", "p"],
        "partitionKeys": ["p"],
        "options": {"snapshot.num-retained.min": "50", **options},
        # Java expires with every commit, so what may go is said at the end.
        "steps": [*steps, {"alter": changes}],
    }  # fmt: skip
    run(oracle, warehouse, spec)
    return warehouse


def run(oracle: Oracle, warehouse: Path, spec: Mapping[str, Any]) -> None:
    path = warehouse.parent / "spec.json"
    path.write_text(json.dumps(spec))
    oracle("write", path, "--warehouse", warehouse)


def steps_on(oracle: Oracle, warehouse: Path, *steps: Any) -> None:
    run(oracle, warehouse, {"existing": True, "steps": steps})


def now() -> int:
    return int(time.time() * 1000) + 1000


def ours(table: FileStoreTable) -> None:
    settings = expire_settings(table.schema.options)
    expire_snapshots(table, settings, now())
    expire_changelogs(table, settings, now())


def judged(oracle: Oracle, warehouse: Path) -> Any:
    """What is left to read. Tags lose their changelogs, of which a check of all complains."""
    found = oracle.fsck(warehouse, "db", "t", "--all", "--orphans")
    assert not [one for one in found if one["code"] not in ("missing-file", "record-count")]
    assert not [one for one in found if "changelog" not in str(one)]
    tags = [oracle.read(warehouse, "db", "t", "--tag", name) for name in ("a", "b")]
    return found, oracle.read(warehouse, "db", "t"), tags


@pytest.mark.parametrize(("kind", "keep"), KEPT)
def test_snapshots_expire_as_in_java(oracle: Oracle, tmp_path: Path, kind: str, keep: int) -> None:
    retention = {"snapshot.num-retained.min": str(keep)}
    warehouse = made(oracle, tmp_path / "ours", KINDS[kind], retention)
    theirs = tmp_path / "theirs"
    shutil.copytree(warehouse, theirs)
    before = files(warehouse)
    steps_on(oracle, theirs, {"expire": True})
    ours(open_native(warehouse))
    assert files(warehouse) < before
    assert files(warehouse) == files(theirs)
    assert judged(oracle, warehouse) == judged(oracle, theirs)


@pytest.mark.parametrize("kind", ["none", "input", "lookup"])
def test_long_lived_changelogs_expire_as_in_java(oracle: Oracle, tmp_path: Path, kind: str) -> None:
    retention = {"snapshot.num-retained.min": "2", "snapshot.num-retained.max": "2"}
    retention |= {"changelog.num-retained.min": "4", "changelog.num-retained.max": "5"}
    warehouse = made(oracle, tmp_path / "ours", KINDS[kind], retention)
    theirs = tmp_path / "theirs"
    shutil.copytree(warehouse, theirs)
    all_changes = oracle.changelog(theirs, "db", "t", "--from", 1)
    steps_on(oracle, theirs, {"expire": True}, {"expireChangelogs": True})
    ours(open_native(warehouse))
    assert files(warehouse) == files(theirs)
    assert judged(oracle, warehouse) == judged(oracle, theirs)
    table = open_native(warehouse)
    first = changelog_ids(table)[0]
    kept = [all_change for all_change in all_changes if all_change["_snapshot"] >= first]
    assert kept
    assert oracle.changelog(warehouse, "db", "t", "--from", first) == kept
    assert read_changelog(table, first).num_rows == len(kept)


def test_automatic_tags_are_those_of_java(oracle: Oracle, tmp_path: Path) -> None:
    retention = {
        "tag.automatic-creation": "process-time",
        "tag.creation-period-duration": "1 min",
        "tag.num-retained-max": "2",
    }
    warehouse = made(oracle, tmp_path / "ours", KINDS["none"], retention)
    theirs = tmp_path / "theirs"
    for path in (warehouse / "db.db/t/snapshot").glob("snapshot-*"):
        document = json.loads(path.read_text())
        document["timeMillis"] = 1_700_000_000_000 + 37_000 * document["id"]
        path.write_text(json.dumps(document))
    shutil.copytree(warehouse, theirs)
    steps_on(oracle, theirs, {"autoTags": True})
    table = open_native(warehouse)
    make_auto_tags(table, table.schema.options, now())
    mine = oracle("read", warehouse, "db", "t$tags")
    assert len(mine) == 4
    assert mine == oracle("read", theirs, "db", "t$tags")
    assert files(warehouse) == files(theirs)


def test_partitions_expire_as_in_java(oracle: Oracle, tmp_path: Path) -> None:
    days = ["20200101", "20231231", "20240229", "20990101", "20240230", "20241301", "x"]
    spec = {
        "fields": [{"name": "id", "type": "INT"}, {"name": "dt", "type": "STRING"}],
        "partitionKeys": ["dt"],
        "options": {"bucket": "-1", "partition.expiration-check-interval": "0 ms"},
        "steps": [
            {"commit": {"rows": [{"id": n, "dt": day} for n, day in enumerate(days)]}},
            {"alter": [
                {"op": "option", "key": f"partition.{key}", "value": value}
                for key, value in [("expiration-time", "30 d"), ("expiration-max-num", "3"),
                                   ("timestamp-pattern", "$dt"),
                                   ("timestamp-formatter", "yyyyMMdd")]
            ]},
        ],
    }  # fmt: skip
    warehouse, theirs = tmp_path / "ours", tmp_path / "theirs"
    warehouse.mkdir()
    run(oracle, warehouse, spec)
    shutil.copytree(warehouse, theirs)
    steps_on(oracle, theirs, {"expirePartitions": True})
    table = open_native(warehouse)
    expire_partitions(table, table.schema.options, now())
    left = oracle.read(warehouse, "db", "t")
    assert left == oracle.read(theirs, "db", "t")
    assert sorted(row["dt"] for row in left) == ["20240230", "20241301", "20990101", "x"]
    assert oracle.fsck(warehouse, "db", "t", "--all", "--orphans") == []


def test_rollbacks_and_orphans_are_those_of_java(oracle: Oracle, tmp_path: Path) -> None:
    warehouse = made(oracle, tmp_path / "ours", KINDS["input"], {"snapshot.num-retained.min": "4"})
    theirs = tmp_path / "theirs"
    shutil.copytree(warehouse, theirs)
    steps_on(oracle, theirs, {"rollback": 7})
    table = open_native(warehouse)
    target = read_snapshot(table.io, table.paths, 7)
    rollback(table, plan_rollback(table, target))
    assert files(warehouse) == files(theirs)
    before = oracle.fsck(warehouse, "db", "t", "--all", "--orphans")
    assert {one["code"] for one in before} == {"orphan"}
    steps_on(oracle, theirs, {"orphans": True})
    remove_orphans(table, find_orphans(table, now()))
    assert files(warehouse) == files(theirs)
    assert oracle.fsck(warehouse, "db", "t", "--all", "--orphans") == []
    assert oracle.read(warehouse, "db", "t") == oracle.read(theirs, "db", "t")
    scratch = tmp_path / "rows"
    scratch.mkdir()
    oracle.append(warehouse, "db", "t", [{"id": 99, "p": 1, "v": "java"}], scratch)
    assert oracle.fsck(warehouse, "db", "t", "--all", "--orphans") == []
