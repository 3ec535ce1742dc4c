"""What every data format takes and gives: chunks of records in, change batches out.

A data format is a module with one `DataFormat`; its name stands in `DATA_FORMATS` and is loaded
when asked for. Nothing here knows how a message looks.
"""

import importlib
import threading
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.cdc.schema_lookup import Framing, SchemaLookup
from ingestd.cdc.texts import Texts, picked
from ingestd.errors import ConfigError
from ingestd.paimon.spec.data_types import DataType

_CONFLUENT = Framing()
UNKNOWN_POSITION = -1
"""Source position of a change whose place in the log of the database is not known."""


class SourceTable(NamedTuple):
    """A table of a source database, as its messages name it."""

    database: str | None
    schema: str | None
    table: str


KnownColumns = Mapping[SourceTable, Mapping[str, DataType]]
"""Column types by source table and column name; NOT NULL says that a column is part of the key."""


@dataclass(frozen=True, slots=True)
class RecordChunk:
    """Consecutive records of one topic partition, as parallel columns.

    Timestamps are milliseconds since 1970. `headers` is None when nobody asked for them. `sizes`
    are the bytes of key and value of each record, None where nobody counted them.
    """

    topic: str
    partition: int
    offsets: npt.NDArray[np.int64]
    timestamps: npt.NDArray[np.int64]
    keys: Texts
    values: Texts
    headers: list[list[tuple[str, bytes | None]] | None] | None
    sizes: npt.NDArray[np.int64] | None = None

    def take(self, indices: npt.NDArray[np.int64]) -> "RecordChunk":
        """Some of the records, as if there were no others; their headers and sizes are lost."""
        return RecordChunk(
            self.topic,
            self.partition,
            self.offsets[indices],
            self.timestamps[indices],
            picked(self.keys, indices),
            picked(self.values, indices),
            None,
        )

    def listed(self) -> "RecordChunk":
        """The same with lists of keys and values, for who looks at each of them more than once."""
        return replace(self, keys=list(self.keys), values=list(self.values))


