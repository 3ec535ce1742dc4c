"""The interface of data formats: chunks of records in, change batches out.

A data format is a module with a `FormatDescriptor` named `FORMAT`, and an entry in `DATA_FORMATS`.
All properties of a format are in its descriptor.
"""

import importlib
import threading
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from struct import Struct
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, TypeGuard
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.cdc.event_time import EventTime
from ingestd.cdc.schema_lookup import Framing, RegisteredSchema, SchemaLookup
from ingestd.errors import ConfigError
from ingestd.paimon.spec.data_types import DataType

Numbers: TypeAlias = npt.NDArray[np.int64]
Texts: TypeAlias = Sequence[bytes | None]
"""Keys or values of records: a list, or a sequence of the native Kafka reader.

The latter creates a bytes object on each access.
"""

_CONFLUENT = Framing()
UNKNOWN_POSITION = -1
"""The source position of a change whose position in the log of the database is unknown."""


class SourceTable(NamedTuple):
    """The name of a table in a source database, as contained in messages."""

    database: str | None
    schema: str | None
    table: str

    def __str__(self) -> str:
        return ".".join(name for name in self if name)


ColumnTypes = Mapping[str, DataType]
"""Types of columns by name."""
KnownColumns = Mapping[SourceTable, ColumnTypes]
"""Column types by source table and column name.

Key columns are NOT NULL, other columns are nullable.
"""


class _TextsInMemory(Protocol):
    """The sequence type of the native Kafka reader."""

    lengths: Any

    def take(self, indices: Numbers) -> Texts: ...
    def join(self, others: list[Texts]) -> Texts: ...
    def shared_head(self, size: int) -> bytes | None: ...
    def __contains__(self, text: bytes | None) -> bool: ...


def joined(parts: Sequence[Texts]) -> Texts:
    """Concatenate sequences of keys or values, which must all be of the same sequence type.

    Without sequences, the result is an empty list; a single sequence is returned itself.
    """
    if len(parts) == 1:
        return parts[0]
    first = parts[0] if parts else []
    if _in_memory(first):
        return first.join(list(parts))
    return list(chain.from_iterable(parts))


def picked(texts: Texts, indices: Numbers) -> Texts:
    """Return the message keys or values at these indices, in the same sequence type."""
    if _in_memory(texts):
        return texts.take(indices)
    return [texts[index] for index in indices.tolist()]


def has_no_nulls(texts: Texts) -> bool:
    """Return whether a sequence of message keys or values contains no None."""
    if _in_memory(texts):
        return None not in texts
    # `all` is much faster than a search for None.
    return all(texts) or None not in texts


def present_indices(texts: Texts, *, empty: bool) -> Numbers:
    """Return the ascending indices of the message keys or values that are present.

    None is absent. An empty string of bytes is absent unless `empty` is set.
    """
    return np.flatnonzero(lengths(texts) >= (0 if empty else 1))


def shared_head(texts: Texts, size: int) -> bytes | None:
    """Return the common first `size` bytes of all message keys or values; None is skipped.

    A text shorter than `size` counts as a whole, so the result can be shorter. Returns None if
    these bytes differ, or if all texts are None.
    """
    if _in_memory(texts):
        return texts.shared_head(size)
    heads = {text[:size] for text in texts if text is not None}
    return heads.pop() if len(heads) == 1 else None


def bytes_of(texts: Texts) -> int:
    """Return the total size of message keys or values in bytes; None counts as 0."""
    return int(np.maximum(lengths(texts), 0).sum())


def _in_memory(texts: object) -> TypeGuard[_TextsInMemory]:
    return not isinstance(texts, list | tuple)


def lengths(texts: Texts) -> Numbers:
    """Return the size of each message key or value in bytes, -1 for None; shape (n,)."""
    if _in_memory(texts):
        return np.frombuffer(texts.lengths, np.int64)
    sizes = (-1 if text is None else len(text) for text in texts)
    return np.fromiter(sizes, np.int64, len(texts))


