"""Overwriting, emptying and dropping: what goes, what stays, and that nothing is lost by a race."""

from typing import Any

import pytest

from ingestd.errors import ConfigError, UnsupportedError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind
from ingestd.paimon.table.commit.overwrite import (
    drop_partitions,
    overwrite,
    replaced_partitions,
    truncate_table,
)
from ingestd.paimon.table.commit.table_commit import CommitResult
from ingestd.paimon.table.metadata.file_store_scan import live_files
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.partition_spec import parse_partition_spec, partition_filter
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.metadata.table_state import TableState, load_state
from ingestd.paimon.table.verify.table_verify import verify
from ingestd.paimon.table.write.commit_message import ManifestCommittable
from tests.support.native_tables import NOW_MS, native_table, put, rows_table, write
from tests.support.stored_rows import stored_rows

COLUMNS = [("id", "INT"), ("dt", "STRING"), ("hr", "INT"), ("v", "STRING")]


def new_table(**options: str) -> FileStoreTable:
    return native_table(
        "/w",
        COLUMNS,
        keys=["id", "dt", "hr"],
        partitions=["dt", "hr"],
        options={"bucket": "2", **options},
        io=MemoryFileIO(),
    )


def row(number: int, dt: str, hr: int, v: str = "old") -> dict[str, Any]:
    return {"id": number, "dt": dt, "hr": hr, "v": v}


def filled(**options: str) -> FileStoreTable:
    table = new_table(**options)
    put(table, [row(n, "ab"[n % 2], n % 3) for n in range(12)])
    put(table, [row(0, "a", 0, "newer")])
    return table


def replaced(
    table: FileStoreTable, rows: list[dict[str, Any]], partition: Any = None
) -> CommitResult:
    state = load_state(table)
    part = rows_table(table.schema, rows, state.max_sequence_number + 1)
    committable = ManifestCommittable(
        BATCH_COMMIT_IDENTIFIER, tuple(write(table, TableState(None), part))
    )
    return overwrite(table, "user", committable, partition, state=state, now_ms=NOW_MS)


def partitions(table: FileStoreTable) -> set[tuple[Any, ...]]:
    return {(stored_row["dt"], stored_row["hr"]) for stored_row in stored_rows(table)}


