import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest

from ingestd.paimon.spec.compaction_options import CompactionOptions, OffPeak, compaction_options
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.table.compact.universal_compaction import (
    CompactionPick,
    PlanningTime,
    RunSize,
    pick_full,
    pick_runs,
)

TOP = 5
SCHEMA = new_schema([("k", parse_type("INT"))], ["k"], [], {"bucket": "1"}, 0)
DEFAULTS = compaction_options(SCHEMA)
NOW = PlanningTime(1_000_000, 0)


def options(**changes: Any) -> CompactionOptions:
    return dataclasses.replace(DEFAULTS, **changes)


def runs(*pairs: tuple[int, int]) -> list[RunSize]:
    return [RunSize(level, size) for level, size in pairs]


def level_0(*sizes: int) -> list[RunSize]:
    return [RunSize(0, size) for size in sizes]


def chosen(
    given: Sequence[RunSize], now: PlanningTime = NOW, **changes: Any
) -> CompactionPick | None:
    return pick_runs(given, TOP, options(**changes), now)


def test_below_the_trigger_nothing_happens() -> None:
    assert chosen([]) is None
    assert chosen(level_0(1, 1, 1, 1)) is None


def test_runs_that_outweigh_the_oldest_one_all_go_to_the_top() -> None:
    given = [*level_0(50, 50, 50, 51), RunSize(TOP, 100)]
    assert chosen(given) == CompactionPick(5, TOP, "amplification")
    # Exactly twice the size is not too much.
    given = [*level_0(50, 50, 50, 50), RunSize(TOP, 100)]
    assert chosen(given) == CompactionPick(5, TOP, "ratio")


def test_runs_of_like_size_are_joined_up_to_the_first_larger_one() -> None:
    given = [*level_0(10, 10), *runs((2, 21), (3, 22), (4, 900), (5, 9000))]
    # 10 + 10 = 20 and one per cent are less than 21.
    assert chosen(given) == CompactionPick(2, 1, "ratio")
    assert chosen(given, size_ratio=5) == CompactionPick(4, 3, "ratio")


def test_too_many_runs_are_reduced_to_the_trigger() -> None:
    given = [*level_0(1, 100), *runs((1, 10_000), (2, 100_000), (3, 10**6), (5, 10**8))]
    assert chosen(given) == CompactionPick(3, 1, "file-num")
    assert chosen(given[1:]) is None


def test_level_0_is_no_place_for_the_outcome() -> None:
    given = [*level_0(10, 10, 900, 5000), *runs((1, 9_000), (5, 10**6))]
    assert chosen(given) == CompactionPick(5, 1, "ratio")
    given = level_0(10, 10, 900, 50_000, 10**6)
    assert chosen(given) == CompactionPick(5, TOP, "ratio")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], None),
        (runs((5, 9)), None),
        (level_0(1), CompactionPick(1, 5, "level-0")),
        ([*level_0(1, 2), *runs((5, 900))], CompactionPick(2, 4, "level-0")),
        ([*level_0(1), *runs((4, 2), (5, 900))], CompactionPick(1, 3, "level-0")),
        ([*level_0(2), *runs((4, 2), (5, 900))], CompactionPick(2, 4, "level-0")),
        ([*level_0(1), *runs((1, 500), (5, 900))], CompactionPick(2, 1, "level-0")),
    ],
)
def test_where_level_0_must_be_empty_its_files_move_up(
    given: list[RunSize], expected: CompactionPick | None
) -> None:
    assert chosen(given, forces_level_0=True) == expected
    assert chosen(given) is None


def test_gently_level_0_is_emptied_when_there_is_enough_of_it() -> None:
    given = [*level_0(1, 1, 1), RunSize(5, 10**6)]
    gentle = {"forces_level_0": True, "min_level_0_runs": 4, "trigger": 9}
    assert chosen(given, **gentle) is None
    assert chosen([RunSize(0, 1), *given], **gentle) == CompactionPick(4, 4, "level-0")


def test_full_compactions_come_early_where_they_are_asked_for() -> None:
    given = [RunSize(0, 1), RunSize(5, 900)]
    assert chosen(given, full_interval_ms=1000) == CompactionPick(2, TOP, "interval")
    late = PlanningTime(2000, 0, 999)
    assert chosen(given, late, full_interval_ms=1000) == CompactionPick(2, TOP, "interval")
    assert chosen(given, PlanningTime(2000, 0, 1000), full_interval_ms=1000) is None
    assert chosen(given, total_size=902) == CompactionPick(2, TOP, "total-size")
    assert chosen(given, total_size=901) is None
    assert chosen(given, incremental_size=0) == CompactionPick(2, TOP, "incremental-size")
    assert chosen(given, incremental_size=1) is None
    assert chosen(given[:1], full_interval_ms=1000, total_size=10**9) is None


def test_off_peak_hours_have_a_ratio_of_their_own() -> None:
    given = [*level_0(10, 11), *runs((2, 24), (3, 900), (5, 9000))]
    night = OffPeak(22, 6, 20)
    assert chosen(given, PlanningTime(0, 12), off_peak=night) is None
    for hour in (22, 5):
        assert chosen(given, PlanningTime(0, hour), off_peak=night) == CompactionPick(3, 2, "ratio")
    assert not OffPeak(1, 3, 9).holds(3)
    assert OffPeak(1, 3, 9).holds(1)


def test_a_full_compaction_takes_everything_unless_it_is_at_the_top_already() -> None:
    assert pick_full([], TOP) is None
    assert pick_full(runs((5, 9)), TOP) is None
    assert pick_full(level_0(1), TOP) == CompactionPick(1, TOP, "full")
    assert pick_full([*level_0(1), *runs((5, 9))], TOP) == CompactionPick(2, TOP, "full")
