from dataclasses import replace

import pytest

from ingestd.errors import ConfigError
from ingestd.ingest.maintenance.table_maintenance import (
    CompactionOutcome,
    TableGrowth,
    TableWork,
    rules_of,
)
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.paimon.table.compact.sorted_runs import SortedRuns

A, B = (b"a", 0), (b"a", 1)


def schema(*, keys: bool = True, **options: str) -> TableSchema:
    given = {name.replace("__", ".").replace("_", "-"): one for name, one in options.items()}
    columns = [("k", parse_type("INT")), ("v", parse_type("STRING"))]
    return new_schema(columns, ["k"] if keys else [], [], {"bucket": "1", **given}, 0)


def work(one: TableSchema) -> TableWork:
    return TableWork(rules_of(one), one, first_due_at=5.0, expires_at=60.0)


def append(one: TableWork, snapshot: int, now: float = 0.0, **files: int) -> None:
    places = {"a": A, "b": B}
    growth = {places[name]: count for name, count in files.items()}
    one.committed(TableGrowth(one.schema, snapshot, growth), now)


def compacted(one: TableWork, sorted_runs: SortedRuns, *, full: bool = False) -> None:
    one.running = True
    one.compacted(sorted_runs, CompactionOutcome(changed=True, full=full), 9.0)


def test_a_bucket_is_due_when_it_has_as_many_runs_as_the_trigger() -> None:
    one = work(schema(num_sorted_run__compaction_trigger="4"))
    append(one, 2, a=1, b=1)
    append(one, 3, a=1, b=1)
    assert not one.is_due(0.0)
    append(one, 4, now=1.0, a=1)
    assert one.is_due(1.0)
    assert one.due_since == 1.0


def test_files_of_other_buckets_do_not_add_up() -> None:
    one = work(schema())
    for snapshot in range(1, 4):
        append(one, snapshot, **{"a" if snapshot % 2 else "b": 1})
    assert not one.is_due(0.0)


def test_what_was_appended_while_a_compaction_ran_counts_for_the_next() -> None:
    one = work(schema(num_sorted_run__compaction_trigger="3"))
    append(one, 1, a=2)
    append(one, 5, a=2)
    append(one, 6, b=1)
    compacted(one, SortedRuns(4, 0, {}))
    assert (one.level_0, one.runs) == (3, 3)
    assert one.is_due(9.0)
    compacted(one, SortedRuns(6, 0, {}))
    assert (one.level_0, one.runs) == (0, 0)
    assert not one.is_due(9.0)


@pytest.mark.parametrize("snapshot", [1, 11])
def test_commits_that_were_rolled_back_or_dropped_do_not_count_for_ever(snapshot: int) -> None:
    one = work(schema(num_sorted_run__compaction_trigger="3", num_sorted_run__stop_trigger="4"))
    append(one, 1, a=1)
    append(one, 1000, a=2)
    for number in range(snapshot, snapshot + 5):
        append(one, number, a=1)
        compacted(one, SortedRuns(number, 0, {A: 1}))
        assert (one.runs, one.is_over_stop, one.is_due(9.0)) == (1, False, False)


def test_runs_above_level_0_count() -> None:
    one = work(schema(num_sorted_run__compaction_trigger="5"))
    compacted(one, SortedRuns(4, 1, {A: 4}))
    assert not one.is_due(9.0)
    append(one, 5, b=1)
    assert not one.is_due(9.0)
    append(one, 6, a=1)
    assert one.is_due(9.0)
    assert (one.level_0, one.runs) == (3, 5)


def test_a_compaction_that_leaves_too_many_runs_is_followed_by_another() -> None:
    one = work(schema())
    compacted(one, SortedRuns(4, 7, {A: 7}))
    assert one.is_due(9.0)
    one.compacted(SortedRuns(4, 7, {A: 7}), CompactionOutcome(), 9.0)
    assert not one.is_due(9.0)


@pytest.mark.parametrize(
    "options",
    [
        {"deletion_vectors__enabled": "true"},
        {"merge_engine": "first-row"},
        {"changelog_producer": "lookup"},
        {"compaction__force_up_level_0": "true"},
        {"compaction__optimization_interval": "1 h"},
    ],
)
def test_tables_that_show_nothing_of_level_0_are_due_with_every_file(
    options: dict[str, str],
) -> None:
    one = work(schema(**options))
    append(one, 1)
    assert not one.is_due(0.0)
    append(one, 2, a=1)
    assert one.is_due(0.0)


def test_gentle_lookup_waits_for_its_number_of_files() -> None:
    one = work(schema(changelog_producer="lookup", lookup_compact="gentle",
                      num_sorted_run__compaction_trigger="9"))  # fmt: skip
    append(one, 1, a=1)
    assert not one.is_due(0.0)


def test_full_compactions_come_after_their_number_of_commits() -> None:
    one = work(schema(changelog_producer="full-compaction"))
    append(one, 1, a=1)
    assert one.is_full_due
    assert one.is_due(0.0)
    append(one, 3, a=1)
    compacted(one, SortedRuns(2, 0, {}), full=True)
    assert one.is_full_due
    compacted(one, SortedRuns(3, 0, {}), full=True)
    assert not one.is_full_due
    assert not one.is_due(9.0)
    every_three = work(schema(full_compaction__delta_commits="3"))
    append(every_three, 1, a=1)
    append(every_three, 2, a=1)
    assert not every_three.is_full_due
    append(every_three, 3, a=1)
    assert every_three.is_full_due


