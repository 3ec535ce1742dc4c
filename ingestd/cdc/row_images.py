"""Add before images to the rows of changes, for tables whose changelog contains them.

An update becomes two rows, -U and +U, or -D and +I if it changed the key. A delete becomes its
whole before image. Some formats send only the changed fields in a before image: a missing field
has the value of the after image. A change without a before image, or whose before image lacks a
key value, stays a single row.
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
    """Return rows with their before images, their row kinds, and the index of each row's change.

    `rows` and `kinds` have one entry for each change; the row of a DELETE contains only the key.
    """
    laid_out: list[Row] = []
    row_kinds: list[int] = []
    events: list[int] = []
    for index, (change, row, kind) in enumerate(zip(changes, rows, kinds.tolist(), strict=True)):
        before = change.before
        if before is None:
            change_rows = [(row, kind)]
        elif kind == RowKind.DELETE:
            change_rows = [(_with_key_of(plan, before, row), kind)]
        elif kind == RowKind.UPDATE_AFTER:
            change_rows = _update_pair(plan, before, row)
        else:
            change_rows = [(row, kind)]
        for change_row, row_kind in change_rows:
            laid_out.append(change_row)
            row_kinds.append(row_kind)
            events.append(index)
    return laid_out, np.array(row_kinds, np.int8), np.array(events, np.int64)


def _with_key_of(plan: RowPlan, before: Row, key_row: Row) -> Row:
    """Set the key fields of a delete's before image to those of the message key."""
    for attribute in plan.key_attributes:
        setattr(before, attribute, getattr(key_row, attribute))
    return before


def _update_pair(plan: RowPlan, before: Row, after: Row) -> list[tuple[Row, int]]:
    """Return the rows of an update: before and after image, or only the after image."""
    for column in plan.columns:
        if getattr(before, column.attribute) is UNSET:
            setattr(before, column.attribute, getattr(after, column.attribute))
    old = [getattr(before, attribute) for attribute in plan.key_attributes]
    if None in old or UNSET in old:
        return [(after, int(RowKind.UPDATE_AFTER))]
    if old == [getattr(after, attribute) for attribute in plan.key_attributes]:
        return [(before, int(RowKind.UPDATE_BEFORE)), (after, int(RowKind.UPDATE_AFTER))]
    # Values that a partial update omits are read from the table only for updates, not for inserts.
    new_kind = RowKind.UPDATE_AFTER if plan.wants.partial else RowKind.INSERT
    return [(before, int(RowKind.DELETE)), (after, int(new_kind))]
