"""Which older rows have a key that is compacted: the others are dropped before anything is merged.

Pure. Both sides are ordered by key. A key of numbers of one column is looked for among the rows,
which takes a few steps for each key however many rows there are; for other keys each column of
the rows is held against the values of the keys, and a row of values of several keys stays, too.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/compaction/
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.paimon.merge.base import column_ranks
from ingestd.paimon.spec.arrow import Column

Mask = npt.NDArray[np.bool_]


def touched_rows(rows: pa.Table, keys: pa.Table) -> pa.Table:
    """The rows of all keys in `keys`, and perhaps more; `keys` has the key columns.

    `rows` are ordered by key and have each key once; `keys` may come in any order.
    """
    names = keys.column_names
    if len(names) == 1 and _is_number(rows.column(names[0]).type):
        return rows.take(_found(rows.column(names[0]), keys.column(names[0])))
    mask: Mask = np.ones(rows.num_rows, np.bool_)
    for name in names:
        # To Arrow 0.0 and -0.0 are two values, to keys they are one.
        if not pa.types.is_floating(keys.column(name).type):
            mask &= _among(rows.column(name), keys.column(name))
    return rows.take(np.flatnonzero(mask))


def _is_number(kind: pa.DataType) -> bool:
    """Whether values become single numbers that compare alike in all tables."""
    types = pa.types
    return bool(types.is_integer(kind) or types.is_temporal(kind) or types.is_floating(kind))


def _found(column: Column, keys: Column) -> npt.NDArray[np.int64]:
    (ranks,), (wanted,) = column_ranks(column), column_ranks(keys)
    wanted = np.unique(wanted)
    places = np.searchsorted(ranks, wanted)
    inside = places < len(ranks)
    places, wanted = places[inside], wanted[inside]
    found: npt.NDArray[np.int64] = places[ranks[places] == wanted].astype(np.int64)
    return found


def _among(column: Column, keys: Column) -> Mask:
    values: Any = pc.unique(keys)
    is_in: Any = pc.is_in
    mask: Mask = is_in(column, value_set=values).to_numpy()
    return mask
