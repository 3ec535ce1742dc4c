"""Blocks of rows by hand: (key, value, kind, level), newest last."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ingestd.paimon.merge.merged_rows import LEVEL
from ingestd.paimon.spec.data_types import DataField, parse_type
from ingestd.paimon.spec.merge_rules import FieldFunction, MergeRules
from ingestd.paimon.spec.record_level_expire import ExpiredRows
from ingestd.paimon.table.compact.changelog_rows import ChangeRules
from ingestd.paimon.table.compact.row_merge import Compacted, RowRules, compact_block
from ingestd.paimon.table.compact.sorted_input import FILE, POSITION, Source

SUM = MergeRules("aggregation", functions={"v": FieldFunction("sum")})
TOP = 5


def part(
    rows: Sequence[tuple[Any, ...]], level: int, first: int, *, row_positions: bool = False
) -> pa.Table:
    """Rows of one run: (key, value) or (key, value, kind)."""
    columns: dict[str, Any] = {
        "_SEQUENCE_NUMBER": np.arange(first, first + len(rows)),
        "_VALUE_KIND": pa.array([row[2] if len(row) > 2 else 0 for row in rows], pa.int8()),
        "k": pa.array([row[0] for row in rows], pa.int32()),
        "v": pa.array([row[1] for row in rows], pa.int32()),
        LEVEL: np.full(len(rows), level, np.int32),
    }
    if row_positions:
        columns[FILE] = np.zeros(len(rows), np.int32)
        columns[POSITION] = np.arange(len(rows)) + 100
    return pa.table(columns)


def block(
    *runs: tuple[int, Sequence[tuple[Any, ...]]],
    picked: int = 9,
    row_positions: bool = False,
    **rules: Any,
) -> Compacted:
    """Runs by level from the newest to the oldest; those after `picked` are only asked."""
    sources = [Source(level, (), (), n < picked) for n, (level, _) in enumerate(runs)]
    parts = [
        (n, part(rows, level, 100 * (len(runs) - n), row_positions=row_positions))
        for n, (level, rows) in enumerate(runs)
        if rows
    ]
    given = {"merge": MergeRules(), "drops_deletes": False, **rules}
    return compact_block(parts, sources, RowRules(key_names=("k",), columns=("k", "v"), **given))


def told(rows: pa.Table | None) -> list[tuple[Any, ...]]:
    if rows is None:
        return []
    kinds = [("+I", "-U", "+U", "-D")[kind] for kind in rows.column("_VALUE_KIND").to_pylist()]
    cells = zip(kinds, rows.column("k").to_pylist(), rows.column("v").to_pylist(), strict=True)
    return list(cells)


def test_the_newest_row_of_a_key_stays() -> None:
    found = block((0, [(1, 11)]), (0, [(1, 10), (2, 20)]), (TOP, [(1, 9), (3, 30)]))
    assert told(found.rows) == [("+I", 1, 11), ("+I", 2, 20), ("+I", 3, 30)]
    assert found.rows.column_names == ["_SEQUENCE_NUMBER", "_VALUE_KIND", "k", "v"]


def test_sequence_numbers_decide_where_runs_overlap_in_them() -> None:
    newer = part([(1, 1), (2, 2)], 0, 10)
    older = part([(1, 9), (2, 9)], 0, 9)
    sources = [Source(0, (), ()), Source(0, (), ())]
    rules = RowRules(MergeRules(), ("k",), ("k", "v"), drops_deletes=False)
    found = compact_block([(0, newer), (1, older)], sources, rules)
    assert told(found.rows) == [("+I", 1, 1), ("+I", 2, 2)]


def test_rows_that_delete_go_only_where_they_may() -> None:
    runs = ((0, [(1, None, 3), (2, 2)]), (TOP, [(1, 1)]))
    assert told(block(*runs).rows) == [("-D", 1, None), ("+I", 2, 2)]
    assert told(block(*runs, drops_deletes=True).rows) == [("+I", 2, 2)]
    assert told(block((0, [(1, None, 3)]), drops_deletes=True).rows) == []


def test_all_levels_add_up_where_each_has_a_part() -> None:
    found = block((0, [(1, 1)]), (3, [(1, 10)]), (TOP, [(1, 100)]), merge=SUM)
    assert told(found.rows) == [("+I", 1, 111)]


def test_a_lookup_finds_the_row_of_the_lowest_level_that_has_one() -> None:
    runs = ((0, [(1, 1)]), (3, [(1, 10), (2, 20)]), (TOP, [(1, 999), (4, 40)]))
    found = block(*runs, picked=1, looks_up=True, merge=SUM)
    assert told(found.rows) == [("+I", 1, 11)]
    # A level that is compacted itself holds what is below it.
    found = block(*runs, picked=2, looks_up=True, merge=SUM)
    assert told(found.rows) == [("+I", 1, 11), ("+I", 2, 20)]


def test_the_older_row_is_deleted_by_its_place() -> None:
    runs = ((0, [(1, 1), (3, 3)]), (TOP, [(1, 9), (2, 9), (3, 9)]))
    found = block(*runs, picked=1, looks_up=True, row_positions=True, drops_deletes=True)
    assert told(found.rows) == [("+I", 1, 1), ("+I", 3, 3)]
    ((source, file, positions),) = found.deleted
    assert (source, file, positions.tolist()) == (1, 0, [100, 102])


def test_of_older_rows_the_keys_are_enough() -> None:
    newer = part([(1, 1), (2, None, 3)], 0, 50, row_positions=True)
    older = part([(1, 9), (2, 9)], TOP, 0, row_positions=True).select(["k", LEVEL, FILE, POSITION])
    rules = RowRules(
        MergeRules(), ("k",), ("k", "v"), drops_deletes=True, looks_up=True, keeps_older=False
    )
    sources = [Source(0, (), ()), Source(TOP, (), (), picked=False)]
    found = compact_block([(0, newer), (1, older)], sources, rules)
    assert told(found.rows) == [("+I", 1, 1)]
    assert [positions.tolist() for _, _, positions in found.deleted] == [[100, 101]]


def test_the_first_row_of_a_key_keeps_later_ones_out() -> None:
    rules = {"merge": MergeRules("first-row"), "looks_up": True, "changes": ChangeRules()}
    runs = ((0, [(1, 1), (2, 2), (3, 3)]), (3, [(2, 20)]), (TOP, [(1, 10)]))
    found = block(*runs, picked=2, **rules)
    assert told(found.rows) == [("+I", 2, 20), ("+I", 3, 3)]
    assert told(found.changes) == [("+I", 3, 3)]


CHANGED = (
    (0, [(1, 11), (2, None, 3), (3, 3), (4, None, 3), (5, 50)]),
    (TOP, [(1, 10), (2, 20), (5, 50), (6, 60)]),
)
CHANGES = [
    ("-U", 1, 10), ("+U", 1, 11), ("-D", 2, 20), ("+I", 3, 3), ("-U", 5, 50), ("+U", 5, 50),
]  # fmt: skip


def test_a_lookup_shows_what_has_changed() -> None:
    found = block(*CHANGED, picked=1, looks_up=True, drops_deletes=True, changes=ChangeRules())
    assert told(found.changes) == CHANGES
    assert told(found.rows) == [("+I", 1, 11), ("+I", 3, 3), ("+I", 5, 50)]
    assert found.changes is not None
    # Rows before have their own sequence numbers.
    assert found.changes.column("_SEQUENCE_NUMBER").to_pylist()[:2] == [100, 200]


def test_a_full_compaction_shows_what_has_changed_on_the_top_level() -> None:
    found = block(*CHANGED, drops_deletes=True, changes=ChangeRules(), top_level=TOP)
    assert told(found.changes) == CHANGES
    middle = ((0, [(1, 1)]), (3, [(1, 2), (2, 2)]), (TOP, [(1, 3)]))
    found = block(*middle, drops_deletes=True, changes=ChangeRules(), top_level=TOP)
    assert told(found.changes) == [("-U", 1, 3), ("+U", 1, 1), ("+I", 2, 2)]


def test_what_is_as_before_is_no_change_if_that_is_wanted() -> None:
    changes = ChangeRules(compared=("k", "v"))
    found = block(*CHANGED, picked=1, looks_up=True, drops_deletes=True, changes=changes)
    assert told(found.changes) == CHANGES[:4]
    nulls = ((0, [(1, None), (2, None)]), (TOP, [(1, None), (2, 2)]))
    found = block(*nulls, picked=1, looks_up=True, changes=changes)
    assert told(found.changes) == [("-U", 2, 2), ("+U", 2, None)]


def test_who_looks_up_merges_a_row_that_is_alone() -> None:
    alone = ((0, [(1, 4, 3)]),)
    assert told(block(*alone, merge=SUM).rows) == [("-D", 1, 4)]
    single = MergeRules("aggregation", functions=SUM.functions, merges_single=True)
    assert told(block(*alone, merge=single, looks_up=True).rows) == [("+I", 1, -4)]


EXPIRED = ExpiredRows(DataField(1, "v", parse_type("INT")), 10)
"""Rows with a value below 10."""


def test_expired_rows_are_not_merged() -> None:
    runs = ((0, [(1, 11), (2, 2), (4, 4)]), (TOP, [(1, 1), (2, 20), (3, 3)]))
    found = block(*runs, merge=SUM, expired=EXPIRED)
    assert told(found.rows) == [("+I", 1, 11), ("+I", 2, 20)]
    assert told(block((0, [(1, 1)]), (TOP, [(1, 2)]), expired=EXPIRED).rows) == []


def test_an_expired_row_is_deleted_by_its_place_and_missing_in_the_changelog() -> None:
    runs = ((0, [(1, 11), (2, 2), (3, 30)]), (TOP, [(1, 1), (2, 20), (3, 13)]))
    found = block(
        *runs, picked=1, looks_up=True, row_positions=True, changes=ChangeRules(None),
        expired=EXPIRED,
    )  # fmt: skip
    assert told(found.rows) == [("+I", 1, 11), ("+I", 3, 30)]
    assert told(found.changes) == [("+I", 1, 11), ("-U", 3, 13), ("+U", 3, 30)]
    ((source, file, positions),) = found.deleted
    assert (source, file, positions.tolist()) == (1, 0, [100, 102])


def test_a_lookup_ignores_expired_rows_of_a_lower_level() -> None:
    runs = ((0, [(1, 11)]), (3, [(1, 1)]), (TOP, [(1, 100)]))
    assert told(block(*runs, picked=1, looks_up=True, merge=SUM, expired=EXPIRED).rows) == [
        ("+I", 1, 111)
    ]


def test_a_lookup_for_expired_rows_only_changes_nothing() -> None:
    runs = ((0, [(1, 1)]), (TOP, [(1, 100)]))
    found = block(*runs, picked=1, looks_up=True, changes=ChangeRules(None), expired=EXPIRED)
    assert (told(found.rows), told(found.changes), found.deleted) == ([], [], ())
    first = MergeRules("first-row")
    assert told(block(*runs, picked=1, looks_up=True, merge=first, expired=EXPIRED).rows) == []
