"""Data format `raw`: each record is a row with its key and its value as bytes."""

import numpy as np
import pyarrow as pa

from ingestd.cdc.base import (
    UNKNOWN_POSITION,
    ChangeBatch,
    Decoded,
    FormatDescriptor,
    FormatSettings,
    KnownColumns,
    RecordChunk,
)
from ingestd.cdc.formats.plain_json import topic_table
from ingestd.paimon.spec.data_types import DataType, RowKind

_BYTES = DataType("BYTES")


def new_format(settings: FormatSettings) -> "RawRecords":
    """Return a new `raw` decoder."""
    return RawRecords()


class RawRecords:
    """A decoder of records to the columns `key` and `value`.

    `key` is null if the record has no key, and `value` if it has no value.
    """

    name = "raw"

    def decode(self, chunk: RecordChunk, known: KnownColumns, declared: KnownColumns) -> Decoded:
        """Return all records of a chunk as inserts into the table after which the topic is named.

        `known` and `declared` are not used.
        """
        size = len(chunk.values)
        if not size:
            return Decoded([], [], [], 0)
        columns = {"key": chunk.keys, "value": chunk.values}
        batch = ChangeBatch(
            source=topic_table(chunk.topic),
            columns=pa.table({name: pa.array(c, pa.binary()) for name, c in columns.items()}),
            types=dict.fromkeys(columns, _BYTES),
            primary_keys=(),
            row_kind=np.full(size, RowKind.INSERT, np.int8),
            offset=chunk.offsets,
            position=np.full(size, UNKNOWN_POSITION, np.int64),
            snapshot_row=np.zeros(size, np.bool_),
            unavailable={},
        )
        return Decoded([batch], [], [], 0)


FORMAT = FormatDescriptor(
    name="raw",
    description="Keys and values as bytes",
    new_decoder=new_format,
    fallback="bytes",
)
