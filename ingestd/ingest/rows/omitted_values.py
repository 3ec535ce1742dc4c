"""Read the columns of rows that mark which values the source omitted."""

from typing import Any

import numpy as np
import pyarrow as pa

from ingestd.ingest.rows.blobs import KEPT_DELETE, UNAVAILABLE_PREFIX
from ingestd.paimon.spec.row_selection import Mask


def omission_marks(rows: pa.Table) -> list[str]:
    """Return the names of all mask columns of the rows.

    They mark omitted values; the column `KEPT_DELETE` marks deletes that are kept as updates.
    """
    return [name for name in rows.column_names if name.startswith(UNAVAILABLE_PREFIX)]


def omitted_columns(rows: pa.Table) -> list[str]:
    """Return the table columns for which the rows have a column that marks omitted values."""
    marks = [name for name in omission_marks(rows) if name != KEPT_DELETE]
    return [name.removeprefix(UNAVAILABLE_PREFIX) for name in marks]


def omitted(rows: pa.Table, column: str) -> Mask:
    """Return a mask of the rows whose value of a column the source omitted; shape (rows,)."""
    return _marked(rows, UNAVAILABLE_PREFIX + column)


def kept_deletes(rows: pa.Table) -> Mask:
    """Return a mask of the deletes of the source that are kept as updates; shape (rows,)."""
    return _marked(rows, KEPT_DELETE)


def _marked(rows: pa.Table, mark: str) -> Mask:
    if mark not in rows.column_names:
        return np.zeros(rows.num_rows, np.bool_)
    marks: Any = rows.column(mark)
    mask: Mask = np.asarray(marks.fill_null(False))
    return mask
