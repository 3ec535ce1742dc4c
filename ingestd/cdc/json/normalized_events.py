"""Normalize row changes of all JSON formats into the one form that row plans read: Debezium's.

A format determines the table, operation and images of each message (its `Dialect`); the images keep
the bytes of the message. The same row plans can therefore read the columns of all formats. The
records of a chunk are normalized one by one, and the changes of one table are grouped.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

import msgspec

from ingestd.cdc.base import DdlEvent, RecordChunk, SchemaChangeEvent, SourceTable, Truncate
from ingestd.cdc.columns.wire_column import WireColumn
from ingestd.cdc.json.messages import BARE, NO_KEY, MessageKey, Shape
from ingestd.cdc.record_errors import Reason, RecordError

INSERT, UPDATE, DELETE = b"c", b"u", b"d"
NULL = b"null"
STREAMED, SNAPSHOT = b',"snapshot":"false"', b',"snapshot":"true"'
"""Fields that mark rows of the log and rows of a snapshot."""

_MAX_NORMALIZERS = 2000
_encode = msgspec.json.encode


@dataclass(frozen=True, slots=True, eq=False)
class TableNormalizer:
    """Messages of one table whose rows have the same columns.

    `key_names` is the key in the messages, `columns` the columns whose types the messages contain
    (None: no types). `hidden` are fields of rows that are not columns. With `partial` updates omit
    columns that they did not change; with `images` before images are decoded, too. `constants` are
    fields with the JSON text that they have in all messages; a null field may be absent.
    `envelope` is that of the values.

    With `is_normalized` messages without their envelope are normalized events themselves. Their
    changes are these bytes, in the types and with the key that they state.
    """

    source: SourceTable
    key_names: tuple[str, ...] = ()
    columns: tuple[WireColumn, ...] | None = None
    hidden: frozenset[str] = frozenset()
    partial: bool = False
    images: bool = False
    constants: Mapping[str, bytes] = field(default_factory=dict)
    envelope: Shape = BARE
    is_normalized: bool = False
    opening: bytes = field(init=False)
    quoted_keys: tuple[bytes, ...] = field(init=False)

    def __post_init__(self) -> None:
        names = zip((b"db", b"schema", b"table"), self.source, strict=True)
        named = [b'"%s":%s' % (field, _encode(name)) for field, name in names if name is not None]
        object.__setattr__(self, "opening", b'{"source":{' + b",".join(named))
        object.__setattr__(self, "quoted_keys", tuple(map(_encode, self.key_names)))

    def key_of(self, before: bytes) -> bytes:
        """Return the before image of an update; null if it lacks the key, which then is unchanged.

        With `images` it is always the image.
        """
        if self.images or not self.quoted_keys:
            return before
        for name in self.quoted_keys:
            if name in before:
                return before
        return NULL

    def insert(self, after: bytes, where: bytes = STREAMED) -> bytes:
        """Return the event of an insert. `where` are the fields of its log position."""
        return b'%s%s},"op":"c","after":%s}' % (self.opening, where, after)

    def update(self, after: bytes, before: bytes = NULL, where: bytes = STREAMED) -> bytes:
        """Return the event of an update; only the key of `before` is read."""
        return b'%s%s},"op":"u","before":%s,"after":%s}' % (self.opening, where, before, after)

    def delete(self, before: bytes, where: bytes = STREAMED) -> bytes:
        """Return the event of a delete."""
        return b'%s%s},"op":"d","before":%s,"after":null}' % (self.opening, where, before)


class NormalizedEvent(msgspec.Struct, gc=False):
    """The changes of one message, and its key if it is the key of the row."""

    normalizer: TableNormalizer
    changes: tuple[bytes, ...]
    key: MessageKey = NO_KEY


class TruncateEvent(NamedTuple):
    """A truncated table; `position` is None if its log position is unknown."""

    source: SourceTable
    position: int | None


class TableNormalizers:
    """Caches normalizers by the fields of a message that determine them."""

    def __init__(self, *, images: bool = False) -> None:
        self._images = images
        self._normalizers: dict[Hashable, TableNormalizer] = {}

    def get(self, which: Hashable) -> TableNormalizer | None:
        """Return the cached normalizer."""
        return self._normalizers.get(which)

    def keep(self, which: Hashable, normalizer: TableNormalizer) -> TableNormalizer:
        """Cache a normalizer and return it."""
        if len(self._normalizers) >= _MAX_NORMALIZERS:
            self._normalizers.clear()
        kept = replace(normalizer, images=True) if self._images else normalizer
        self._normalizers[which] = kept
        return kept


def text_of(name: str | None) -> bytes:
    """Return a name as JSON."""
    return _encode(name)


def where_in_log(position: int | None, *, snapshot: bool = False) -> bytes:
    """Return the fields of the log position of a change."""
    mark = SNAPSHOT if snapshot else STREAMED
    return mark if position is None or position < 0 else b',"lsn":%d%s' % (position, mark)


Message = NormalizedEvent | TruncateEvent | Sequence[DdlEvent]
"""The content of a message: changed rows, a truncate, or the DDL events of a control message."""


class Dialect(Protocol):
    """Maps the messages of one format to normalized events; may keep caches, never results."""

    def normalize(self, value: bytes, key: bytes | None, topic: str) -> Message | None:
        """Return the content of a message; None is that of most control messages.

        Raises RecordError.
        """
        ...

    def normalize_tombstone(self, key: bytes | None, topic: str) -> NormalizedEvent | None:
        """Return the change of a tombstone; None if it is not a change. Raises RecordError."""
        ...


class GroupKey(NamedTuple):
    """What the changes of a group have in common.

    `key_shape` is the envelope of the message keys, None without one. `key_names` are the columns
    of the message keys, or those of the normalizer.
    """

    normalizer: TableNormalizer
    key_shape: Shape | None
    key_names: tuple[str, ...]

    @classmethod
    def of(cls, event: NormalizedEvent) -> "GroupKey":
        """Return the key of the group that an event belongs to."""
        return cls(event.normalizer, event.key.shape, _key_names(event))

    def includes(self, event: NormalizedEvent) -> bool:
        """Return whether an event belongs to the group; False for an equal, other normalizer."""
        return (
            self.normalizer is event.normalizer
            and self.key_shape is event.key.shape
            and self.key_names == _key_names(event)
        )


def _key_names(event: NormalizedEvent) -> tuple[str, ...]:
    return event.key.names or event.normalizer.key_names


@dataclass(slots=True)
class Group:
    """Changes with one normalizer and one kind of key, with the indices of their records."""

    key: GroupKey
    values: list[bytes] = field(default_factory=list)
    keys: list[bytes] = field(default_factory=list)
    indices: list[int] = field(default_factory=list)


@dataclass(slots=True)
class SortedRecords:
    """Sorted records of a chunk."""

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
    """Sort the records at these indices, in this order."""
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
