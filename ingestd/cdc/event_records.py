"""Sort the records of a chunk as Debezium events: changes by group, and control messages."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from ingestd.cdc.base import (
    UNKNOWN_POSITION,
    Decoded,
    RecordChunk,
    SourceTable,
    Truncate,
)
from ingestd.cdc.ddl.schema_events import schema_changes
from ingestd.cdc.debezium_envelope import Envelopes, Shape
from ingestd.cdc.debezium_event import Event, read_event
from ingestd.cdc.message_key import MessageKeys
from ingestd.cdc.record_errors import RecordError, rejected
from ingestd.cdc.source_position import position_of

_FLATTENED = (b'"__op"', b'"__deleted"')
"""Fields that Debezium's ExtractNewRecordState adds to rows."""

GroupKey = tuple[SourceTable, Shape, Shape | None, tuple[str, ...]]
"""A table, the envelopes of values and keys (None: no key), and the names in the key."""


@dataclass(slots=True)
class EventGroup:
    """Messages of one table, one schema and one kind of key."""

    values: list[bytes] = field(default_factory=list)
    keys: list[bytes] = field(default_factory=list)
    indices: list[int] = field(default_factory=list)

    def add(self, index: int, value: bytes, key: bytes) -> None:
        """Add a message without its envelopes."""
        self.indices.append(index)
        self.values.append(value)
        self.keys.append(key)


@dataclass(frozen=True, slots=True)
class SortedEvents:
    """Sorted records of a chunk: `others` have no row, `flat` are indices of flattened rows."""

    groups: dict[GroupKey, EventGroup]
    others: Decoded
    flat: list[int]


@dataclass(frozen=True, slots=True)
class _Message:
    """A message value without its envelope; `event` is None for control messages."""

    shape: Shape
    payload: bytes
    event: Event | None


class EventRecords:
    """Groups records by table, envelope and key; caches envelopes and keys."""

    def __init__(self) -> None:
        self._envelopes = Envelopes(is_key=False)
        self._keys = MessageKeys()

    def first_group(self, chunk: RecordChunk) -> GroupKey | None:
        """Return the group of the first record with a value; None if that is not a row."""
        for value, key in zip(chunk.values, chunk.keys, strict=True):
            if value is None:
                continue
            try:
                found = self._open(value, chunk.topic)
                event = found.event
                if event is None or event.is_truncate:
                    return None
                opened = self._keys.open(key)
            except RecordError:
                return None
            return (event.source, found.shape, opened.shape, opened.names)
        return None

    def sort(self, chunk: RecordChunk, indices: Iterable[int]) -> SortedEvents:
        """Sort the records at these indices, in this order."""
        found = SortedEvents({}, Decoded([], [], [], 0), [])
        control = 0
        for index in indices:
            value = chunk.values[index]
            if value is None:
                control += 1
                continue
            try:
                control += self._add(found, chunk, index, value)
            except RecordError as error:
                if error.reason.code == "missing-op" and _may_be_flattened(value):
                    found.flat.append(index)
                else:
                    found.others.rejected.append(rejected(chunk, index, error.reason))
        others = found.others
        counted = Decoded([], others.rejected, others.truncates, control, others.schema_changes)
        return SortedEvents(found.groups, counted, found.flat)

    def _add(self, found: SortedEvents, chunk: RecordChunk, index: int, value: bytes) -> bool:
        """Add a message to its group; return whether it is a control message.

        Raises RecordError.
        """
        message = self._open(value, chunk.topic)
        event = message.event
        if event is None:
            found.others.schema_changes.extend(schema_changes(chunk, index, message.payload))
            return True
        if event.is_truncate:
            found.others.truncates.append(_truncate(chunk, index, event))
            return False
        key = self._keys.open(chunk.keys[index])
        group_key = (event.source, message.shape, key.shape, key.names)
        found.groups.setdefault(group_key, EventGroup()).add(index, message.payload, key.payload)
        return False

    def _open(self, value: bytes, topic: str) -> _Message:
        """Return a message without its envelope. Raises RecordError."""
        shape, payload = self._envelopes.open(value)
        event = None if payload == b"null" else read_event(payload, topic)
        return _Message(shape, payload, event)


def in_order(keys: Sequence[bytes | None], names: Sequence[str]) -> bool:
    """Return whether all keys have their fields in this order."""
    if len(names) < 2:
        return True
    # Atomic groups: no backtracking over a key that has a field a thousand times.
    parts = (rb'(?>.*?"%s"\s*:)' % re.escape(name.encode()) for name in names)
    match = re.compile(b"".join(parts), re.DOTALL).match
    return all(match(key or b"") for key in keys)


def _may_be_flattened(value: bytes) -> bool:
    return any(name in value for name in _FLATTENED)


def _truncate(chunk: RecordChunk, index: int, event: Event) -> Truncate:
    position = position_of(event.position)
    return Truncate(
        event.source,
        chunk.partition,
        int(chunk.offsets[index]),
        None if position == UNKNOWN_POSITION else position,
    )
