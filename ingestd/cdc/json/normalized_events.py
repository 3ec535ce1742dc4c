"""Normalize row changes of all JSON formats into Debezium's form, which row plans can read.

The `Dialect` of a format determines the table, operation and images of each message; images keep
the bytes of the message. So row plans can read the columns of all formats. The records of a chunk
are normalized one by one, and the changes of each table are grouped.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

import msgspec

from ingestd.cdc.base import DdlEvent, RecordChunk, SchemaChangeEvent, SourceTable, Truncate
from ingestd.cdc.columns.wire_column import WireColumn
from ingestd.cdc.json.messages import NO_ENVELOPE, NO_KEY, Envelope, MessageKey
from ingestd.cdc.record_errors import Reason, RecordError

INSERT, UPDATE, DELETE = b"c", b"u", b"d"
NULL = b"null"
STREAMED, SNAPSHOT = b',"snapshot":"false"', b',"snapshot":"true"'
"""JSON fields, with a leading comma, that mark streamed rows and snapshot rows."""

_MAX_NORMALIZERS = 2000
_encode = msgspec.json.encode


@dataclass(frozen=True, slots=True, eq=False)
class TableNormalizer:
    """A converter of row changes of one table, all with the same columns, to normalized events.

    `key_names` are the key columns in the messages. `columns` are the columns whose types the
    messages contain, or None if they contain no types. `hidden` are fields of rows that are not
    columns. If `partial`, updates omit columns that they did not change; if `images`, before images
    are decoded, too. `constants` maps fields to the JSON text that they have in all messages; a
    field whose text is null may be absent. `envelope` is the envelope of the values. If
    `is_normalized`, messages without their envelope are normalized events already, and are decoded
    unchanged, with their own types and keys. `opening` is the JSON with which all normalized events
    of the table begin, and `quoted_keys` are `key_names` as JSON strings.
    """

    source: SourceTable
    key_names: tuple[str, ...] = ()
    columns: tuple[WireColumn, ...] | None = None
    hidden: frozenset[str] = frozenset()
    partial: bool = False
    images: bool = False
    constants: Mapping[str, bytes] = field(default_factory=dict)
    envelope: Envelope = NO_ENVELOPE
    is_normalized: bool = False
    opening: bytes = field(init=False)
    quoted_keys: tuple[bytes, ...] = field(init=False)

    def __post_init__(self) -> None:
        names = zip((b"db", b"schema", b"table"), self.source, strict=True)
        named = [b'"%s":%s' % (field, _encode(name)) for field, name in names if name is not None]
        object.__setattr__(self, "opening", b'{"source":{' + b",".join(named))
        object.__setattr__(self, "quoted_keys", tuple(map(_encode, self.key_names)))

    def needed_before(self, before: bytes) -> bytes:
        """Return the before image of an update if it is needed, or else the JSON text null.

        It is needed if `images` is set, if the key columns are unknown, or if its text may contain
        the name of a key column: the value of this column may have changed.
        """
        if self.images or not self.quoted_keys or b"\\" in before:
            # Characters of a name may be escaped.
            return before
        for name in self.quoted_keys:
            if name in before:
                return before
        return NULL

    def insert(self, after: bytes, where: bytes = STREAMED) -> bytes:
        """Return the normalized event of an insert, as JSON.

        `after` is the row, and `where` has the JSON fields of its log position, from
        `where_in_log`.
        """
        return b'%s%s},"op":"c","after":%s}' % (self.opening, where, after)

    def update(self, after: bytes, before: bytes = NULL, where: bytes = STREAMED) -> bytes:
        """Return the normalized event of an update, as JSON.

        `after` is the new row and `before` the old row, from which only the key is used unless
        before images are requested. `where` has the JSON fields of the log position.
        """
        return b'%s%s},"op":"u","before":%s,"after":%s}' % (self.opening, where, before, after)

    def delete(self, before: bytes, where: bytes = STREAMED) -> bytes:
        """Return the normalized event of a delete, as JSON.

        `before` is the deleted row, and `where` has the JSON fields of the log position.
        """
        return b'%s%s},"op":"d","before":%s,"after":null}' % (self.opening, where, before)


class NormalizedEvent(msgspec.Struct, gc=False):
    """The row changes of one message, as normalized events in JSON.

    `normalizer` describes the table and its columns. `key` is the message key if it is the key of
    the rows, else `NO_KEY`.
    """

    normalizer: TableNormalizer
    changes: tuple[bytes, ...]
    key: MessageKey = NO_KEY


class TruncateEvent(NamedTuple):
    """A truncate of a table; `position` is None if its log position is unknown."""

    source: SourceTable
    position: int | None


class TableNormalizers:
    """A cache of table normalizers, by message fields such as the table name.

    If `images` is set, cached normalizers keep before images.
    """

    def __init__(self, *, images: bool = False) -> None:
        self._images = images
        self._normalizers: dict[Hashable, TableNormalizer] = {}

    def get(self, which: Hashable) -> TableNormalizer | None:
        """Return the normalizer that is cached for these fields of a message, or None."""
        return self._normalizers.get(which)

    def keep(self, which: Hashable, normalizer: TableNormalizer) -> TableNormalizer:
        """Cache a normalizer for these fields of a message, and return it.

        If the cache keeps before images, `images` is set in the cached and returned normalizer.
        """
        if len(self._normalizers) >= _MAX_NORMALIZERS:
            self._normalizers.clear()
        cached = replace(normalizer, images=True) if self._images else normalizer
        self._normalizers[which] = cached
        return cached


def name_as_json(name: str | None) -> bytes:
    """Return a name as a JSON string, or the JSON text null for None."""
    return _encode(name)


def where_in_log(position: int | None, *, snapshot: bool = False) -> bytes:
    """Return the log position and the snapshot flag of a change as JSON fields.

    The fields are preceded by a comma. A position that is None or negative is omitted.
    """
    mark = SNAPSHOT if snapshot else STREAMED
    return mark if position is None or position < 0 else b',"lsn":%d%s' % (position, mark)


Message = NormalizedEvent | TruncateEvent | Sequence[DdlEvent]
"""The content of a message: changed rows, a truncate, or the DDL events of a control message."""


class Dialect(Protocol):
    """A mapping from the messages of one format to normalized events.

    An implementation may cache normalizers, but not results.
    """

    def normalize(self, value: bytes, key: bytes | None, topic: str) -> Message | None:
        """Return the content of a message, or None for a control message without DDL events.

        `value` and `key` are the value and the key of a record of `topic`.

        Raises RecordError if the message is invalid.
        """
        ...

    def normalize_tombstone(self, key: bytes | None, topic: str) -> NormalizedEvent | None:
        """Return the change of a tombstone, or None if it is not a change.

        Raises RecordError if its key is invalid.
        """
        ...


class GroupKey(NamedTuple):
    """The properties that all changes of a group have in common.

    `key_envelope` is the envelope of the message keys, or None if messages have no key. `key_names`
    are the columns of the message keys, or else the key columns of the normalizer.
    """

    normalizer: TableNormalizer
    key_envelope: Envelope | None
    key_names: tuple[str, ...]

    @classmethod
    def of(cls, event: NormalizedEvent) -> "GroupKey":
        """Return the key of the group to which an event belongs."""
        return cls(event.normalizer, event.key.envelope, _key_names(event))

    def includes(self, event: NormalizedEvent) -> bool:
        """Return whether an event belongs to the group. Normalizers are compared by identity."""
        return (
            self.normalizer is event.normalizer
            and self.key_envelope is event.key.envelope
            and self.key_names == _key_names(event)
        )


def _key_names(event: NormalizedEvent) -> tuple[str, ...]:
    return event.key.names or event.normalizer.key_names


@dataclass(slots=True)
class Group:
    """Changes with the same group key, and the indices of their records."""

    key: GroupKey
    values: list[bytes] = field(default_factory=list)
    keys: list[bytes] = field(default_factory=list)
    indices: list[int] = field(default_factory=list)


@dataclass(slots=True)
class SortedRecords:
    """The records of a chunk by kind: grouped changes, rejected records, truncates and control.

    `bad` has the rejection reasons by index. `altered` are schema changes that control messages
    contain, and `control` is the number of control messages, including tombstones that are not
    changes. `latest` is the group of the last change.
    """

    groups: dict[GroupKey, Group] = field(default_factory=dict)
    bad: dict[int, Reason] = field(default_factory=dict)
    truncates: list[Truncate] = field(default_factory=list)
    altered: list[SchemaChangeEvent] = field(default_factory=list)
    control: int = 0
    latest: Group | None = None

    def add(self, index: int, change: NormalizedEvent) -> None:
        """Add the changes of a record to their group."""
        group = self.latest
        if group is None or not group.key.includes(change):
            key = GroupKey.of(change)
            group = self.groups.get(key)
            if group is None:
                group = self.groups[key] = Group(key)
            self.latest = group
        for event in change.changes:
            group.values.append(event)
            group.keys.append(change.key.payload)
            group.indices.append(index)


def sort_records(dialect: Dialect, chunk: RecordChunk, indices: Iterable[int]) -> SortedRecords:
    """Normalize the records of a chunk at these indices, in this order.

    Returns the changes, truncates and schema changes, and the rejection reasons of invalid records.
    """
    records = SortedRecords()
    values, keys, topic = chunk.values, chunk.keys, chunk.topic
    normalize = dialect.normalize
    for index in indices:
        value, key = values[index], keys[index]
        change: Message | None
        try:
            if value is None or value == b"null":
                change = dialect.normalize_tombstone(key, topic)
            else:
                change = normalize(value, key, topic)
        except RecordError as error:
            records.bad[index] = error.reason
            continue
        if isinstance(change, NormalizedEvent):
            records.add(index, change)
        else:
            _add_other(records, chunk, index, change)
    return records


def _add_other(
    records: SortedRecords,
    chunk: RecordChunk,
    index: int,
    change: TruncateEvent | Sequence[DdlEvent] | None,
) -> None:
    if isinstance(change, TruncateEvent):
        offset = int(chunk.offsets[index])
        records.truncates.append(Truncate(change.source, chunk.partition, offset, change.position))
        return
    records.control += 1
    records.altered += [event.at(chunk, index) for event in change or ()]
