"""Read the columns of rows that mark which values the source omitted, and mark those of deletes."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.cdc.base import ChangeBatch
from ingestd.ingest.rows.blobs import KEPT_DELETE, KIND, UNAVAILABLE_PREFIX
from ingestd.ingest.rows.row_shape import RowShape
from ingestd.ingest.settings.context import TableContext
from ingestd.paimon.spec.arrow import Values
from ingestd.paimon.spec.data_types import RowKind
from ingestd.paimon.spec.merge_rules import MergeRules
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


def deletes_without_sequence(
    batch: ChangeBatch, target: TableContext | None, shape: RowShape | None
) -> ChangeBatch:
    """Mark the sequence of deletes as omitted, as their before images may have made-up values.

    The connector for PostgreSQL sends such values of NOT NULL columns unless the table has REPLICA
    IDENTITY FULL. `target` is the state of the table (None: the table does not exist), and `shape`
    states from which columns of the source its columns come.
    """
    deletes = batch.row_kind == RowKind.DELETE
    fields = () if target is None else target.table.merge_rules.sequence_fields
    if not fields or not bool(deletes.any()):
        return batch
    names = set(fields)
    if shape is not None:
        names = set().union(*map(shape.settings.sources_of, fields))
        names |= {shape.aliases[name] for name in names & shape.aliases.keys()}
    marks = {
        name: deletes | batch.unavailable.get(name, False) for name in names & batch.types.keys()
    }
    return replace(batch, unavailable={**batch.unavailable, **marks})


def omitted_sequences(columns: Mapping[str, Values], rules: MergeRules) -> dict[str, Values]:
    """Return marks, by column name, of the deletes that have no value in any sequence field.

    Messages often have only the key of a deleted row. NULL is older than every other value, so such
    a delete would have no effect; the write task gives it the value of the row that it deletes.
    `columns` maps names to the values of rows of a table with these rules.
    """
    fields = rules.sequence_fields
    deletes = columns[KIND].to_numpy() == RowKind.DELETE
    if not fields or not bool(deletes.any()):
        return {}
    for name in fields:
        deletes &= np.asarray(columns[name].is_null())
    if not bool(deletes.any()):
        return {}
    marks = {UNAVAILABLE_PREFIX + name: pa.array(deletes) for name in fields}
    return {
        name: pc.or_(columns[name], mark) if name in columns else mark
        for name, mark in marks.items()
    }