@dataclass(frozen=True, slots=True)
class RecordChunk:
    """Records of one topic partition with ascending offsets, as parallel columns.

    Timestamps are in milliseconds since the epoch. `headers` is None if they were not requested.
    `sizes` is the size of key plus value of each record in bytes, or None if not computed.
    `timestamp_types` (0 unknown, 1 creation, 2 append to the log) are requested with the headers.
    """

    topic: str
    partition: int
    offsets: npt.NDArray[np.int64]
    timestamps: npt.NDArray[np.int64]
    keys: Texts
    values: Texts
    headers: list[list[tuple[str, bytes | None]] | None] | None
    sizes: npt.NDArray[np.int64] | None = None
    timestamp_types: Sequence[int] | None = None

    def take(self, indices: npt.NDArray[np.int64]) -> "RecordChunk":
        """Return a chunk with only the records at these indices, which must be ascending."""
        headers, kinds = self.headers, self.timestamp_types
        return RecordChunk(
            topic=self.topic,
            partition=self.partition,
            offsets=self.offsets[indices],
            timestamps=self.timestamps[indices],
            keys=picked(self.keys, indices),
            values=picked(self.values, indices),
            headers=None if headers is None else [headers[index] for index in indices.tolist()],
            sizes=None if self.sizes is None else self.sizes[indices],
            timestamp_types=None if kinds is None else [kinds[index] for index in indices.tolist()],
        )

    def record_sizes(self) -> npt.NDArray[np.int64]:
        """Return the size of key plus value of each record in bytes; shape (records,)."""
        if self.sizes is not None:
            return self.sizes
        pairs = zip(self.keys, self.values, strict=True)
        sizes = (len(key or b"") + len(value or b"") for key, value in pairs)
        return np.fromiter(sizes, np.int64, len(self.values))

    def last_checksum(self) -> int:
        """Return the `record_checksum` of the timestamp, key and value of the last record.

        It is stored with the covered offsets, to detect later that the record was replaced. The
        chunk must contain a record.
        """
        return record_checksum(int(self.timestamps[-1]), self.keys[-1], self.values[-1])


_CHECKSUM_HEAD = Struct(">qqq")


def record_checksum(timestamp: int, key: bytes | None, value: bytes | None) -> int:
    """Return a checksum of a record, from 1 to 2^32 - 1, by which a replaced record is detected.

    `timestamp` is in milliseconds since the epoch.
    """
    sizes = (-1 if content is None else len(content) for content in (key, value))
    start = crc32(_CHECKSUM_HEAD.pack(timestamp, *sizes))
    return crc32(value or b"", crc32(key or b"", start)) or 1


@dataclass(frozen=True, slots=True)
class RejectedRecord:
    """A rejected record: its coordinates, the stage that failed, and the reason.

    `timestamp` is in milliseconds since the epoch. `reason` is a short, stable code. `source_table`
    is the source table of the record, or None if it cannot be known.
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
    source_table: SourceTable | None = None


@dataclass(frozen=True, slots=True)
class Truncate:
    """A truncate of a source table, found in the record at `partition` and `offset` of the topic.

    `position` is the position of the truncate in the source's log, or None if unknown.
    """

    source: SourceTable
    partition: int
    offset: int
    position: int | None


@dataclass(frozen=True, slots=True)
class Comments:
    """The comments of a source table and of its columns, as far as messages contain them."""

    table: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, table: object, columns: Iterable[tuple[str, object]]) -> "Comments":
        """Build the comments of a table and of its columns, given as (name, comment) pairs.

        Blank comments and values that are not text are left out. A comment is cut after 4096
        characters.
        """
        texts = {name: comment for name, text in columns if (comment := _comment(text))}
        return cls(_comment(table), texts)

    def __bool__(self) -> bool:
        return self.table is not None or bool(self.columns)

    def over(self, older: "Comments") -> "Comments":
        """Return these comments; those that are missing are taken from `older`."""
        return Comments(self.table or older.table, {**older.columns, **self.columns})


MAX_COMMENT = 4096
"""Maximum number of characters of a comment; a longer one is cut."""
NO_COMMENTS = Comments()


def _comment(text: object) -> str | None:
    return text.strip()[:MAX_COMMENT] or None if isinstance(text, str) else None


@dataclass(frozen=True, slots=True)
class SchemaChangeEvent:
    """Renamed and dropped columns of a table, as (old name, new name or None if dropped).

    `partition` and `offset` are those of the record from which the event was derived. `comments`
    are the comments in the statement or the schema. `position` is the position of the DDL statement
    in the source's log, or None if unknown. If `is_repeated`, the event was derived from the schema
    of messages, and is repeated in every chunk.
    """

    source: SourceTable
    partition: int
    offset: int
    position: int | None
    columns: tuple[tuple[str, str | None], ...]
    is_repeated: bool = False
    comments: Comments = NO_COMMENTS


class DdlEvent(NamedTuple):
    """The column changes of a table in a DDL message, and its comments.

    `columns` has (old name, new name) for each renamed column; the new name is None for a dropped
    column. `position` is the position of the statement in the source's log, or None if unknown.
    """

    source: SourceTable
    position: int | None
    columns: tuple[tuple[str, str | None], ...]
    comments: Comments = NO_COMMENTS

    def at(self, chunk: RecordChunk, index: int) -> SchemaChangeEvent:
        """Return the event for the record at this index of the chunk."""
        offset = int(chunk.offsets[index])
        return SchemaChangeEvent(
            self.source,
            chunk.partition,
            offset,
            self.position,
            self.columns,
            comments=self.comments,
        )


@dataclass(frozen=True, slots=True)
class ChangeBatch:
    """Changes of one source table as typed Arrow columns and parallel arrays.

    `columns` has all columns of the rows; a value that a row lacks is null. `types` are the
    nullable Paimon types of the columns. `primary_keys` are the key columns, in the order of the
    messages; they are empty if messages have no key, unless the format takes the key of the target
    table. `row_kind` has the codes of `RowKind`. A DELETE has only key values, or in a batch
    without a key all known values.

    A chunk can produce several batches of one table; `offset` orders their rows, and rows with the
    same offset are adjacent. `position` orders changes in the log of the source database, and is -1
    if unknown. Known positions are equal only for rows of a snapshot (marked in `snapshot_row`),
    for a change that was sent again, and for the two rows of an update. An update has two rows if
    it changed a key or if before images are requested, in which case deletes have all values, too.
    `unavailable` marks values that the source omitted and that are null in `columns`: the old value
    in the table is still valid. `lacking` marks inserts and updates whose message lacks a column
    that others have, if this was requested. If `partial`, updates omit columns that they did not
    change, so a column that the batch lacks is omitted if the table has it.
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
    lacking: Mapping[str, npt.NDArray[np.bool_]] = field(default_factory=dict)
    partial: bool = False

    def lacks(self, name: str) -> npt.NDArray[np.bool_]:
        """Return a mask (rows,) of the rows whose message lacks a column, as far as known."""
        marks = self.lacking.get(name)
        if marks is not None:
            return marks
        return np.full(len(self.offset), name not in self.types and name not in self.unavailable)

    def filter(self, mask: npt.NDArray[np.bool_]) -> "ChangeBatch":
        """Return a batch of the rows in a mask (rows,), or the batch itself if all are selected."""
        if bool(mask.all()):
            return self
        return ChangeBatch(
            source=self.source,
            columns=self.columns.filter(mask),
            types=self.types,
            primary_keys=self.primary_keys,
            row_kind=self.row_kind[mask],
            offset=self.offset[mask],
            position=self.position[mask],
            snapshot_row=self.snapshot_row[mask],
            unavailable={name: omitted[mask] for name, omitted in self.unavailable.items()},
            lacking={name: lacking[mask] for name, lacking in self.lacking.items()},
            partial=self.partial,
        )


