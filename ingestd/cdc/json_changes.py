"""The decoder of all JSON formats that say where table, row, operation and key are in a message.

A chunk whose messages are all alike is read natively as it is. Of any other chunk each message is
restated as a change (`table_form`), and those of one form go through one row plan.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ingestd.cdc.base import (
    ChangeBatch,
    Decoded,
    FormatSettings,
    KnownColumns,
    RecordChunk,
    Rejected,
    SchemaChangeEvent,
    Truncate,
)
from ingestd.cdc.column_learning import TableMemory, Types
from ingestd.cdc.debezium_envelope import Shape
from ingestd.cdc.messages import Messages
from ingestd.cdc.native.alike import AlikeReader, Native
from ingestd.cdc.native.module import NativeModule
from ingestd.cdc.record_errors import Reason, RecordError, rejected
from ingestd.cdc.seen_columns import as_seen
from ingestd.cdc.table_form import Altered, Emptied, Restated, TableForm
from ingestd.cdc.table_messages import Reasons, decode_messages

_MAX_MEMORIES = 2000
_NO_TYPES: Types = {}

_GroupKey = tuple[TableForm, Shape | None, tuple[str, ...]]
Message = Restated | Emptied | Altered
"""What a message says: rows, or that a table was emptied, or that its columns changed."""


class Dialect(Protocol):
    """What a format makes of one message; may keep caches, never results."""

    def restate(self, value: bytes, key: bytes | None, topic: str) -> Message | None:
        """The changes of a message, None for a control message. Raises RecordError."""
        ...

    def restate_tombstone(self, key: bytes | None, topic: str) -> Restated | None:
        """The change that a message without value is, None if it is none. Raises RecordError."""
        ...


@dataclass(slots=True)
class _Group:
    """Changes of one form and one form of key, with the indices of their records."""

    form: TableForm
    shape: Shape | None
    names: tuple[str, ...]
    values: list[bytes] = field(default_factory=list)
    keys: list[bytes] = field(default_factory=list)
    indices: list[int] = field(default_factory=list)

    def takes(self, form: TableForm, shape: Shape | None, names: tuple[str, ...]) -> bool:
        """Whether changes of this kind belong here."""
        return self.form is form and self.shape is shape and self.names == names


@dataclass(slots=True)
class _Sorted:
    """The records of a chunk, apart."""

    groups: dict[_GroupKey, _Group] = field(default_factory=dict)
    bad: dict[int, Reason] = field(default_factory=dict)
    truncates: list[Truncate] = field(default_factory=list)
    altered: list[SchemaChangeEvent] = field(default_factory=list)
    control: int = 0
    latest: _Group | None = None

    def group(self, form: TableForm, shape: Shape | None, names: tuple[str, ...]) -> _Group:
        """The group of changes of a form."""
        which = (form, shape, names)
        found = self.groups.get(which)
        if found is None:
            found = self.groups[which] = _Group(form, shape, names)
        return found


class JsonChanges:
    """Decoder of one JSON format; keeps what it learnt of tables, so use one for many chunks.

    Without `module` everything is decoded in Python, with the same results.
    """

    def __init__(
        self,
        name: str,
        dialect: Dialect,
        settings: FormatSettings,
        module: NativeModule | None,
        native: Native | None = None,
    ) -> None:
        self.name = name
        self._dialect = dialect
        self._type_mapping = settings.type_mapping
        self._images = settings.images
        self._module = module
        self._alike = AlikeReader(module, native) if module and native else None
        self._memories: dict[_GroupKey, TableMemory] = {}

    def decode(self, chunk: RecordChunk, known: KnownColumns, declared: KnownColumns) -> Decoded:
        """Decode a chunk; bad records are in the result, never raised.

        `known` are the columns that the target table has, `declared` those whose types the
        configuration fixes. Raises UnsupportedError for a column type without an Arrow form.
        """
        batch = self._decode_alike(chunk, known, declared)
        if batch is not None:
            return Decoded([batch], [], [], 0)
        found = self._sort(chunk)
        batches: list[ChangeBatch] = []
        for group in found.groups.values():
            source = group.form.source
            types, fixed = known.get(source, _NO_TYPES), declared.get(source, _NO_TYPES)
            batch, refused = self._decode_group(chunk, group, types, fixed)
            for place, reason in refused.items():
                found.bad.setdefault(group.indices[place], reason)
            if batch is not None:
                batches.append(batch)
        return Decoded(
            _without_records(batches, chunk, found.bad),
            _rejected(chunk, found.bad),
            found.truncates,
            found.control,
            found.altered,
        )

    def _decode_alike(
        self, chunk: RecordChunk, known: KnownColumns, declared: KnownColumns
    ) -> ChangeBatch | None:
        """The batch of a chunk all of whose messages are as planned for the first of them."""
        if self._alike is None or not chunk.values or not chunk.values[0]:
            return None
        try:
            first = self._dialect.restate(chunk.values[0], chunk.keys[0], chunk.topic)
        except RecordError:
            return None
        if not isinstance(first, Restated):
            return None
        source, key = first.form.source, first.key
        types, fixed = known.get(source, _NO_TYPES), declared.get(source, _NO_TYPES)
        names = key.names or first.form.key_names or _key_of(types)
        memory = self._memories.get((first.form, key.shape, names))
        if memory is None or memory.plan is None or not memory.is_current(types, fixed):
            return None
        batch = self._alike.read(chunk, first, memory.plan)
        seen = None if batch is None else as_seen(batch, first.form)
        return seen if seen is not None and seen.types else None

    def _decode_group(
        self, chunk: RecordChunk, group: _Group, known: Types, declared: Types
    ) -> tuple[ChangeBatch | None, Reasons]:
        memory = self._memory((group.form, group.shape, group.names or _key_of(known)))
        keys = None if group.shape is None else group.keys
        messages = Messages(group.values, keys, chunk.offsets[group.indices])
        batch, refused = decode_messages(memory, messages, known, declared)
        if batch is None:
            return None, refused
        seen = as_seen(batch, group.form)
        if seen.types:
            return seen, refused
        empty = Reason("decode", "empty_row", "a row has no columns")
        return None, dict.fromkeys(range(len(group.values)), empty)

    def _sort(self, chunk: RecordChunk) -> _Sorted:
        found = _Sorted()
        restate, topic = self._dialect.restate, chunk.topic
        for index, (value, key) in enumerate(zip(chunk.values, chunk.keys, strict=True)):
            change: Message | None
            try:
                if value is None or value == b"null":
                    change = self._dialect.restate_tombstone(key, topic)
                else:
                    change = restate(value, key, topic)
            except RecordError as error:
                found.bad[index] = error.reason
                continue
            if change is None:
                found.control += 1
            elif isinstance(change, Emptied):
                offset = int(chunk.offsets[index])
                truncate = Truncate(change.source, chunk.partition, offset, change.position)
                found.truncates.append(truncate)
            elif isinstance(change, Altered):
                found.control += 1
                offset = int(chunk.offsets[index])
                found.altered.append(
                    SchemaChangeEvent(change.source, chunk.partition, offset, *change[1:])
                )
            else:
                _add(found, index, change)
        return found

    def _memory(self, group: _GroupKey) -> TableMemory:
        memory = self._memories.get(group)
        if memory is None:
            form, shape, names = group
            if len(self._memories) >= _MAX_MEMORIES:
                self._memories.clear()
            memory = self._memories[group] = TableMemory(
                form.source,
                names,
                form.columns,
                None if shape is None else shape.columns,
                module=self._module,
                type_mapping=self._type_mapping,
                partial=form.partial,
                images=self._images,
            )
        return memory


def _add(found: _Sorted, index: int, change: Restated) -> None:
    form, key = change.form, change.key
    names = key.names or form.key_names
    group = found.latest
    if group is None or not group.takes(form, key.shape, names):
        group = found.latest = found.group(form, key.shape, names)
    for one in change.changes:
        group.values.append(one)
        group.keys.append(key.payload)
        group.indices.append(index)


def _key_of(types: Types) -> tuple[str, ...]:
    """The key of the target table, for messages that name none."""
    return tuple(name for name, data_type in types.items() if not data_type.nullable)


def _without_records(
    batches: list[ChangeBatch], chunk: RecordChunk, bad: Mapping[int, Reason]
) -> list[ChangeBatch]:
    """A record that fails in one of its rows fails whole."""
    if not bad:
        return batches
    offsets = chunk.offsets[list(bad)]
    return [one for one in (_without(batch, offsets) for batch in batches) if len(one.offset)]


def _without(batch: ChangeBatch, offsets: npt.NDArray[np.int64]) -> ChangeBatch:
    keep = ~np.isin(batch.offset, offsets)
    if keep.all():
        return batch
    return replace(
        batch,
        columns=batch.columns.filter(keep),
        row_kind=batch.row_kind[keep],
        offset=batch.offset[keep],
        position=batch.position[keep],
        snapshot_row=batch.snapshot_row[keep],
        unavailable={name: marks[keep] for name, marks in batch.unavailable.items()},
    )


def _rejected(chunk: RecordChunk, bad: Mapping[int, Reason]) -> list[Rejected]:
    return [rejected(chunk, index, bad[index]) for index in sorted(bad)]