def test_append_tables_are_due_when_there_are_enough_new_files() -> None:
    one = work(schema(keys=False, bucket="-1"))
    append(one, 1, a=4)
    assert not one.is_due(0.0)
    append(one, 2, a=1)
    assert one.is_due(0.0)
    compacted(one, SortedRuns(2))
    assert (one.level_0, one.runs) == (None, None)
    assert not one.is_over_stop


def test_more_runs_than_the_stop_trigger_are_reported_once_they_are_known() -> None:
    one = work(schema(num_sorted_run__stop_trigger="6"))
    append(one, 2, a=100)
    assert not one.is_over_stop
    compacted(one, SortedRuns(2, 0, {A: 6}))
    assert not one.is_over_stop
    append(one, 3, a=1)
    assert one.is_over_stop


def test_what_is_due_is_pressing_one_run_before_the_stop_trigger_known_or_not() -> None:
    one = work(schema(num_sorted_run__stop_trigger="7"))
    append(one, 2, a=4)
    assert one.is_due(9.0)
    assert not one.is_pressing(9.0)
    append(one, 3, a=1)
    assert one.is_pressing(9.0)
    assert not one.is_over_stop
    compacted(one, SortedRuns(3, 0, {A: 2}))
    assert not one.is_pressing(9.0)


@pytest.mark.parametrize("keys", [True, False])
def test_what_has_been_due_for_a_minute_is_pressing(keys: bool) -> None:
    options = {"bucket": "-1", "num_sorted_run__stop_trigger": "1000"}
    one = work(schema(keys=keys, **options))
    append(one, 2, now=10.0, a=20)
    assert not one.is_pressing(69.0)
    assert one.is_pressing(70.0)


def test_a_first_look_is_pressing_after_a_minute_too() -> None:
    one = work(schema())
    assert not one.is_pressing(64.0)
    assert one.is_pressing(65.0)


def test_of_a_table_that_begins_with_the_driver_everything_is_known() -> None:
    one = work(schema())
    append(one, 1, a=2, b=1)
    assert (one.level_0, one.runs, one.is_due(9.0)) == (3, 2, False)
    append(one, 2, a=2)
    assert not one.is_due(100.0)
    append(one, 3, a=1)
    assert one.is_due(100.0)
    rows = work(schema(keys=False, bucket="-1"))
    append(rows, 1, a=2)
    assert (rows.level_0, rows.runs, rows.is_due(9.0)) == (None, None, False)


def test_a_table_is_looked_at_once_after_the_start() -> None:
    one = work(schema())
    assert not one.is_due(4.9)
    assert one.is_due(5.0)
    compacted(one, SortedRuns(1))
    assert not one.is_due(100.0)


def test_after_failures_it_waits_longer_each_time() -> None:
    one = work(schema())
    waits = []
    for _ in range(12):
        one.failed(0.0)
        assert not one.is_due(0.5)
        waits.append(one.not_before)
    assert waits[:3] == [1.0, 2.0, 4.0]
    assert waits[-1] == 300.0
    assert one.is_due(300.0)
    compacted(one, SortedRuns(1))
    one.failed(0.0)
    assert one.not_before == 1.0


def test_expiry_of_a_quiet_table_comes_less_and_less_often() -> None:
    one = work(schema())
    waits = []
    for _ in range(10):
        one.expired(0.0, 60.0)
        waits.append(one.expires_at)
    assert waits[:3] == [60.0, 120.0, 240.0]
    assert waits[-1] == 3600.0
    one.touched()
    one.expired(0.0, 60.0)
    assert one.expires_at == 60.0


def test_a_new_schema_brings_new_rules() -> None:
    one = work(schema())
    after = schema(num_sorted_run__compaction_trigger="2")
    one.committed(TableGrowth(after, 1, {A: 1}), 0.0)
    assert one.rules.runs == 2


def test_options_that_cannot_be_understood_are_refused() -> None:
    good = schema()
    broken = replace(good, options={"num-levels": "1"})
    with pytest.raises(ConfigError, match="num-levels"):
        rules_of(broken)


def test_what_a_compaction_has_left_is_due_at_once() -> None:
    one = work(schema(changelog_producer="full-compaction"))
    append(one, 1, a=1)
    one.compacted(SortedRuns(1), CompactionOutcome(changed=True, left=True, full=True), 9.0)
    assert one.is_due(9.0)
    assert one.is_full_due
    one.compacted(SortedRuns(1), CompactionOutcome(changed=True, full=True), 9.0)
    assert not one.is_due(9.0)


def test_many_unexamined_commits_are_no_longer_distinguished() -> None:
    one = work(schema(num_sorted_run__compaction_trigger="100000"))
    for snapshot in range(1, 1001):
        append(one, snapshot, a=1)
    assert len(one._runs.commits) == 256
    compacted(one, SortedRuns(500))
    assert one.level_0 == 1000
    compacted(one, SortedRuns(990))
    assert one.level_0 == 10
    compacted(one, SortedRuns(1000))
    assert one.level_0 == 0
