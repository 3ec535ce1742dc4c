"""Complete inserts of key-changing updates with the values that the source left out.

Only batches with such inserts read anything; see `value_search`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ingestd.ingest.key_changes.value_search import FoundValues, Wanted, find_values
from ingestd.ingest.rows.blobs import KIND, OFFSET, POSITION, UNAVAILABLE_PREFIX, RowBlob
from ingestd.ingest.rows.omitted_values import omission_marks, omitted, omitted_columns
from ingestd.ingest.settings.context import BatchContext
from ingestd.kafka.fetch import Bounds
from ingestd.kafka.offset_ranges import SourcePartition
from ingestd.kafka.record_log import KafkaRecordLog, RecordLog
from ingestd.paimon.spec.arrow import Values
from ingestd.paimon.spec.data_types import RowKind
from ingestd.paimon.spec.merge_rules import LAST_NON_NULL_VALUE, LAST_VALUE, MergeRules
from ingestd.paimon.spec.options import BucketMode, bucket_mode
from ingestd.paimon.spec.row_selection import Indices, Mask


def complete_rows(
    context: BatchContext, identifier: str, blobs: list[RowBlob], log: RecordLog | None = None
) -> tuple[list[RowBlob], int]:
    """Look up the values that key-changing updates of a table omitted, and return the filled blobs.

    Values are read from `log` (None: Kafka) and from the table. A value that is not found stays
    marked as omitted, because `fill_unavailable` may still find it in the existing row of the key.
    In tables without a primary key or with soft deletes, that row can be another row, so the value
    becomes null. Also returns the number of values not found that `fill_unavailable` does not
    count: values that become null, and values for which the merge engine would keep an older value.
    Raises the errors of reading the source and the table.
    """
    table = context.tables[identifier].table
    rules, schema = table.merge_rules, table.schema
    marked = [blob for blob in blobs if omission_marks(blob.rows)]
    if not marked or bucket_mode(schema) is BucketMode.POSTPONE:
        return blobs, 0
    moves = [move for blob in marked if (move := _moves_of(blob, rules)) is not None]
    if moves and schema.primary_keys:
        identity = [KIND, OFFSET, POSITION, *schema.primary_keys]
        columns = tuple(dict.fromkeys(name for move in moves for name in move.columns))
        wanted = [Wanted(move.where, move.inserts.select([*identity, *columns])) for move in moves]
        log = log or KafkaRecordLog(Bounds(context.max_chunk_records, context.max_chunk_bytes))
        values = find_values(context, identifier, columns, wanted, log)
        filled = {
            id(move.blob): _filled(move, found) for move, found in zip(moves, values, strict=True)
        }
        blobs = [filled.get(id(blob), blob) for blob in blobs]
    keeps_deleted = context.settings_of(identifier).shape.deletion_column is not None
    if schema.primary_keys and not keeps_deleted:
        return blobs, sum(_count_kept(blob.rows, rules) for blob in blobs)
    unknown = sum(_count(blob.rows, omitted_columns(blob.rows)) for blob in blobs)
    return [RowBlob(blob.origin, _with_nulls(blob.rows)) for blob in blobs], unknown


@dataclass(frozen=True, slots=True)
class _Moves:
    """The inserts of a blob that lack values of `columns`, as indices (n,) of its rows."""

    blob: RowBlob
    rows: Indices
    columns: tuple[str, ...]

    @property
    def where(self) -> SourcePartition:
        origin = self.blob.origin
        return SourcePartition(origin.source, origin.topic, origin.partition)

    @property
    def inserts(self) -> pa.Table:
        return self.blob.rows.take(self.rows)


def _moves_of(blob: RowBlob, rules: MergeRules) -> _Moves | None:
    """Return the inserts with a known source position that lack values; None if there are none.

    Such inserts are those of updates that changed the key.
    """
    columns = tuple(name for name in omitted_columns(blob.rows) if _is_of_source(rules, name))
    if not columns or POSITION not in blob.rows.column_names:
        return None
    lacking = np.logical_or.reduce([omitted(blob.rows, name) for name in columns])
    known = blob.rows.column(POSITION).to_numpy() >= 0
    rows = np.flatnonzero(lacking & known & _inserts(blob.rows))
    return _Moves(blob, rows, columns) if len(rows) else None


def _is_of_source(rules: MergeRules, column: str) -> bool:
    """Return whether a column in the table contains the newest value of the source."""
    function = rules.functions.get(column)
    if function is not None:
        return function.name in (LAST_VALUE, LAST_NON_NULL_VALUE)
    return rules.engine != "first-row"


def _count_kept(rows: pa.Table, rules: MergeRules) -> int:
    return _count(rows, [name for name in omitted_columns(rows) if rules.keeps_older(name)])


def _count(rows: pa.Table, columns: list[str]) -> int:
    """Return the number of values in these columns that are omitted in inserts."""
    return sum(int(np.count_nonzero(omitted(rows, name) & _inserts(rows))) for name in columns)


def _with_nulls(rows: pa.Table) -> pa.Table:
    """Return the rows with omitted values of inserts as nulls, no longer marked as omitted."""
    inserts = _inserts(rows)
    for name in omitted_columns(rows):
        rows = _marked(rows, name, omitted(rows, name) & ~inserts)
    return rows


def _inserts(rows: pa.Table) -> Mask:
    is_insert: Mask = rows.column(KIND).to_numpy() == RowKind.INSERT
    return is_insert


def _filled(move: _Moves, found: Mapping[str, FoundValues]) -> RowBlob:
    rows, count = move.blob.rows, move.blob.rows.num_rows
    for name in found.keys() & set(move.columns):
        column: Values = rows.column(name)
        left_out, indices = omitted(rows, name).copy(), found[name].indices
        has_value = (indices >= 0) & left_out[move.rows]
        changed, source = move.rows[has_value], np.arange(count)
        source[changed] = count + indices[has_value]
        left_out[changed] = False
        donors = found[name].values.cast(column.type)
        values: Values = pa.chunked_array([*column.chunks, *donors.chunks], column.type)
        rows = _marked(_replaced(rows, name, values.take(source)), name, left_out)
    return RowBlob(move.blob.origin, rows)


def _marked(rows: pa.Table, name: str, left_out: Mask) -> pa.Table:
    """Return the rows with the mask `left_out` (rows,) as the marks of a column's omitted values.

    If the mask is empty, the column of marks is removed.
    """
    mark = UNAVAILABLE_PREFIX + name
    if left_out.any():
        return _replaced(rows, mark, pa.array(left_out))
    return rows.drop_columns([mark])


def _replaced(rows: pa.Table, name: str, values: Values) -> pa.Table:
    return rows.set_column(rows.column_names.index(name), name, values)
