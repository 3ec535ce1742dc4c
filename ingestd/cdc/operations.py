"""The operations of Debezium that change rows, and their row kinds."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from ingestd.cdc.row_layout import NO_KIND, Kinds
from ingestd.paimon.spec.data_types import RowKind

ROW_OPERATIONS: Mapping[str, RowKind] = {
    "c": RowKind.INSERT,
    "r": RowKind.INSERT,
    "u": RowKind.UPDATE_AFTER,
    "d": RowKind.DELETE,
}
"""Row kinds by operation: create, read in a snapshot, update, delete."""
_BY_CODE = np.full(128, NO_KIND, np.int8)
for _operation, _kind in ROW_OPERATIONS.items():
    _BY_CODE[ord(_operation)] = _kind


def kinds_of_operations(codes: npt.NDArray[np.uint8]) -> Kinds:
    """Return the row kinds of Debezium's operations (ASCII codes of c, r, u and d); shape (n,).

    The row kind of any other code is -1. Codes must be less than 128.
    """
    kinds: Kinds = _BY_CODE[codes]
    return kinds