@dataclass(frozen=True, slots=True)
class Rejected:
    """A record that could not be used: where it is, at which stage it failed and why.

    Stages are decode, route, key, cast and schema; `reason` is a short stable code.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    stage: str
    reason: str
    message: str
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True, slots=True)
class Truncate:
    """The source emptied a table; `position` is None when its log position is unknown."""

    source: SourceTable
    partition: int
    offset: int
    position: int | None


@dataclass(frozen=True, slots=True)
class SchemaChangeEvent:
    """A statement by which columns of a table got new names, or went (old name, new one or None).

    `position` is that of the statement in the source's log, None when it is unknown. A standing one
    is said again with every chunk, by the schema of the messages.
    """

    source: SourceTable
    partition: int
    offset: int
    position: int | None
    columns: tuple[tuple[str, str | None], ...]
    is_standing: bool = False


@dataclass(frozen=True, slots=True)
class ChangeBatch:
    """Changes of one source table as typed Arrow columns and parallel arrays.

    `columns` holds the columns that occurred; one that a row lacked is null there. `types` are
    their nullable Paimon types. `primary_keys` are the fields of the message key in its order.
    A DELETE carries only key values, or all that is known when there is no message key. A chunk
    may give several batches of one table: `offset` orders their rows, and rows of one offset
    follow one another. `position` orders changes in the log of the source database. Two changes
    have the same one only in snapshots, whose rows have that of the snapshot, and when an update
    comes as two rows: because it changed a key, or because rows before changes are asked for (then
    those of deletes are whole, too). `unavailable` marks cells, null in `columns`,
    whose value the source left out: the old value still holds.
    """

    source: SourceTable
    columns: pa.Table
    types: Mapping[str, DataType]
    primary_keys: tuple[str, ...]
    row_kind: npt.NDArray[np.int8]
    offset: npt.NDArray[np.int64]
    position: npt.NDArray[np.int64]
    snapshot_row: npt.NDArray[np.bool_]
    unavailable: Mapping[str, npt.NDArray[np.bool_]]


@dataclass(frozen=True, slots=True)
class Decoded:
    """All that a chunk gave; every record is counted in exactly one of the four.

    `control` counts records that were understood and carry no row: tombstones, heartbeats,
    transaction borders, schema changes, logical messages. What is proven of columns by schema
    changes is in `schema_changes`.
    """

    batches: list[ChangeBatch]
    rejected: list[Rejected]
    truncates: list[Truncate]
    control: int
    schema_changes: list[SchemaChangeEvent] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class FormatSettings:
    """What the configuration of a source says of its messages.

    `type_mapping` are names of `ingestd.cdc.columns.type_mapping`. `schemas` is where data
    formats with registered schemas look them up, `framing` how their messages name them. `images`
    asks for the rows before changes as well, `renames` for names that columns had before.
    """

    type_mapping: frozenset[str] = frozenset()
    schemas: SchemaLookup | None = None
    framing: Framing = _CONFLUENT
    images: bool = False
    renames: bool = False


class DataFormat(Protocol):
    """Decodes the messages of one wire format; may keep caches, never results."""

    name: str

    def decode(self, chunk: RecordChunk, known: KnownColumns, declared: KnownColumns) -> Decoded:
        """Decode a chunk; bad records are in the result, never raised.

        `known` are the columns that the target table has, `declared` those whose types the
        configuration fixes.
        """
        ...


_THREAD = threading.local()
DATA_FORMATS: Mapping[str, str] = {
    "avro": "ingestd.cdc.formats.avro",
    "debezium-avro": "ingestd.cdc.formats.debezium_avro",
    "aliyun-json": "ingestd.cdc.formats.aliyun_json",
    "aws-dms-json": "ingestd.cdc.formats.aws_dms_json",
    "canal-json": "ingestd.cdc.formats.canal_json",
    "debezium-bson": "ingestd.cdc.formats.debezium_bson",
    "debezium-flat-json": "ingestd.cdc.formats.debezium_flat_json",
    "debezium-json": "ingestd.cdc.formats.debezium_json",
    "json": "ingestd.cdc.formats.plain_json",
    "maxwell-json": "ingestd.cdc.formats.maxwell_json",
    "ogg-json": "ingestd.cdc.formats.ogg_json",
    "protobuf": "ingestd.cdc.formats.protobuf",
    "raw": "ingestd.cdc.formats.raw",
}
"""Module of each data format; it has `new_format(settings)`."""
REGISTERED = frozenset({"debezium-avro", "avro", "protobuf"})
"""Data formats whose messages can only be read with the schemas of a registry."""

FRAMED = frozenset(name for name in DATA_FORMATS if name.endswith("json"))
"""Data formats whose messages may have a registered schema, but can be read without."""
POSITIONED = frozenset(
    {
        "aliyun-json",
        "debezium-avro",
        "debezium-flat-json",
        "debezium-json",
        "maxwell-json",
        "ogg-json",
    }
)
"""Data formats whose messages may say where in the log of its database a change is."""
_FRAMED_JSON = "ingestd.cdc.formats.framed_json"

_NO_SETTINGS = FormatSettings()


def load_data_format(name: str, settings: FormatSettings = _NO_SETTINGS) -> DataFormat:
    """A new instance of a data format; ConfigError lists the names that exist.

    An instance remembers what it learnt of tables: use one for all chunks of a source.
    """
    module = DATA_FORMATS.get(name)
    if module is None:
        raise ConfigError(
            f"there is no data format {name!r}; choose one of {', '.join(sorted(DATA_FORMATS))}"
        )
    data_format: DataFormat = importlib.import_module(module).new_format(settings)
    if settings.schemas is not None and name in FRAMED:
        framed: DataFormat = importlib.import_module(_FRAMED_JSON).new_format(data_format, settings)
        return framed
    return data_format


def shared_data_format(
    name: str, source: str, settings: FormatSettings = _NO_SETTINGS
) -> DataFormat:
    """The instance that this thread keeps for a source, so that later tasks need not learn again.

    ConfigError lists the names that exist.
    """
    kept: dict[Hashable, DataFormat] = _THREAD.__dict__.setdefault("formats", {})
    which = (name, source, settings)
    found = kept.get(which)
    if found is None:
        found = kept[which] = load_data_format(name, settings)
    return found
