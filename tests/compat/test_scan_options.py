"""Options of a table that say which rows are read: Java and we read the same ones."""

import json
from pathlib import Path
from typing import Any

import pytest

import ingestd.paimon as paimon
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.schema_change import AddColumn, SetOption
from ingestd.paimon.table.commit.table_commit import commit
from ingestd.paimon.table.compact.table_compact import compact_table
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import read_snapshot
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.retention.tags import create_tag
from ingestd.paimon.table.write.commit_message import ManifestCommittable
from tests.support.command_line import run_command
from tests.support.native_tables import (
    NOW_MS,
    alter,
    native_table,
    open_native,
    rows_table,
    write,
)
from tests.support.oracle import Oracle, OracleError

pytestmark = pytest.mark.compat
Rows = list[dict[str, Any]]
Capture = pytest.CaptureFixture[str]


def put(table: FileStoreTable, rows: Rows, number: int) -> None:
    """One snapshot, a second after the one before; every other one has a watermark."""
    state = load_state(table)
    messages = write(table, state, rows_table(table.schema, rows, state.max_sequence_number + 1))
    watermark = None if number % 2 else 100 * number
    committable = ManifestCommittable(number, tuple(messages), watermark=watermark)
    commit(table, "us", committable, state=state, now_ms=NOW_MS + number * 1000)


def filled(folder: Path) -> FileStoreTable:
    """Snapshots 1 to 6, the fourth one of a compaction, with a column more from the third on."""
    table = native_table(
        folder, [("id", "INT"), ("v", "STRING")], keys=["id"], options={"bucket": "1"}
    )
    put(table, [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}], 1)
    put(table, [{"id": 2, "v": "B"}, {"id": 3, "v": "c"}], 2)
    table = alter(table, AddColumn("w", parse_type("INT")))
    put(table, [{"id": 3, "v": "C", "w": 3}, {"id": 4, "v": "d", "w": 4}], 3)
    compact_table(table, now_ms=NOW_MS + 4000, full=True)
    put(table, [{"id": 1, "_kind": 3}, {"id": 5, "v": "e", "w": 5}], 5)
    put(table, [{"id": 6, "v": "f", "w": 6}], 6)
    for name, one in (("early", 2), ("late", 5)):
        create_tag(table, name, read_snapshot(table.io, table.paths, one), now_ms=NOW_MS)
    return table


def ours(capsys: Capture, warehouse: Path) -> Rows | str:
    done = run_command(capsys, "read", warehouse, "db.t")
    return done.err if done.code else [json.loads(line) for line in done.out.splitlines()]


SAME: dict[str, dict[str, str]] = {
    "newest": {"scan.mode": "latest-full"},
    "full": {"scan.mode": "full"},
    "latest": {"scan.mode": "Latest"},
    "default": {"scan.mode": "default"},
    "snapshot": {"scan.snapshot-id": "2"},
    "snapshot by mode": {"scan.mode": "from-snapshot", "scan.snapshot-id": "3"},
    "snapshot in full": {"scan.mode": "from-snapshot-full", "scan.snapshot-id": "1"},
    "tag": {"scan.tag-name": "early"},
    "time": {"scan.timestamp-millis": str(NOW_MS + 3500)},
    "time of a snapshot": {"scan.timestamp-millis": str(NOW_MS + 2000)},
    "time as text": {"scan.timestamp": "2023-11-14 22:13:23.500"},
    "time as text by mode": {
        "scan.mode": "from-timestamp",
        "scan.timestamp": "2023-11-14 22:13:22",
    },
    "watermark": {"scan.watermark": "200"},
    "watermark between": {"scan.watermark": "201"},
    "watermark by mode": {"scan.mode": "from-snapshot", "scan.watermark": "1"},
    "version of a snapshot": {"scan.version": "2"},
    "version of a tag": {"scan.version": "early"},
    "version of a watermark": {"scan.version": "watermark-201"},
    "time to come": {
        "scan.mode": "from-timestamp",
        "scan.timestamp-millis": str(NOW_MS + 10**12),
    },
    "compacted": {"scan.mode": "compacted-full"},
    "compacted on schedule": {
        "scan.mode": "compacted-full",
        "full-compaction.delta-commits": "3",
    },
    "between": {"incremental-between": "2,3"},
    "between two writes of a key": {"incremental-between": "0,3"},
    "between with a deletion": {"incremental-between": "3,6"},
    "between by mode": {"scan.mode": "incremental", "incremental-between": "5,6"},
    "between nothing": {"incremental-between": "5,5"},
    "between by files": {
        "incremental-between": "1,6",
        "incremental-between-scan-mode": "delta",
    },
}


@pytest.mark.parametrize("options", SAME.values(), ids=SAME)
def test_rows_are_those_of_java(
    oracle: Oracle, tmp_path: Path, capsys: Capture, options: dict[str, str]
) -> None:
    alter(filled(tmp_path), *(SetOption(name, value) for name, value in options.items()))
    found = ours(capsys, tmp_path)
    assert isinstance(found, list), found
    key = lambda row: json.dumps(row, sort_keys=True)  # noqa: E731
    theirs = oracle.read(tmp_path, "db", "t", "--rowkind")
    # What a batch of Java's has of deletions is for audit logs: SQL does not show it as rows.
    added = [row for row in theirs if row.pop("_kind") in ("+I", "+U")]
    assert sorted(found, key=key) == sorted(added, key=key)
    scanned = paimon.open(f"{tmp_path}/db.t").to_arrow().to_pylist()
    assert sorted(scanned, key=key) == sorted(found, key=key)


