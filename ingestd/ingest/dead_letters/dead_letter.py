"""The dead-letter table: its schema, and the conversion of rejected records to rows.

It is an append table that is written by the same tasks and committed with the same batch as the
data tables, so a rejected record is stored exactly once, with its original bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ingestd.cdc.base import RecordChunk, RejectedRecord
from ingestd.errors import ConfigError
from ingestd.ingest.rows.blobs import KIND, OFFSET
from ingestd.paimon.spec.arrow import to_arrow_type
from ingestd.paimon.spec.data_types import DataField, DataType, RowKind
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.spec.schema_change import AddColumn, SchemaChange
from ingestd.paimon.spec.table_schema import TableSchema

_STRING = DataType("STRING")
_HEADER = DataType(
    "ROW", fields=(DataField(0, "name", _STRING), DataField(1, "value", DataType("BYTES")))
)
COLUMNS: tuple[tuple[str, DataType], ...] = (
    ("source", _STRING),
    ("topic", _STRING),
    ("partition", DataType("INT")),
    ("offset", DataType("BIGINT")),
    ("timestamp", DataType("TIMESTAMP_LTZ", precision=3)),
    ("stage", _STRING),
    ("reason", _STRING),
    ("message", _STRING),
    ("key", DataType("BYTES")),
    ("value", DataType("BYTES")),
    ("job", _STRING),
    ("table", _STRING),
    ("headers", DataType("ARRAY", element=_HEADER)),
)
_COMMENT = "Records that ingestd rejected, with the cause and their original bytes"


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A rejected record and its target table, which is None if unknown."""

    rejected: RejectedRecord
    table: str | None = None


def dead_letter_schema(time_millis: int) -> TableSchema:
    """Return the first schema of the dead-letter table: an append table without fixed buckets.

    `time_millis` is the creation time in milliseconds since the epoch.
    """
    return new_schema(COLUMNS, (), (), {"bucket": "-1"}, time_millis, _COMMENT)


def columns_to_add(table: str, schema: TableSchema) -> list[SchemaChange]:
    """Return the changes that add the columns which a dead-letter table of an older version lacks.

    The result is empty if the table has all columns. Raises ConfigError if it has other columns or
    a primary key, so that dead letters cannot be written to it.
    """
    names = [name for name, _ in COLUMNS]
    others = [name for name in schema.field_names if name not in names]
    if others or schema.primary_keys:
        what = f"column '{others[0]}'" if others else "a primary key"
        raise ConfigError(
            f"errors.dead-letter-table: {table} exists with {what}, which a dead-letter table does "
            "not have; name another table"
        )
    return [AddColumn((name,), kind) for name, kind in COLUMNS if name not in schema.field_names]


def dead_letter_rows(
    job: str, source: str, dead_letters: Sequence[DeadLetter], chunk: RecordChunk | None = None
) -> pa.Table:
    """Return rejected records of one topic partition as rows, ordered by offset.

    `job` is the name of the pipeline, and `source` the name of the source. The rows have the
    columns of the dead-letter table, and a row kind and an offset like all rows in blobs. Record
    headers are taken from `chunk`, if it has headers.
    """
    ordered = sorted(dead_letters, key=lambda dead_letter: dead_letter.rejected.offset)
    records = [dead_letter.rejected for dead_letter in ordered]
    columns: dict[str, list[Any]] = {
        "source": [source] * len(records),
        "topic": [record.topic for record in records],
        "partition": [record.partition for record in records],
        "offset": [record.offset for record in records],
        "timestamp": [record.timestamp if record.timestamp >= 0 else None for record in records],
        "stage": [record.stage for record in records],
        "reason": [record.reason for record in records],
        "message": [record.message for record in records],
        "key": [record.key for record in records],
        "value": [record.value for record in records],
        "job": [job] * len(records),
        "table": [dead_letter.table for dead_letter in ordered],
        "headers": _headers([record.offset for record in records], chunk),
    }
    arrays: dict[str, Any] = {
        name: pa.array(columns[name], to_arrow_type(kind)) for name, kind in COLUMNS
    }
    arrays[KIND] = pa.array(np.full(len(records), RowKind.INSERT, np.int8))
    arrays[OFFSET] = pa.array(columns["offset"], pa.int64())
    return pa.table(arrays)


def _headers(
    offsets: Sequence[int], chunk: RecordChunk | None
) -> list[list[dict[str, Any]] | None]:
    """Return the headers of the records at these offsets, each None if headers were not read."""
    if chunk is None or chunk.headers is None:
        return [None] * len(offsets)
    indices = np.searchsorted(chunk.offsets, np.array(offsets, np.int64)).tolist()
    all_headers = (chunk.headers[index] for index in indices)
    return [
        None if headers is None else [{"name": name, "value": value} for name, value in headers]
        for headers in all_headers
    ]
