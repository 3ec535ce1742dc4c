"""Group rows with equal values in some columns, for instance by partition or by key.

All functions process whole Arrow columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.paimon.spec.arrow import Values

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Grouping:
    """A grouping of n rows: `codes` (n,) are their group numbers, from 0.

    `first` (groups,) are the indices of the first row of each group.
    """

    codes: Codes
    first: Codes

    @property
    def count(self) -> int:
        """The number of groups."""
        return len(self.first)


def group_rows(rows: pa.Table, columns: Sequence[str]) -> Grouping:
    """Group rows that have equal values in all columns.

    Null equals null, NaN equals NaN, and -0.0 differs from 0.0. If `columns` is empty, all rows are
    one group. Without rows, the result has no groups.
    """
    codes: Codes = np.zeros(rows.num_rows, np.int64)
    if not columns:
        return Grouping(codes, codes[:1].copy())
    for name in columns:
        own = _column_codes(rows.column(name))
        combined = codes * (int(own.max(initial=0)) + 1) + own
        # Renumbered after each column, so that the product cannot overflow.
        codes = np.unique(combined, return_inverse=True)[1].astype(np.int64)
    _, first, dense = np.unique(codes, return_index=True, return_inverse=True)
    return Grouping(dense.astype(np.int64), first.astype(np.int64))


def pair_order(major: Codes, minor: Codes) -> Codes:
    """Return the indices that sort rows by `major`, then `minor`; the sort is stable.

    Rows that are sorted already, which is the usual case, are not sorted again.
    """
    same, rises = major[1:] == major[:-1], major[1:] > major[:-1]
    if bool((rises | (same & (minor[1:] >= minor[:-1]))).all()):
        return np.arange(len(major))
    return np.lexsort((minor, major))


def _column_codes(column: Values) -> Codes:
    encoded: Values = pc.dictionary_encode(column, null_encoding="encode").combine_chunks()
    codes: Codes = np.asarray(encoded.indices).astype(np.int64)
    return codes
