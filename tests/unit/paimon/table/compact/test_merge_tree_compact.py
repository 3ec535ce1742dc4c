"""Which files move, which are rewritten, and what is looked up below them."""

from pathlib import Path
from typing import Any

import pytest

from ingestd.paimon.table.compact.table_compact import CompactResult, compact_table
from ingestd.paimon.table.metadata.file_store_scan import live_files
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.read.incremental_read import read_changelog
from ingestd.paimon.table.read.table_read import index_entries, read_table
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.native_tables import NOW_MS, native_table, put

COLUMNS = [("k", "INT"), ("v", "INT")]
SUM = {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum"}
LOOKUP = {"changelog-producer": "lookup"}
VECTORS = {"deletion-vectors.enabled": "true"}


def new(folder: Path, **options: str) -> FileStoreTable:
    # Every file is large here, so that it moves if it may.
    given = {"bucket": "1", "target-file-size": "20 b", "num-levels": "4", **options}
    return native_table(folder, COLUMNS, keys=["k"], options=given)


def compacted(table: FileStoreTable, *, full: bool = False) -> CompactResult:
    result = compact_table(table, now_ms=NOW_MS, full=full)
    assert verify(table) == []
    return result


def upgraded(result: CompactResult) -> tuple[int, int]:
    (report,) = result.buckets
    return report.upgraded, report.files_after - report.upgraded


def seen(table: FileStoreTable) -> dict[Any, Any]:
    rows = read_table(table)
    return dict(zip(rows.column("k").to_pylist(), rows.column("v").to_pylist(), strict=True))


def levels(table: FileStoreTable) -> list[int]:
    return sorted(e.file.level for e in live_files(table, latest_snapshot(table.io, table.paths)))


def changes(table: FileStoreTable) -> list[tuple[Any, ...]]:
    rows = read_changelog(table)
    return list(zip(*(rows.column(n).to_pylist() for n in ("rowkind", "k", "v")), strict=True))


@pytest.mark.parametrize(
    "options", [{}, LOOKUP, VECTORS, {"merge-engine": "first-row"}, {**SUM, **LOOKUP}]
)
def test_a_file_by_itself_moves_to_the_top(options: dict[str, str], tmp_path: Path) -> None:
    table = new(tmp_path, **options)
    put(table, [{"k": 1, "v": 1}])
    assert upgraded(compacted(table, full=True)) == (1, 0)
    assert (seen(table), levels(table)) == ({1: 1}, [3])


def test_a_file_with_deletions_is_rewritten_for_the_top(tmp_path: Path) -> None:
    table = new(tmp_path)
    put(table, [{"k": 1, "v": 1}])
    put(table, [{"k": 2, "_kind": 3}])
    assert upgraded(compacted(table, full=True)) == (1, 0)
    assert (seen(table), levels(table)) == ({1: 1}, [3])


def forced_up(table: FileStoreTable, rows: list[dict[str, Any]]) -> CompactResult:
    """A file of level 0 moves above a full top level."""
    put(table, [{"k": k, "v": k} for k in range(20)])
    compacted(table, full=True)
    put(table, rows)
    return compacted(table)


@pytest.mark.parametrize(
    ("options", "moves"),
    [
        (LOOKUP, True),
        (VECTORS, True),
        ({**LOOKUP, "sequence.field": "v"}, False),
        ({**SUM, **LOOKUP}, False),
        ({**LOOKUP, "file.format.per.level": "0:avro"}, False),
        ({"compaction.force-up-level-0": "true"}, True),
        ({"compaction.force-up-level-0": "true", "file.format.per.level": "0:avro"}, True),
    ],
)
def test_where_lookups_may_change_rows_files_are_rewritten(
    options: dict[str, str], moves: bool, tmp_path: Path
) -> None:
    table = new(tmp_path, **options)
    result = forced_up(table, [{"k": 5, "v": 50}])
    assert upgraded(result) == ((1, 0) if moves else (0, 1))
    assert levels(table)[0] == 2
    assert seen(table)[5] == (55 if "merge-engine" in options else 50)


def test_the_row_that_is_replaced_gets_into_a_deletion_vector(tmp_path: Path) -> None:
    table = new(tmp_path, **VECTORS)
    forced_up(table, [{"k": 5, "v": 50}, {"k": 6, "_kind": 3}, {"k": 77, "v": 7}])
    assert seen(table) == {**{k: k for k in range(20) if k != 6}, 5: 50, 77: 7}
    snapshot = latest_snapshot(table.io, table.paths)
    assert snapshot is not None
    (entry,) = index_entries(table, snapshot)
    assert sum(dv_range.cardinality or 0 for dv_range in entry.dv_ranges or ()) == 2
    compacted(table, full=True)
    # What is on the top level already waits until nothing else is to be done.
    compacted(table, full=True)
    after = latest_snapshot(table.io, table.paths)
    assert after is not None
    assert [entry.row_count for entry in index_entries(table, after)] == [0]
    assert len(seen(table)) == 20


def test_rows_deleted_by_vectors_are_no_older_rows(tmp_path: Path) -> None:
    table = new(tmp_path, **VECTORS, **LOOKUP)
    forced_up(table, [{"k": 6, "_kind": 3}])
    put(table, [{"k": 6, "v": 66}])
    compacted(table)
    assert changes(table)[20:] == [("-D", 6, 6), ("+I", 6, 66)]
    assert seen(table)[6] == 66


def test_files_of_the_top_level_with_deleted_rows_are_rewritten_on_demand(tmp_path: Path) -> None:
    table = new(tmp_path, **VECTORS)
    forced_up(table, [{"k": 6, "_kind": 3}])
    assert levels(table).count(3) == len(levels(table))
    before = seen(table)
    assert compacted(table).status == "nothing"
    result = compacted(table, full=True)
    assert result.status == "compacted"
    assert compacted(table, full=True).status == "nothing"
    assert seen(table) == before


def test_all_files_are_rewritten_if_that_is_asked_for(tmp_path: Path) -> None:
    table = new(tmp_path, **{"compaction.force-rewrite-all-files": "true"})
    put(table, [{"k": 1, "v": 1}])
    assert upgraded(compacted(table, full=True)) == (0, 1)
    assert upgraded(compacted(table, full=True)) == (0, 1)


def test_what_a_full_compaction_changes_is_reported_once(tmp_path: Path) -> None:
    table = new(tmp_path, **{"changelog-producer": "full-compaction"})
    put(table, [{"k": 1, "v": 1}, {"k": 2, "v": 2}])
    compacted(table, full=True)
    put(table, [{"k": 2, "_kind": 3}, {"k": 3, "v": 3}])
    assert changes(table) == [("+I", 1, 1), ("+I", 2, 2)]
    compacted(table, full=True)
    assert changes(table)[2:] == [("-D", 2, 2), ("+I", 3, 3)]
    assert compacted(table, full=True).status == "nothing"


def test_first_rows_are_reported_and_later_ones_are_not(tmp_path: Path) -> None:
    table = new(tmp_path, **{"merge-engine": "first-row"}, **LOOKUP)
    forced_up(table, [{"k": 5, "v": 50}, {"k": 77, "v": 7}])
    assert changes(table)[20:] == [("+I", 77, 7)]
    assert seen(table) == {**{k: k for k in range(20)}, 77: 7}


@pytest.mark.parametrize(("deduplicate", "kinds"), [("false", ["-U", "+U"]), ("true", [])])
def test_a_row_that_is_written_again_is_a_change_unless_equal_rows_are_left_out(
    deduplicate: str, kinds: list[str], tmp_path: Path
) -> None:
    options = {**LOOKUP, "changelog-producer.row-deduplicate": deduplicate}
    table = new(tmp_path, **options)
    for _ in range(2):
        put(table, [{"k": 1, "v": 1}])
        compacted(table, full=True)
    assert [kind for kind, _, _ in changes(table)] == ["+I", *kinds]