def key_columns(types: ColumnTypes) -> tuple[str, ...]:
    """Return the key columns of a table, whose types are NOT NULL."""
    return tuple(name for name, data_type in types.items() if not data_type.nullable)


def comment_events(
    chunk: RecordChunk, batch: ChangeBatch, comments: Comments
) -> list[SchemaChangeEvent]:
    """Return a list with the event that sets the comments of a batch's table, [] without comments.

    The rows of `batch` were decoded from `chunk`. `comments` are the comments in the schema of the
    messages.
    """
    if not comments:
        return []
    offset = int(batch.offset[0])
    return [
        SchemaChangeEvent(
            batch.source, chunk.partition, offset, None, (), is_repeated=True, comments=comments
        )
    ]


@dataclass(frozen=True, slots=True)
class Decoded:
    """The result of decoding a chunk.

    Each record contributes to exactly one of `batches`, `rejected`, `truncates` and `control`.
    `control` is the number of valid records without a row: tombstones, heartbeats, transaction
    events, schema changes and logical messages. `schema_changes` are the column renames and drops
    that schema changes prove, and comments.
    """

    batches: list[ChangeBatch]
    rejected: list[RejectedRecord]
    truncates: list[Truncate]
    control: int
    schema_changes: list[SchemaChangeEvent] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class FormatSettings:
    """The settings of a source for decoding its messages.

    `type_mapping` are options such as `to-string`. `schemas` looks up registered schemas (None: no
    registry), and `framing` describes how messages refer to them. `images` requests the before
    images of changes, `renames` the old names of renamed columns, and `presence` marks of the rows
    whose JSON message lacks a column.
    """

    type_mapping: frozenset[str] = frozenset()
    schemas: SchemaLookup | None = None
    framing: Framing = _CONFLUENT
    images: bool = False
    renames: bool = False
    presence: bool = False


class DataFormat(Protocol):
    """A decoder of one data format, which may cache schemas and plans, but not results."""

    name: str

    def decode(self, chunk: RecordChunk, known: KnownColumns, declared: KnownColumns) -> Decoded:
        """Decode a chunk; invalid records are returned as rejected records.

        `known` are the columns of existing target tables, and `declared` the columns whose types
        are configured. Raises SourceError if a schema registry is used and does not respond,
        ConfigError if it rejects the credentials, and UnsupportedError if the format cannot read
        values as the type of a column.
        """
        ...


