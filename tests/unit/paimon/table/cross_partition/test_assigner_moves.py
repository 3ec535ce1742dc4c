"""What each merge engine makes of keys that come with another partition."""

import numpy as np

from ingestd.paimon.table.cross_partition.assigner import (
    NOWHERE,
    KeyMoves,
    KeyRows,
    ends_deleted,
    moves_of,
)

A, B, C = 0, 1, 2
ADD, BEFORE, AFTER, DELETE = range(4)


def rows(old: int, *changes: tuple[int, int]) -> KeyRows:
    """One key that was in a partition, and (kind, partition) of its rows."""
    kinds, partitions = zip(*changes, strict=True)
    return KeyRows(
        np.zeros(len(changes), np.int64),
        np.array(kinds, np.int8),
        np.array(partitions, np.int64),
        np.array([old], np.int64),
    )


def moves(engine: str, key_rows: KeyRows, *, every_step: bool = True) -> tuple[object, ...]:
    return _plain(moves_of(engine, key_rows, every_step=every_step))


def _plain(key_moves: KeyMoves) -> tuple[object, ...]:
    moving = list(zip(key_moves.moving.tolist(), key_moves.moved_from.tolist(), strict=True))
    return key_moves.target.tolist(), key_moves.is_written.tolist(), moving


def test_a_row_of_a_new_key_goes_where_it_says() -> None:
    for engine in ("deduplicate", "partial-update", "aggregation", "first-row"):
        assert moves(engine, rows(NOWHERE, (ADD, B))) == ([B], [True], [])


def test_deduplicate_deletes_where_the_key_was() -> None:
    assert moves("deduplicate", rows(A, (AFTER, B))) == ([B], [True], [(0, A)])
    assert moves("deduplicate", rows(A, (AFTER, A))) == ([A], [True], [])


def test_deduplicate_takes_back_where_the_key_is() -> None:
    assert moves("deduplicate", rows(A, (DELETE, C))) == ([A], [True], [])
    assert moves("deduplicate", rows(NOWHERE, (DELETE, C))) == ([C], [True], [])
    assert moves("deduplicate", rows(A, (AFTER, B), (DELETE, A))) == ([B, B], [True] * 2, [(0, A)])


def test_deduplicate_follows_every_step_if_it_has_to() -> None:
    path = rows(A, (BEFORE, A), (AFTER, B), (BEFORE, B), (AFTER, C))
    assert moves("deduplicate", path) == ([A, B, B, C], [True] * 4, [(1, A), (3, B)])


def test_deduplicate_leaves_out_what_a_key_only_passes() -> None:
    path = rows(A, (AFTER, B), (BEFORE, B), (AFTER, C))
    key_moves = moves("deduplicate", path, every_step=False)
    assert key_moves == ([B, B, C], [False, False, True], [(0, A)])
    back = rows(A, (AFTER, B), (AFTER, A))
    assert moves("deduplicate", back, every_step=False) == ([B, A], [False, True], [(0, A)])


def test_merging_engines_go_on_in_the_old_partition() -> None:
    for engine in ("partial-update", "aggregation"):
        assert moves(engine, rows(A, (ADD, B), (ADD, C))) == ([A, A], [True, True], [])
        assert moves(engine, rows(NOWHERE, (ADD, B), (ADD, C))) == ([B, B], [True, True], [])


def test_first_row_leaves_out_rows_of_other_partitions() -> None:
    assert moves("first-row", rows(A, (ADD, B), (ADD, A))) == ([A, A], [False, True], [])
    assert moves("first-row", rows(NOWHERE, (ADD, B), (ADD, C))) == ([B, B], [True, False], [])


def test_keys_do_not_disturb_each_other() -> None:
    many = KeyRows(
        np.array([0, 0, 1, 2]),
        np.array([AFTER, AFTER, DELETE, AFTER], np.int8),
        np.array([B, C, B, A]),
        np.array([A, NOWHERE, B]),
    )
    key_moves = _plain(moves_of("deduplicate", many, every_step=True))
    assert key_moves == ([B, C, B, A], [True] * 4, [(0, A), (1, B), (3, B)])
    assert ends_deleted(many, "deduplicate", remove_on_delete=False).tolist() == [
        False,
        True,
        False,
    ]


def test_a_key_is_gone_if_its_last_row_removes_it() -> None:
    deleted, taken_back = rows(A, (ADD, A), (DELETE, A)), rows(A, (BEFORE, A))
    for engine, remove, expected in (
        ("deduplicate", False, [True, True]), ("aggregation", False, [False, False]),
        ("aggregation", True, [True, False]), ("partial-update", True, [True, False]),
    ):  # fmt: skip
        key_moves = [
            ends_deleted(key_rows, engine, remove_on_delete=remove)[0]
            for key_rows in (deleted, taken_back)
        ]
        assert key_moves == expected
