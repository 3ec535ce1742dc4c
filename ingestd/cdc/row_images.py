"""Rows of changes with the rows before them, for tables that tell their readers what was there.

An update is two rows, -U and +U, or -D and +I if it changed the key; a delete is the whole row that
was there. A field that an image before lacks is as it is behind the change: that is how formats
send it which only name what has changed. Where there is no image before, or none with a key, a
change is the one row that it is otherwise.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import UNSET

from ingestd.cdc.row_plan import Row, RowPlan
from ingestd.paimon.spec.data_types import RowKind

Kinds = npt.NDArray[np.int8]


def with_images(
    plan: RowPlan, changes: Sequence[Any], rows: Sequence[Row], kinds: Kinds
) -> tuple[list[Row], Kinds, npt.NDArray[np.int64]]:
    """The rows, their kinds, and the index of the change of each.

    `rows` has one for each change, that of a DELETE with the key alone.
    """
    laid_out: list[Row] = []
    row_kinds: list[int] = []
    events: list[int] = []
    for index, (change, row, kind) in enumerate(zip(changes, rows, kinds.tolist(), strict=True)):
        before = change.before
        if before is None:
            found = [(row, kind)]
        elif kind == RowKind.DELETE:
            found = [(_of_key(plan, before, row), kind)]
        elif kind == RowKind.UPDATE_AFTER:
            found = _pair(plan, before, row)
        else:
            found = [(row, kind)]
        for one, its_kind in found:
            laid_out.append(one)
            row_kinds.append(its_kind)
            events.append(index)
    return laid_out, np.array(row_kinds, np.int8), np.array(events, np.int64)


def _of_key(plan: RowPlan, before: Row, key_row: Row) -> Row:
    """The image before a delete, of the key that the message has."""
    for attribute in plan.key_attributes:
        setattr(before, attribute, getattr(key_row, attribute))
    return before


def _pair(plan: RowPlan, before: Row, after: Row) -> list[tuple[Row, int]]:
    for column in plan.columns:
        if getattr(before, column.attribute) is UNSET:
            setattr(before, column.attribute, getattr(after, column.attribute))
    old = [getattr(before, attribute) for attribute in plan.key_attributes]
    if None in old or UNSET in old:
        return [(after, int(RowKind.UPDATE_AFTER))]
    if old == [getattr(after, attribute) for attribute in plan.key_attributes]:
        return [(before, int(RowKind.UPDATE_BEFORE)), (after, int(RowKind.UPDATE_AFTER))]
    # What an update left out is looked for in the table, which no one does for an insert.
    arrives = RowKind.UPDATE_AFTER if plan.wants.partial else RowKind.INSERT
    return [(before, int(RowKind.DELETE)), (after, int(arrives))]
