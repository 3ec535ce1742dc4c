"""The rows of changes, by what is known of their keys and before images."""

import numpy as np
import pytest

from ingestd.cdc.row_layout import (
    ABSENT,
    OldKeys,
    RowLayout,
    row_layout,
    row_layout_with_images,
)
from ingestd.paimon.spec.data_types import RowKind

KINDS = np.array([0, 2, 2, 2, 3, 3], np.int8)
"""An insert, three updates and two deletes."""
BEFORE = np.array([False, True, True, True, True, False])
COMPLETE = np.array([False, True, True, False, False, False])
MOVED = np.array([True, False, True, True, True, True])
OLD = OldKeys(COMPLETE, MOVED)
B = len(KINDS)
"""Where the before images begin."""


def told(layout: RowLayout) -> list[tuple[int, str, int, int]]:
    """Change, row kind, and positions of key and values of each row."""
    kinds = [RowKind(kind).symbol for kind in layout.kinds.tolist()]
    found = (layout.changes.tolist(), kinds, layout.keys.tolist(), layout.values.tolist())
    return list(zip(*found, strict=True))


def test_an_update_that_changed_its_key_deletes_the_old_one_first() -> None:
    assert told(row_layout(KINDS, OLD)) == [
        (0, "+I", 0, 0),
        (1, "+U", 1, 1),
        (2, "-D", B + 2, ABSENT), (2, "+U", 2, 2),
        (3, "+U", 3, 3),
        (4, "-D", 4, 4),
        (5, "-D", 5, 5),
    ]  # fmt: skip


def test_with_images_updates_are_two_rows_and_deletes_have_the_key_of_their_message() -> None:
    assert told(row_layout_with_images(KINDS, OLD, BEFORE)) == [
        (0, "+I", 0, 0),
        (1, "-U", B + 1, B + 1), (1, "+U", 1, 1),
        (2, "-D", B + 2, B + 2), (2, "+I", 2, 2),
        (3, "+U", 3, 3),
        (4, "-D", 4, B + 4),
        (5, "-D", 5, 5),
    ]  # fmt: skip


def test_the_new_row_of_a_partial_update_stays_an_update() -> None:
    layout = row_layout_with_images(KINDS, OLD, BEFORE, partial=True)
    assert [row[:2] for row in told(layout)][3:5] == [(2, "-D"), (2, "+U")]


@pytest.mark.parametrize("kinds", [[], [0, 0], [3]])
def test_without_updates_each_change_is_one_row(kinds: list[int]) -> None:
    none, places = np.zeros(len(kinds), np.bool_), list(range(len(kinds)))
    layout = row_layout(np.array(kinds, np.int8), OldKeys(none, none))
    assert layout.kinds.tolist() == kinds
    assert layout.changes.tolist() == layout.keys.tolist() == layout.values.tolist() == places
