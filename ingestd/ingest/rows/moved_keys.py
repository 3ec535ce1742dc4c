"""Updates that change the key of a row because its key is computed from a changed column.

The message key does not change, so only the row before the update shows it.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.cdc.base import ChangeBatch
from ingestd.ingest.values.row_groups import Values
from ingestd.paimon.spec.data_types import RowKind

Mask = npt.NDArray[np.bool_]


def deletes_of_moved(batch: ChangeBatch, key: Sequence[str]) -> tuple[ChangeBatch, Mask]:
    """Add a DELETE for each row before an update whose columns of `key` changed.

    Other rows before updates are removed; the mask states which rows were kept.
    """
    before = batch.row_kind == RowKind.UPDATE_BEFORE
    where = np.flatnonzero(before)
    if not len(where):
        return batch, np.ones(len(before), np.bool_)
    following = np.minimum(where + 1, len(before) - 1)
    paired = (batch.offset[following] == batch.offset[where]) & (following > where)
    moved = np.zeros(len(before), np.bool_)
    moved[where] = ~paired | ~_equal(batch, key, where, following)
    kinds = np.where(moved, np.int8(RowKind.DELETE), batch.row_kind)
    keep = ~before | moved
    return replace(batch, row_kind=kinds).filter(keep), keep


def _equal(
    batch: ChangeBatch,
    key: Sequence[str],
    one: npt.NDArray[np.int64],
    other: npt.NDArray[np.int64],
) -> Mask:
    equal = np.ones(len(one), np.bool_)
    for name in key:
        values: Values = batch.columns.column(name)
        equal &= _same(values.take(pa.array(one)), values.take(pa.array(other)))
    return equal


def _same(left: Values, right: Values) -> Mask:
    """Return whether values are equal, with null equal to null."""
    equal: Values = pc.equal(left, right)
    same: Values = pc.fill_null(equal, False)
    marks: Mask = np.asarray(same)
    nulls: Mask = np.asarray(left.is_null()) & np.asarray(right.is_null())
    return marks | nulls
