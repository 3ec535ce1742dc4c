"""Columns of what a record says beside its row: where it lies in Kafka, and whose row it is.

Names and types are those of Paimon's ingestion, and `key` beside them. `op_ts` is the time of the
change in its database, `source_position` its place in the database's log as a number that can be
compared, null where it is not known.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.cdc.base import RecordChunk, SourceTable
from ingestd.errors import ConfigError
from ingestd.ingest.computed.event_times import event_times
from ingestd.ingest.values.row_groups import Values
from ingestd.paimon.spec.arrow import to_arrow_type
from ingestd.paimon.spec.data_types import DataType

_TEXT = DataType("STRING")
SOURCE_POSITION = "source_position"
METADATA_TYPES: Mapping[str, DataType] = {
    "topic": _TEXT,
    "partition": DataType("INT"),
    "offset": DataType("BIGINT"),
    "timestamp": DataType("TIMESTAMP_LTZ", precision=3),
    "key": DataType("BYTES"),
    "database_name": _TEXT,
    "schema_name": _TEXT,
    "table_name": _TEXT,
    "op_ts": DataType("TIMESTAMP_LTZ", precision=3),
    SOURCE_POSITION: DataType("BIGINT"),
}
"""Type of each metadata column."""
_ABSENT: Mapping[str, str] = {
    "timestamp_type": "the reader does not hand on who set a record's timestamp",
}
_CONSTANT = frozenset({"topic", "partition", "database_name", "schema_name", "table_name"})


def check_metadata(names: tuple[str, ...]) -> None:
    """ConfigError names the first that is no metadata column, or is there twice."""
    for name in names:
        if name in _ABSENT:
            raise ConfigError(f"metadata column '{name}' is not supported: {_ABSENT[name]}")
        if name not in METADATA_TYPES:
            raise ConfigError(
                f"there is no metadata column '{name}'; there is: {', '.join(METADATA_TYPES)}"
            )
        if names.count(name) > 1:
            raise ConfigError(f"metadata column '{name}' is named twice")


def metadata_column(
    name: str,
    chunk: RecordChunk,
    source: SourceTable,
    offsets: npt.NDArray[np.int64],
    data_format: str,
) -> Values:
    """One of `METADATA_TYPES` for rows of a chunk's records, told by their offsets.

    UnsupportedError for `op_ts` if the data format does not tell it.
    """
    arrow_type = to_arrow_type(METADATA_TYPES[name])
    if name in _CONSTANT:
        values = {
            "topic": chunk.topic,
            "partition": chunk.partition,
            "database_name": source.database,
            "schema_name": source.schema,
            "table_name": source.table,
        }
        one: Values = pa.scalar(values[name], arrow_type)
        return pa.repeat(one, len(offsets))
    if name == "offset":
        return pa.array(offsets, arrow_type)
    records = np.searchsorted(chunk.offsets, offsets)
    if name == "timestamp":
        stamps = chunk.timestamps[records]
        return pa.array(stamps, pa.int64(), mask=stamps < 0).cast(arrow_type)
    if name == "op_ts":
        picked, which = np.unique(records, return_inverse=True)
        times = event_times(data_format, [chunk.values[index] for index in picked.tolist()])
        return times.take(pa.array(which)).cast(arrow_type)
    keys: Values = pa.array(chunk.keys, arrow_type)
    return keys.take(pa.array(records))
