"""Apply column renames and drops of the source to rows, by position in the source's log.

A row before a statement has the old name, a row after it the new name; the old name after the
statement is another column. If a row or a statement has no position in the source's log, it is
ordered by its record: by offset if both are in one topic partition, else by the time at which the
connector wrote the two.
"""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.cdc.base import ChangeBatch, RecordChunk
from ingestd.ingest.schemas.column_history import Ledger, ProvenChange, type_of_both
from ingestd.ingest.values.row_groups import Values
from ingestd.ingest.values.value_casts import cast_values
from ingestd.paimon.spec.arrow import to_arrow_type
from ingestd.paimon.spec.data_types import DataType

Mask = npt.NDArray[np.bool_]


def apply_renames(batch: ChangeBatch, column_history: Ledger, chunk: RecordChunk) -> ChangeBatch:
    """Return the batch of a chunk with the current column names, without dropped columns.

    Raises SchemaConflictError if no type holds a column under both names.
    """
    for one in column_history:
        if one.old in batch.types or one.old in batch.unavailable:
            batch = _followed(batch, one, chunk)
    return batch


def _before(batch: ChangeBatch, change: ProvenChange, chunk: RecordChunk) -> Mask:
    """Return which rows are older than the statement, as a mask.

    Rows without a position are ordered by their records. If both records were written in the same
    millisecond to two topic partitions, a dropped column is kept, since that loses nothing; a
    renamed one is taken as the new name if the row does not have the new name.
    """
    named = np.zeros(len(batch.offset), np.bool_)
    if change.new in batch.types:
        named = np.asarray(batch.columns.column(change.new).is_valid())
    before: Mask = batch.position <= change.position
    at = change.stated
    if at is None:
        return before & ~((batch.position < 0) & named)
    unknown = (batch.position < 0) | (change.position <= 0)
    if not bool(unknown.any()):
        return before
    if (chunk.topic, chunk.partition) == (at.topic, at.partition):
        older = batch.offset < at.offset
    else:
        times = chunk.timestamps[np.searchsorted(chunk.offsets, batch.offset)]
        older = (times < at.time) | ((times == at.time) & ~named & bool(change.new))
    return np.where(unknown, older, before)


def _followed(batch: ChangeBatch, change: ProvenChange, chunk: RecordChunk) -> ChangeBatch:
    before = _before(batch, change, chunk)
    values = {name: batch.columns.column(name) for name in batch.types}
    types, marks = dict(batch.types), dict(batch.unavailable)
    left_out = marks.pop(change.old, None)
    if left_out is not None and change.new:
        marks[change.new] = marks.get(change.new, False) | (left_out & before)
    if left_out is not None and bool((left_out & ~before).any()):
        marks[change.old] = left_out & ~before
    if change.old in values:
        column, data_type = values.pop(change.old), types.pop(change.old)
        rest = _where(column, ~before)
        if change.new:
            moved = (_where(column, before), data_type)
            known = (values[change.new], types[change.new]) if change.new in values else None
            values[change.new], types[change.new] = _either(change, moved, known)
        if rest.null_count < len(rest):
            values[change.old], types[change.old] = rest, data_type
    keys = batch.primary_keys
    if change.new and bool(before.all()):
        keys = tuple(change.new if name == change.old else name for name in keys)
    return replace(
        batch, columns=pa.table(values), types=types, unavailable=marks, primary_keys=keys
    )


def _where(column: Values, rows: Mask) -> Values:
    """Return the column with nulls in all rows outside the mask."""
    if bool(rows.all()):
        return column
    nothing: Values = pa.scalar(None, column.type)
    return pc.if_else(pa.array(rows), column, nothing)


def _either(
    change: ProvenChange, moved: tuple[Values, DataType], known: tuple[Values, DataType] | None
) -> tuple[Values, DataType]:
    """Merge the values under both names, of which a row has one."""
    if known is None:
        return moved
    merged = type_of_both(change, moved[1], known[1])
    arrow_type: Values = to_arrow_type(merged)
    both = [
        values if values.type == arrow_type else cast_values(values, data_type, merged)[0]
        for values, data_type in (known, moved)
    ]
    return pc.coalesce(*both), merged
