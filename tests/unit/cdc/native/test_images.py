"""Rows of native cells with more rows between them; see test_row_images for what they mean."""

from typing import Any

import numpy as np
import pyarrow as pa

from ingestd.cdc.native.cells import Cells
from ingestd.cdc.native.images import Rows, with_images, with_old_keys

KINDS = np.array([0, 2, 2, 3, 3], np.int8)


def cells(values: list[Any], left_out: list[bool] | None = None) -> Cells:
    return Cells(pa.array(values), None if left_out is None else np.array(left_out), len(values))


ROWS = Rows({"k": cells([1, 2, 3, 4, 5]), "v": cells(["a", "b", "c", None, None])}, KINDS, None)
OLD = {"k": cells([None, 2, 9, 8, None]), "v": cells([None, "B", "C", "D", None])}
THERE = np.array([False, True, True, True, False])


def told(rows: Rows) -> list[tuple[Any, ...]]:
    assert rows.events is not None
    columns = [one.array.to_pylist() for one in rows.cells.values()]
    return list(zip(rows.events.tolist(), rows.kinds.tolist(), *columns, strict=True))


def test_updates_are_two_rows_and_deletes_have_the_key_of_their_message() -> None:
    assert told(with_images(ROWS, OLD, THERE, ("k",))) == [
        (0, 0, 1, "a"),
        (1, 1, 2, "B"), (1, 2, 2, "b"),
        (2, 3, 9, "C"), (2, 0, 3, "c"),
        (3, 3, 4, "D"),
        (4, 3, 5, None),
    ]  # fmt: skip


def test_marks_of_cells_that_were_left_out_stay_with_their_rows() -> None:
    rows = Rows(
        {**ROWS.cells, "v": cells(["a", None, "c", None, None], [False, True] + [False] * 3)},
        KINDS,
        None,
    )
    found = with_images(rows, OLD, THERE, ("k",)).cells["v"].left_out
    assert found is not None and found.tolist() == [False, False, True] + [False] * 4


def test_old_keys_come_before_the_rows_that_changed_theirs() -> None:
    found = with_old_keys(ROWS, {"k": OLD["k"]}, np.array([2]))
    assert told(found)[2:4] == [(2, 3, 9, None), (2, 2, 3, "c")]
