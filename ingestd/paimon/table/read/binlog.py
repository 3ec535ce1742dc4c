"""The system table `binlog`: every column is an array, so that an update is one row.

Specification: https://paimon.apache.org/docs/1.4/concepts/system-tables/#binlog-table

A row that was inserted or deleted has arrays of one value; an update has the value before and the
value after the update.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.paimon.spec.arrow import Column, to_arrow_type
from ingestd.paimon.spec.data_types import DataField, DataType, RowKind


def binlog_fields(fields: Sequence[DataField]) -> tuple[DataField, ...]:
    """Return the fields of a binlog: each field of the table as an array.

    Fields that do not belong to the table (ids below 0) are unchanged.
    """
    return tuple(
        field
        if field.id < 0
        else replace(field, type=DataType("ARRAY", element=replace(field.type, nullable=True)))
        for field in fields
    )


def single_rows(rows: pa.Table, fields: Sequence[DataField]) -> pa.Table:
    """Return rows with each value in an array of its own; `fields` is from `binlog_fields`."""
    starts = np.arange(rows.num_rows + 1, dtype=np.int32)
    return _packed(rows, fields, starts, np.arange(rows.num_rows))


def packed_rows(rows: pa.Table, fields: Sequence[DataField], kind: str) -> pa.Table:
    """Return changes as binlog rows in order, each row of kind -U joined to the row after it.

    A -U that is the last row stays alone; a -U that follows an unpaired -U is the second of a pair.
    `rows` are the changes in order, `fields` is the result of `binlog_fields`, and `kind` is the
    name of the column of row kinds. This column, and others that do not belong to the table, have
    the values of the second of two joined rows.
    """
    symbols = rows.column(kind).combine_chunks()
    before = symbols.to_numpy(zero_copy_only=False) == RowKind.UPDATE_BEFORE.symbol
    joined = np.zeros(rows.num_rows, bool)
    joined[1:] = _begins_pair(before)[:-1]
    first = np.flatnonzero(~joined)
    starts = np.append(first, rows.num_rows).astype(np.int32)
    return _packed(rows, fields, starts, starts[1:].astype(np.int64) - 1)


def _begins_pair(before: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return a mask of the rows to join to the next row, given a mask of the rows of kind -U.

    Of several successive rows of kind -U, these are the first, the third, and so on.
    """
    indices = np.arange(len(before))
    last_other = np.maximum.accumulate(np.where(before, -1, indices))
    begins: npt.NDArray[np.bool_] = before & ((indices - last_other) % 2 == 1)
    return begins


def _packed(
    rows: pa.Table,
    fields: Sequence[DataField],
    starts: npt.NDArray[np.int32],
    constants: npt.NDArray[np.int64],
) -> pa.Table:
    """Join the rows from `starts[i]` up to, but not including, `starts[i + 1]` to a row of arrays.

    Columns that do not belong to the table have the values of row `constants[i]`.
    """
    columns: dict[str, Column] = {}
    for field in fields:
        values: Any = rows.column(field.name)
        if field.id < 0:
            columns[field.name] = values.take(pa.array(constants))
            continue
        whole = pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)
        offsets: Any = pa.array(starts, pa.int32())
        lists = pa.ListArray.from_arrays(offsets, whole)
        columns[field.name] = lists.cast(to_arrow_type(field.type))
    return pa.table(columns)
