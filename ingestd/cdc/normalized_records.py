"""Normalize the records of a chunk one by one, and group the changes of one table."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from ingestd.cdc.base import RecordChunk, SchemaChangeEvent, Truncate
from ingestd.cdc.debezium_envelope import Shape
from ingestd.cdc.normalized_events import DdlEvent, NormalizedEvent, TableNormalizer, TruncateEvent
from ingestd.cdc.record_errors import Reason, RecordError

GroupKey = tuple[TableNormalizer, Shape | None, tuple[str, ...]]
"""A form, the wrapper of message keys and the names in them, or those that the form has."""
Message = NormalizedEvent | TruncateEvent | DdlEvent
"""The content of a message: changed rows, a truncate, or changed columns."""


class Dialect(Protocol):
    """Maps the messages of one format to normalized events; may keep caches, never results."""

    def normalize(self, value: bytes, key: bytes | None, topic: str) -> Message | None:
        """Return the changes of a message; None for a control message. Raises RecordError."""
        ...

    def normalize_tombstone(self, key: bytes | None, topic: str) -> NormalizedEvent | None:
        """Return the change of a tombstone; None if it is not a change. Raises RecordError."""
        ...


def group_key(change: NormalizedEvent) -> GroupKey:
    """Return the key of a group: table, envelope and kind of key."""
    form, key = change.form, change.key
    return (form, key.shape, key.names or form.key_names)


@dataclass(slots=True)
class Group:
    """Changes with one normalizer and one kind of key, with the indices of their records."""

    form: TableNormalizer
    shape: Shape | None
    names: tuple[str, ...]
    values: list[bytes] = field(default_factory=list)
    keys: list[bytes] = field(default_factory=list)
    indices: list[int] = field(default_factory=list)

    def takes(self, form: TableNormalizer, shape: Shape | None, names: tuple[str, ...]) -> bool:
        """Return whether changes of this kind belong to this group."""
        return self.form is form and self.shape is shape and self.names == names


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
        key = group_key(change)
        group = self.latest
        if group is None or not group.takes(*key):
            group = self.groups.get(key)
            if group is None:
                group = self.groups[key] = Group(*key)
            self.latest = group
        for one in change.changes:
            group.values.append(one)
            group.keys.append(change.key.payload)
            group.indices.append(index)


def sort_records(dialect: Dialect, chunk: RecordChunk, indices: Iterable[int]) -> SortedRecords:
    """Sort the records at these indices, in this order."""
    found = SortedRecords()
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
            found.bad[index] = error.reason
            continue
        if isinstance(change, NormalizedEvent):
            found.add(index, change)
        else:
            _add_other(found, chunk, index, change)
    return found


def _add_other(
    found: SortedRecords, chunk: RecordChunk, index: int, change: TruncateEvent | DdlEvent | None
) -> None:
    offset = int(chunk.offsets[index])
    if isinstance(change, TruncateEvent):
        found.truncates.append(Truncate(change.source, chunk.partition, offset, change.position))
        return
    found.control += 1
    if change is not None:
        found.altered.append(SchemaChangeEvent(change.source, chunk.partition, offset, *change[1:]))
