from pathlib import Path

from ingestd.paimon.table.compact.sorted_runs import SortedRuns, sorted_runs_of
from ingestd.paimon.table.compact.table_compact import compact_table
from tests.support.native_tables import NOW_MS, native_table, put


def test_nothing_stands_for_nothing() -> None:
    assert sorted_runs_of(None, {}) == SortedRuns(None, 0, {})


def test_level_0_counts_files_and_higher_levels_count_once(tmp_path: Path) -> None:
    table = native_table(tmp_path, [("k", "INT")], keys=["k"], options={"bucket": "1"})
    for k in range(3):
        put(table, [{"k": k}])
    seen = compact_table(table, now_ms=NOW_MS).sorted_runs
    assert (seen.snapshot_id, seen.level_0, list(seen.runs.values())) == (3, 3, [3])
    made = compact_table(table, now_ms=NOW_MS, full=True).sorted_runs
    assert made == SortedRuns(3, 0, {})
    put(table, [{"k": 9}])
    later = compact_table(table, now_ms=NOW_MS).sorted_runs
    assert (later.snapshot_id, later.level_0, list(later.runs.values())) == (5, 1, [2])


def test_append_tables_have_no_runs(tmp_path: Path) -> None:
    table = native_table(tmp_path, [("k", "INT")], options={"bucket": "-1"})
    put(table, [{"k": 1}])
    assert compact_table(table, now_ms=NOW_MS).sorted_runs == SortedRuns(1)


def test_with_a_bound_the_fullest_buckets_are_first_and_the_rest_is_left(tmp_path: Path) -> None:
    table = native_table(tmp_path, [("k", "INT")], keys=["k"], options={"bucket": "4"})
    for n in range(7):
        put(table, [{"k": k} for k in range(40 if n < 5 else 1)])
    first = compact_table(table, now_ms=NOW_MS, most_bytes=1)
    assert (len(first.buckets), first.left, first.buckets[0].files_before) == (1, 3, 7)
    assert sorted(first.sorted_runs.runs.values()) == [5, 5, 5]
    rest = compact_table(table, now_ms=NOW_MS, most_bytes=1 << 30)
    assert (len(rest.buckets), rest.left, dict(rest.sorted_runs.runs)) == (3, 0, {})