@pytest.mark.parametrize("between", ["0,2", "1,4", "3,4"])
@pytest.mark.parametrize("producer", ["input", "none"])
@pytest.mark.parametrize("keys", [["id"], []], ids=["keyed", "append"])
def test_what_came_between_is_what_java_says(
    oracle: Oracle, tmp_path: Path, keys: list[str], producer: str, between: str
) -> None:
    options = {"bucket": "1", "bucket-key": "id"}
    if keys:
        options |= {"changelog-producer": producer}
    columns = [("id", "INT"), ("v", "STRING")]
    table = native_table(tmp_path, columns, keys=keys, options=options)
    gone = {"_kind": 3} if keys else {}
    updates = {1: [{"id": 1, "v": "b", "_kind": 2 if keys else 0}], 2: [{"id": 1, **gone}]}
    for number in range(4):
        put(table, updates.get(number, [{"id": 1, "v": "a"}, {"id": number, "v": "c"}]), number + 1)
    alter(table, SetOption("incremental-between", between))
    theirs = oracle.read(tmp_path, "db", "t", "--rowkind")
    added = [row for row in theirs if row.pop("_kind") in ("+I", "+U")]
    found = paimon.open(f"{tmp_path}/db.t").to_arrow().to_pylist()
    assert sorted(map(str, found)) == sorted(map(str, added))


def test_a_tag_precedes_the_snapshot_of_its_name(
    oracle: Oracle, tmp_path: Path, capsys: Capture
) -> None:
    table = filled(tmp_path)
    create_tag(table, "3", read_snapshot(table.io, table.paths, 1), now_ms=NOW_MS)
    first = oracle.read(tmp_path, "db", "t", "--snapshot", 1)
    alter(table, SetOption("scan.version", "3"))
    assert ours(capsys, tmp_path) == oracle.read(tmp_path, "db", "t") == first


REFUSED: dict[str, tuple[dict[str, str], str]] = {
    "no such snapshot": ({"scan.snapshot-id": "9"}, "snapshots 1 to 6 exist"),
    "watermark to come": ({"scan.watermark": "601"}, "no snapshot with a watermark of 601"),
    "no time": ({"scan.timestamp": "yesterday"}, "'scan.timestamp' = 'yesterday' is no time"),
    "two times": (
        {"scan.timestamp": "2023-11-14 22:13:23", "scan.timestamp-millis": "5"}, "exactly one of"
    ),
    "no such version": ({"scan.version": "x"}, "no tag 'x'"),
    "no such tag": ({"scan.tag-name": "x"}, "no tag 'x'"),
    "before the first": ({"scan.timestamp-millis": "1"}, "no snapshot at or before that time"),
    "beyond the last": ({"incremental-between": "2,9"}, "'incremental-between' = '2,9'"),
    "two points": ({"scan.snapshot-id": "1", "scan.tag-name": "early"}, "scan.snapshot-id, scan."),
    "no point": ({"scan.mode": "from-snapshot"}, "'scan.mode' = 'from-snapshot'"),
    "another point": (
        {"scan.mode": "from-timestamp", "scan.snapshot-id": "1"}, "one of scan.timestamp, scan."
    ),
    "unknown mode": ({"scan.mode": "sometimes"}, "'scan.mode' = 'sometimes' is not supported"),
}  # fmt: skip


@pytest.mark.parametrize(("options", "why"), REFUSED.values(), ids=REFUSED)
def test_what_java_refuses_is_refused(
    oracle: Oracle, tmp_path: Path, capsys: Capture, options: dict[str, str], why: str
) -> None:
    alter(filled(tmp_path), *(SetOption(name, value) for name, value in options.items()))
    found = ours(capsys, tmp_path)
    assert isinstance(found, str)
    assert why in found
    with pytest.raises(OracleError):
        oracle.read(tmp_path, "db", "t")


def test_java_writes_on_what_we_committed_beside_such_options(
    oracle: Oracle, tmp_path: Path, capsys: Capture
) -> None:
    """Scan options change neither writers nor compactions."""
    table = alter(filled(tmp_path), SetOption("scan.snapshot-id", "1"))
    put(table, [{"id": 7, "v": "g", "w": 7}], 7)
    compact_table(table, now_ms=NOW_MS + 8000, full=True)
    newest = oracle.read(tmp_path, "db", "t", "--option", "scan.snapshot-id=8")
    assert [row["id"] for row in newest] == [2, 3, 4, 5, 6, 7]
    done = run_command(capsys, "read", tmp_path, "db.t", "--snapshot", "8")
    assert [json.loads(line)["id"] for line in done.out.splitlines()] == [2, 3, 4, 5, 6, 7]
    assert open_native(tmp_path).schema.options["scan.snapshot-id"] == "1"
    assert oracle.fsck(tmp_path, "db", "t", "--all") == []