RegistryUse = Literal["none", "optional", "required"]
"""Whether messages of a format refer to schemas in a registry.

"optional" means that a schema id may precede the JSON, which can be read without the schema.
"""
Fallback = Literal["object", "bytes"]
"""The messages for which a format is the default: JSON objects, or all other messages."""
JsonObject = Mapping[str, Any]
Recognizer = Callable[[JsonObject], bool]
SchemaRecognizer = Callable[[RegisteredSchema], bool]


def _recognizes_nothing(_: object) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class FormatDescriptor:
    """The properties of one data format.

    `description` is used in the documentation. `new_decoder` returns a decoder with empty caches;
    it raises ConfigError if required settings are missing. `recognizes` takes the object of a JSON
    message (or its payload, if it has a schema and a payload), and `recognizes_schema` the
    registered schema of a binary message. `fallback` are the messages for which the format is the
    default: "object" (JSON objects), "bytes" (all others) or None. `registry` states whether
    messages refer to schemas in a registry, and `event_time` is the field with the time of a
    change. `type_mapping` are the supported options of `ingestd.cdc.columns.type_mapping`.
    `source_position`, `truncates` and `schema_changes` state whether messages can contain these.
    """

    name: str
    description: str
    new_decoder: Callable[[FormatSettings], DataFormat]
    recognizes: Recognizer = _recognizes_nothing
    recognizes_schema: SchemaRecognizer = _recognizes_nothing
    fallback: Fallback | None = None
    registry: RegistryUse = "none"
    event_time: EventTime | None = None
    type_mapping: frozenset[str] = frozenset()
    source_position: bool = False
    truncates: bool = False
    schema_changes: bool = False


_FORMATS = "ingestd.cdc.formats"
DATA_FORMATS: dict[str, str] = {
    "aliyun-json": f"{_FORMATS}.aliyun_json",
    "debezium-bson": f"{_FORMATS}.debezium_bson",
    "debezium-json": f"{_FORMATS}.debezium_json",
    "debezium-flat-json": f"{_FORMATS}.debezium_flat_json",
    "debezium-avro": f"{_FORMATS}.debezium_avro",
    "canal-json": f"{_FORMATS}.canal_json",
    "maxwell-json": f"{_FORMATS}.maxwell_json",
    "ogg-json": f"{_FORMATS}.ogg_json",
    "aws-dms-json": f"{_FORMATS}.aws_dms_json",
    "json": f"{_FORMATS}.plain_json",
    "avro": f"{_FORMATS}.avro",
    "protobuf": f"{_FORMATS}.protobuf",
    "raw": f"{_FORMATS}.raw",
}
"""The module of each data format, imported on first use; its `FORMAT` is the descriptor.

If several formats recognise a message, the first format is used.
"""
DEFAULT_FORMAT = "debezium-json"
"""The format that is proposed if the format of messages cannot be recognised."""

_FRAMED_JSON = f"{_FORMATS}.framed_json"
_NO_SETTINGS = FormatSettings()
_THREAD = threading.local()


def describe_format(name: str) -> FormatDescriptor:
    """Return the descriptor of a data format.

    Raises ConfigError, which lists all names, if the name is unknown.
    """
    module = DATA_FORMATS.get(name)
    if module is None:
        raise ConfigError(
            f"there is no data format {name!r}; choose one of {', '.join(sorted(DATA_FORMATS))}"
        )
    descriptor: FormatDescriptor = importlib.import_module(module).FORMAT
    return descriptor


def format_descriptors() -> list[FormatDescriptor]:
    """Return the descriptors of all data formats, in the order of `DATA_FORMATS`."""
    return [describe_format(name) for name in DATA_FORMATS]


def load_data_format(name: str, settings: FormatSettings = _NO_SETTINGS) -> DataFormat:
    """Return a new decoder of a data format.

    A decoder caches schemas and plans, so one decoder should be used for all chunks of a source.
    Raises ConfigError if the format is unknown, or requires a schema registry that is not
    configured.
    """
    descriptor = describe_format(name)
    data_format = descriptor.new_decoder(settings)
    if settings.schemas is not None and descriptor.registry == "optional":
        framed: DataFormat = importlib.import_module(_FRAMED_JSON).new_format(data_format, settings)
        return framed
    return data_format


def shared_data_format(
    name: str, source: str, settings: FormatSettings = _NO_SETTINGS
) -> DataFormat:
    """Return this thread's decoder for these arguments, which is created on first use and kept.

    `source` is the name of the configured source: each source has its own decoder. Raises
    ConfigError if the format is unknown, or requires a schema registry that is not configured.
    """
    decoders: dict[Hashable, DataFormat] = _THREAD.__dict__.setdefault("decoders", {})
    key = (name, source, settings)
    decoder = decoders.get(key)
    if decoder is None:
        decoder = decoders[key] = load_data_format(name, settings)
    return decoder
