"""Convert deletes of the source to updates of their rows, for tables with `on-delete: keep`.

Such an update has the key, the time of the delete, metadata and route columns; all other values are
marked as omitted. The write task takes them from the last earlier row with the key, in the batch or
in the table, or writes a delete if there is no such row (`fill_unavailable`). Therefore the result
does not depend on whether messages of the data format contain the deleted row.
"""

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.cdc.base import ChangeBatch, RecordChunk
from ingestd.ingest.computed.metadata_columns import metadata_column
from ingestd.ingest.rows.blobs import KEPT_DELETE, KIND, UNAVAILABLE_PREFIX
from ingestd.ingest.rows.rejected_records import Failure
from ingestd.ingest.settings.context import SourceSettings
from ingestd.ingest.settings.soft_deletes import DELETED_AT_TYPE, SoftDeletes
from ingestd.paimon.spec.arrow import Values, to_arrow_type
from ingestd.paimon.spec.data_types import RowKind
from ingestd.paimon.spec.row_selection import retractions
from ingestd.paimon.spec.table_schema import TableSchema


def deletion_times(batch: ChangeBatch, chunk: RecordChunk, source: SourceSettings) -> Values:
    """Return the time of each retraction, and NULL for other rows; shape (rows,).

    Retractions are deletes and before images of updates, which can become deletes of an old key.
    The time is the time of the change in its database if the message contains it, else the
    timestamp of the record, or NULL without a timestamp.
    """
    deletes = retractions(batch.row_kind)
    arrow_type: Values = to_arrow_type(DELETED_AT_TYPE)
    if not deletes.any():
        return pa.nulls(len(deletes), arrow_type)
    offsets = batch.offset[deletes]
    times: Values = metadata_column("timestamp", chunk, batch.source, offsets, source.data_format)
    if source.event_time is not None:
        framing = source.format_settings.framing
        of_database: Values = metadata_column(
            "op_ts", chunk, batch.source, offsets, source.data_format, framing=framing
        )
        times = pc.coalesce(of_database, times)
    indices = np.cumsum(deletes) - 1
    return times.take(pa.array(indices, mask=~deletes))


def deletes_without_column(
    batch: ChangeBatch, schema: TableSchema, soft: SoftDeletes
) -> Iterator[Failure]:
    """Yield one failure for all deletes if the table lacks the column for the time of deletes.

    The table lacks it if its settings did not allow adding the column.
    """
    deletes = batch.row_kind == RowKind.DELETE
    if soft.column not in schema.field_names and bool(deletes.any()):
        message = (
            f"on-delete 'keep' needs column '{soft.column}', which schema.evolution or "
            "schema.max-columns does not let the table add; add it by ALTER TABLE"
        )
        yield Failure(deletes, "schema", "refused-change", message)


def keep_deletes(
    columns: Mapping[str, Values], schema: TableSchema, soft: SoftDeletes
) -> dict[str, Values]:
    """Convert the deletes that have a time to updates; return the columns that change, by name.

    `columns` maps names to the values of rows of a table with this schema. The updates omit the
    values of all columns that a delete does not set, so these are marked as omitted. Deletes
    without a time, such as deletes by a row filter, remain deletes.
    """
    kinds = columns[KIND].to_numpy()
    if soft.column not in columns:
        return {}
    rows = (kinds == RowKind.DELETE) & np.asarray(columns[soft.column].is_valid())
    if not bool(rows.any()):
        return {}
    others, marks = pa.array(np.arange(len(rows)), mask=rows), pa.array(rows)
    changed: dict[str, Values] = {
        KIND: pa.array(np.where(rows, np.int8(RowKind.UPDATE_AFTER), kinds)),
        KEPT_DELETE: marks,
    }
    own = {*soft.own, *schema.primary_keys}
    for field in schema.fields:
        if field.name in own:
            continue
        mark = UNAVAILABLE_PREFIX + field.name
        changed[mark] = pc.or_(columns[mark], marks) if mark in columns else marks
        if field.type.nullable:
            changed[field.name] = columns[field.name].take(others)
    return changed
