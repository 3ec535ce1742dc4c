"""Compute the changelog of a compaction: +I, -U and +U, or -D for each changed key.

The old row of a key is its row in an older level; the new row is the result of the merge. No files
are read or written.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/changelog-producer/#changelog-producer
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.paimon.merge.merged_rows import LEVEL
from ingestd.paimon.merge.value_codes import value_codes
from ingestd.paimon.spec.arrow import Column
from ingestd.paimon.spec.data_types import VALUE_KIND, RowKind
from ingestd.paimon.spec.row_selection import Indices, Mask, retractions

KEY_NUMBER = "_KEY_NUMBER"
"""Column with the number of each row's key in its block."""


@dataclass(frozen=True, slots=True)
class ChangeRules:
    """The settings by which a compaction writes its changelog.

    An update is written only if the old and the new row differ in a column of `compared` (None:
    every update is written, even if the row was written again unchanged).
    """

    compared: tuple[str, ...] | None = None


def changes_between(
    rows: pa.Table, merged: pa.Table, rules: ChangeRules, *, engine: str, top_level: int | None
) -> pa.Table:
    """Return the changelog rows of the keys of a block, ordered by key, and -U before +U.

    `rows` are all rows of the keys, with `_LEVEL` and `_KEY_NUMBER`; `merged` are the merged rows,
    with `_KEY_NUMBER`. With `top_level`, the old row of a key is its row in that level, and keys
    that have a row in another level are included. Without it, the old row is the row in any level
    above 0, and keys that have a row in level 0 are included. A key whose old and new row are equal
    by `rules` is left out. With the merge engine first-row, only new keys are included.
    """
    key, level = rows.column(KEY_NUMBER).to_numpy(), rows.column(LEVEL).to_numpy()
    count = int(key.max()) + 1
    older = level == top_level if top_level is not None else level > 0
    before = _at(count, key[older], np.flatnonzero(older))
    touched = np.zeros(count, np.bool_)
    touched[key[~older]] = True
    after = _at(count, merged.column(KEY_NUMBER).to_numpy(), np.arange(merged.num_rows))
    if engine == "first-row":
        # The first row of a key is written to the changelog once, unchanged.
        return merged.take(after[touched & (before < 0) & (after >= 0)])
    before = _without(before, retractions(rows.column(VALUE_KIND).to_numpy()))
    after = _without(after, retractions(merged.column(VALUE_KIND).to_numpy()))
    same = np.zeros(count, np.bool_)
    both = (before >= 0) & (after >= 0)
    if rules.compared is not None and bool(both.any()):
        same[both] = _equal(rows, before[both], merged, after[both], rules.compared)
    olds = touched & (before >= 0) & ~same
    news = touched & (after >= 0) & ~same
    return _ordered(
        _kinded(
            rows, before[olds], _kinds(after[olds] >= 0, RowKind.UPDATE_BEFORE, RowKind.DELETE)
        ),
        _kinded(
            merged, after[news], _kinds(before[news] >= 0, RowKind.UPDATE_AFTER, RowKind.INSERT)
        ),
    )


def _at(count: int, key: Indices, positions: Indices) -> Indices:
    """Return an array with the row number of each of `count` keys, -1 for a key without a row."""
    at = np.full(count, -1, np.int64)
    at[key] = positions
    return at


def _without(at: Indices, marked: Mask) -> Indices:
    positions: Indices = np.where((at >= 0) & marked[at], -1, at) if len(marked) else at
    return positions


def _kinds(where: Mask, yes: RowKind, no: RowKind) -> npt.NDArray[np.int8]:
    return np.where(where, np.int8(yes), np.int8(no))


def _kinded(rows: pa.Table, at: Indices, kinds: npt.NDArray[np.int8]) -> pa.Table:
    taken = rows.take(at)
    kind_position = taken.column_names.index(VALUE_KIND)
    return taken.set_column(kind_position, VALUE_KIND, pa.array(kinds))


def _ordered(olds: pa.Table, news: pa.Table) -> pa.Table:
    changes = pa.concat_tables([olds.select(news.column_names), news]).combine_chunks()
    order = np.argsort(changes.column(KEY_NUMBER).to_numpy(), kind="stable")
    return changes.take(order)


def _equal(
    rows: pa.Table, left: Indices, merged: pa.Table, right: Indices, columns: Sequence[str]
) -> Mask:
    equal = np.ones(len(left), np.bool_)
    for name in columns:
        before, after = rows.column(name).take(left), merged.column(name).take(right)
        equal &= _equal_cells(before, after)
    return equal


def _equal_cells(left: Column, right: Column) -> Mask:
    if pa.types.is_nested(left.type):
        joined: Any = pa.concat_arrays([*_chunks(left), *_chunks(right)])
        codes = value_codes(joined)
        nested: Mask = codes[: len(left)] == codes[len(left) :]
        return nested
    same: Any = pc.equal(left, right)
    is_same: Any = pc.fill_null(same, False)
    nulls: Any = pc.and_(left.is_null(), right.is_null())
    either: Any = pc.or_
    cells: Any = either(is_same, nulls)
    equal: Mask = cells.to_numpy(zero_copy_only=False)
    return equal


def _chunks(column: Column) -> list[Any]:
    return list(column.chunks) if isinstance(column, pa.ChunkedArray) else [column]
