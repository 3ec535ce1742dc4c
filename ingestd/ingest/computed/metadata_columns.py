"""Metadata columns: the Kafka coordinates of a record, and the source of its change.

Names and types are those of Paimon's ingestion, where it has such a column. `op_ts` is the time of
the change in its database. `source_position` is the position of the change in the log of the
database as a comparable number, or null if unknown. `headers` are the headers of the record, with
the last value of each name, and `headers.NAME` is the last header of this name as text, in a column
NAME.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.cdc.base import RecordChunk, SourceTable, describe_format, format_descriptors
from ingestd.cdc.schema_lookup import Framing
from ingestd.errors import ConfigError, UnsupportedError
from ingestd.paimon.spec.arrow import Values, to_arrow_type
from ingestd.paimon.spec.data_types import DataType

_CONFLUENT = Framing()
_TEXT = DataType("STRING")
SOURCE_POSITION = "source_position"
METADATA_TYPES: Mapping[str, DataType] = {
    "topic": _TEXT,
    "partition": DataType("INT"),
    "offset": DataType("BIGINT"),
    "timestamp": DataType("TIMESTAMP_LTZ", precision=3),
    "timestamp_type": _TEXT,
    "key": DataType("BYTES"),
    "headers": DataType("MAP", key=_TEXT.not_null(), value=DataType("BYTES")),
    "database_name": _TEXT,
    "schema_name": _TEXT,
    "table_name": _TEXT,
    "op_ts": DataType("TIMESTAMP_LTZ", precision=3),
    SOURCE_POSITION: DataType("BIGINT"),
}
"""The type of each metadata column, except columns of single headers."""
_HEADER = "headers."
"""Prefix of the metadata columns of single headers."""
_TIMESTAMP_TYPES: Values = pa.array([None, "CreateTime", "LogAppendTime"], pa.string())
"""Kafka's names of the timestamp types that the client numbers."""
_CONSTANT = frozenset({"topic", "partition", "database_name", "schema_name", "table_name"})


def check_metadata(names: tuple[str, ...]) -> None:
    """Raise ConfigError if a metadata column is unknown, or two have the same column name."""
    for name in names:
        if name not in METADATA_TYPES and (name == _HEADER or not name.startswith(_HEADER)):
            raise ConfigError(
                f"unknown metadata column '{name}'; known are: {', '.join(METADATA_TYPES)}, "
                "headers.NAME"
            )
        if names.count(name) > 1:
            raise ConfigError(f"metadata column '{name}' is listed twice")
        column = metadata_column_name(name)
        same = [other for other in names if metadata_column_name(other) == column]
        if len(same) > 1:
            raise ConfigError(f"metadata columns {' and '.join(same)} have the same name: {column}")


def metadata_type(name: str) -> DataType:
    """Return the Paimon type of the metadata column `name`, such as `op_ts` or `headers.NAME`.

    Raises KeyError for an unknown name.
    """
    return _TEXT if name.startswith(_HEADER) else METADATA_TYPES[name]


def metadata_column_name(name: str) -> str:
    """Return the table's column name for a metadata column: `NAME` for `headers.NAME`.

    All other names are unchanged. The metadata prefix of the table is not included.
    """
    return name.removeprefix(_HEADER)


def needs_headers(names: Iterable[str]) -> bool:
    """Return whether any of the metadata columns needs headers or timestamp types of records."""
    return any(name == "timestamp_type" or name.partition(".")[0] == "headers" for name in names)


def metadata_column(
    name: str,
    chunk: RecordChunk,
    source: SourceTable,
    offsets: npt.NDArray[np.int64],
    data_format: str,
    *,
    framing: Framing = _CONFLUENT,
) -> Values:
    """Return the values of a metadata column for rows with these record offsets; shape (n,).

    The chunk must contain the records. All names are supported except `source_position`, which is
    a property of the rows. `framing` is how schema ids precede messages. Raises UnsupportedError
    for `op_ts` if messages of the data format do not contain it.
    """
    arrow_type = to_arrow_type(metadata_type(name))
    if name in _CONSTANT:
        values = {
            "topic": chunk.topic,
            "partition": chunk.partition,
            "database_name": source.database,
            "schema_name": source.schema,
            "table_name": source.table,
        }
        scalar: Values = pa.scalar(values[name], arrow_type)
        return pa.repeat(scalar, len(offsets))
    if name == "offset":
        return pa.array(offsets, arrow_type)
    records = np.searchsorted(chunk.offsets, offsets)
    if name == "timestamp":
        stamps = chunk.timestamps[records]
        return pa.array(stamps, pa.int64(), mask=stamps < 0).cast(arrow_type)
    if name == "op_ts":
        picked, which = np.unique(records, return_inverse=True)
        messages = [chunk.values[index] for index in picked.tolist()]
        times = event_times(data_format, messages, framing)
        return times.take(pa.array(which)).cast(arrow_type)
    return _of_records(name, chunk).take(pa.array(records))


def _of_records(name: str, chunk: RecordChunk) -> Values:
    """Return a column of keys, headers or timestamp types, with one value for each record."""
    if name == "timestamp_type":
        return _TIMESTAMP_TYPES.take(pa.array(chunk.timestamp_types or [0] * len(chunk.keys)))
    arrow_type: Values = to_arrow_type(metadata_type(name))
    values = chunk.keys if name == "key" else _headers(chunk, name)
    return pa.array(values, arrow_type)


def _headers(chunk: RecordChunk, column: str) -> list[object]:
    """Return the headers of each record: all for `headers`, or one as text for `headers.NAME`.

    The last header of a name counts. Bytes that are not UTF-8 become U+FFFD in text.
    """
    by_name = (dict(headers or ()) for headers in chunk.headers or [None] * len(chunk.keys))
    if column == "headers":
        return [list(headers.items()) for headers in by_name]
    values = (headers.get(metadata_column_name(column)) for headers in by_name)
    return [None if value is None else value.decode(errors="replace") for value in values]


def event_times(
    data_format: str, messages: Sequence[bytes | None], framing: Framing = _CONFLUENT
) -> Values:
    """Return the event time of each message in ms since the epoch, or null if it has none.

    `framing` is how schema ids precede messages. Raises UnsupportedError if messages of the data
    format do not contain the time of a change.
    """
    event_time = describe_format(data_format).event_time
    if event_time is None:
        known = sorted(
            format_descriptor.name
            for format_descriptor in format_descriptors()
            if format_descriptor.event_time
        )
        raise UnsupportedError(
            f"metadata column 'op_ts': messages in the data format '{data_format}' do not contain "
            f"the time of a change, only those in {', '.join(known)}; leave the column out, or use "
            "'timestamp', the time of the record"
        )
    return event_time.of_messages([message and framing.json_body(message) for message in messages])