ALL = {("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1), ("b", 2)}


@pytest.mark.parametrize("bucket", ["2", "-1"])
def test_dropping_partitions_leaves_the_others_alone(bucket: str) -> None:
    table = filled(bucket=bucket)
    result = drop_partitions(table, [parse_partition_spec(table, "dt=a,hr=1")], now_ms=NOW_MS)
    assert result.snapshot is not None
    assert result.snapshot.commit_kind == CommitKind.OVERWRITE
    assert partitions(table) == ALL - {("a", 1)}
    assert verify(table) == []


def test_some_columns_name_all_partitions_that_agree() -> None:
    table = filled()
    specs = [parse_partition_spec(table, text) for text in ("hr=1", "dt=b,hr=2")]
    drop_partitions(table, specs, now_ms=NOW_MS)
    assert partitions(table) == ALL - {("a", 1), ("b", 1), ("b", 2)}
    assert verify(table) == []


def test_what_was_dropped_can_be_written_again() -> None:
    table = filled(bucket="-1")
    drop_partitions(table, [{"dt": "a", "hr": 0}], now_ms=NOW_MS)
    put(table, [row(7, "a", 0), row(0, "b", 0, "changed")])
    assert {(r["id"], r["v"]) for r in stored_rows(table) if r["dt"] == "a" and r["hr"] == 0} == {
        (7, "old")
    }
    assert verify(table) == []


def test_dropping_without_a_name_is_refused() -> None:
    table = filled()
    for specs in ([], [{}]):
        with pytest.raises(ConfigError, match="name at least one"):
            drop_partitions(table, specs, now_ms=NOW_MS)
    assert partitions(table) == ALL


def test_a_truncated_table_is_empty_and_its_past_is_not() -> None:
    table = filled(bucket="-1")
    before = latest_snapshot(table.io, table.paths)
    result = truncate_table(table, now_ms=NOW_MS)
    assert result.snapshot is not None
    assert result.snapshot.total_record_count == 0
    assert stored_rows(table) == []
    assert len(live_files(table, before)) > 0
    assert verify(table) == []


def test_only_the_partitions_of_new_rows_are_overwritten() -> None:
    table = filled()
    replaced(table, [row(99, "a", 0, "new")])
    found = {(r["id"], r["v"]) for r in stored_rows(table) if (r["dt"], r["hr"]) == ("a", 0)}
    assert found == {(99, "new")}
    assert partitions(table) == ALL
    assert verify(table) == []


def test_nothing_new_overwrites_nothing() -> None:
    table = filled()
    assert replaced(table, []).status == "empty"
    assert partitions(table) == ALL


def test_a_named_partition_is_overwritten_where_the_table_says_so() -> None:
    table = filled(**{"dynamic-partition-overwrite": "false"})
    replaced(table, [row(99, "a", 0, "new")], {"dt": "a"})
    assert partitions(table) == {("a", 0), *(one for one in ALL if one[0] == "b")}
    with pytest.raises(ConfigError, match="'dt': 'b'"):
        replaced(table, [row(99, "b", 0, "new")], {"dt": "a"})
    replaced(table, [row(1, "c", 0)])
    assert partitions(table) == {("c", 0)}


def test_files_that_do_not_overlap_land_on_the_top_level() -> None:
    table = filled(**{"num-levels": "4"})
    replaced(table, [row(n, "a", 0, "new") for n in range(8)])
    snapshot = latest_snapshot(table.io, table.paths)
    levels = {e.file.level for e in live_files(table, snapshot) if e.file.min_sequence_number > 12}
    assert levels == {3}
    assert verify(table) == []


def test_files_stay_below_where_the_table_wants_no_upgrade() -> None:
    table = filled(**{"overwrite-upgrade": "false"})
    replaced(table, [row(1, "a", 0, "new")])
    snapshot = latest_snapshot(table.io, table.paths)
    assert {entry.file.level for entry in live_files(table, snapshot)} == {0}


def test_an_overwrite_takes_out_what_came_after_its_plan() -> None:
    table = filled()
    state = load_state(table)
    part = rows_table(table.schema, [row(99, "a", 0, "new")], 1000)
    messages = tuple(write(table, TableState(None), part))
    put(table, [row(5, "a", 0, "between"), row(5, "b", 0, "between")])
    overwrite(table, "u", ManifestCommittable(1, messages), state=state, now_ms=NOW_MS)
    assert {r["v"] for r in stored_rows(table) if (r["dt"], r["hr"]) == ("a", 0)} == {"new"}
    assert "between" in {r["v"] for r in stored_rows(table) if r["dt"] == "b"}
    assert verify(table) == []


def test_what_would_go_is_reported_before() -> None:
    table = filled()
    snapshot = latest_snapshot(table.io, table.paths)
    found = replaced_partitions(table, snapshot, partition_filter(table, [{"dt": "a", "hr": 0}]))
    assert [(one.files, one.rows) for one in found] == [(3, 3)]
    assert sum(one.rows for one in replaced_partitions(table, snapshot, None)) == 13
    assert replaced_partitions(table, None, None) == []


def test_tables_are_emptied_whatever_writing_into_them_would_ask_for() -> None:
    table = new_table(**{"deletion-vectors.enabled": "true", "changelog-producer": "lookup"})
    assert truncate_table(table, now_ms=NOW_MS).status == "committed"
    strange = new_table(**{"metadata.iceberg.storage": "glue-catalog"})
    with pytest.raises(UnsupportedError, match="iceberg"):
        truncate_table(strange, now_ms=NOW_MS)
