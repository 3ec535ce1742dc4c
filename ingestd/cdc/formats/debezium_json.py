"""Data format `debezium-json`: Debezium change events in JSON, with or without their schemas.

Flattened rows among them are told by the fields that the transform adds; a topic of nothing else
is quicker to read as `debezium-flat-json`.

A chunk whose messages are all alike (one table, one schema, no control messages) goes through the
plan of the last one in a few calls. Any other chunk is taken apart message by message, grouped by
table, schema and key, and learnt from.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
import numpy.typing as npt

from ingestd.cdc.base import (
    UNKNOWN_POSITION,
    Decoded,
    FormatSettings,
    KnownColumns,
    RecordChunk,
    Rejected,
    SchemaChangeEvent,
    SourceTable,
    Truncate,
)
from ingestd.cdc.column_learning import TableMemory
from ingestd.cdc.ddl.schema_events import schema_changes
from ingestd.cdc.debezium_envelope import BARE, Envelopes, Shape
from ingestd.cdc.debezium_event import Event, read_event
from ingestd.cdc.formats.debezium_flat_json import FlatRows, is_flat
from ingestd.cdc.json_changes import JsonChanges
from ingestd.cdc.message_key import MessageKeys
from ingestd.cdc.messages import Messages
from ingestd.cdc.native.alike import Native, no_keys
from ingestd.cdc.native.layouts.flat import flat_layout
from ingestd.cdc.native.module import NativeModule, native_module
from ingestd.cdc.record_errors import RecordError, rejected
from ingestd.cdc.source_position import position_of
from ingestd.cdc.table_messages import decode_if_alike, decode_messages

_MAX_MEMORIES = 2000
_NO_SETTINGS = FormatSettings()

GroupKey = tuple[SourceTable, Shape, Shape | None, tuple[str, ...]]


def new_format(settings: FormatSettings) -> "DebeziumJson":
    """A decoder that has learnt nothing yet."""
    return DebeziumJson(native_module(), settings)


@dataclass(slots=True)
class _Group:
    """Messages of one table, one schema and one form of key."""

    values: list[bytes] = field(default_factory=list)
    keys: list[bytes] = field(default_factory=list)
    indices: list[int] = field(default_factory=list)

    def add(self, index: int, value: bytes, key: bytes) -> None:
        self.indices.append(index)
        self.values.append(value)
        self.keys.append(key)


@dataclass(frozen=True, slots=True)
class _Message:
    """A message value without its wrapper; `event` is None for control messages."""

    shape: Shape
    payload: bytes
    event: Event | None


class DebeziumJson:
    """Decoder of Debezium JSON; keeps what it learnt of tables, so use one for many chunks.

    Without `module` everything is decoded in Python, with the same results.
    """

    name = "debezium-json"

    def __init__(
        self, module: NativeModule | None, settings: FormatSettings = _NO_SETTINGS
    ) -> None:
        self._module = module
        self._settings = settings
        self._value_envelopes = Envelopes(is_key=False)
        self._keys = MessageKeys()
        self._flat = JsonChanges(
            self.name, FlatRows(), settings, module, Native(flat_layout, no_keys)
        )
        self._memories: dict[GroupKey, TableMemory] = {}
        self._usual: dict[str, GroupKey] = {}

    def decode(self, chunk: RecordChunk, known: KnownColumns, declared: KnownColumns) -> Decoded:
        """Decode a chunk; bad records are in the result, never raised.

        `known` are the columns that the target table has, `declared` those whose types the
        configuration fixes. Raises UnsupportedError for a column type without an Arrow form.
        """
        decoded = self._decode_alike(chunk, known, declared)
        return self._decode_apart(chunk, known, declared) if decoded is None else decoded

    def _decode_alike(
        self, chunk: RecordChunk, known: KnownColumns, declared: KnownColumns
    ) -> Decoded | None:
        """What a chunk gives whose messages are all as usual for the topic, else None."""
        group_key = self._usual.get(chunk.topic) or self._group_of_first(chunk)
        if group_key is None:
            return None
        source, value_shape, key_shape, _ = group_key
        indices, values, keys = _without_tombstones(chunk)
        if not values or not (_all_there(keys) if key_shape else keys.count(None) == len(keys)):
            return None
        messages = Messages(
            values,
            None if key_shape is None else cast("list[bytes]", keys),
            chunk.offsets[indices],
            value_shape,
            key_shape or BARE,
        )
        memory = self._memory(group_key)
        batch = decode_if_alike(memory, messages, known.get(source, {}), declared.get(source, {}))
        if batch is None:
            return None
        self._usual[chunk.topic] = group_key
        return Decoded([batch], [], [], len(chunk.values) - len(values))

    def _group_of_first(self, chunk: RecordChunk) -> GroupKey | None:
        """The group of the first record that has a value, if that is a row."""
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

    def _decode_apart(
        self, chunk: RecordChunk, known: KnownColumns, declared: KnownColumns
    ) -> Decoded:
        flat: list[int] = []
        decoded, groups = self._sort(chunk, flat)
        for group_key, group in groups.items():
            source = group_key[0]
            memory = self._memory(group_key)
            messages = Messages(
                group.values,
                None if group_key[2] is None else group.keys,
                chunk.offsets[group.indices],
            )
            batch, bad = decode_messages(
                memory, messages, known.get(source, {}), declared.get(source, {})
            )
            if batch is not None:
                decoded.batches.append(batch)
                self._usual[chunk.topic] = group_key
            for place, reason in bad.items():
                decoded.rejected.append(rejected(chunk, group.indices[place], reason))
        if flat:
            decoded = _together(decoded, self._flat.decode(_picked(chunk, flat), known, declared))
        decoded.rejected.sort(key=lambda letter: letter.offset)
        return decoded

    def _sort(self, chunk: RecordChunk, flat: list[int]) -> tuple[Decoded, dict[GroupKey, _Group]]:
        """All records that are no row changes, and the others by group; indices of `flat` ones."""
        rejects: list[Rejected] = []
        truncates: list[Truncate] = []
        groups: dict[GroupKey, _Group] = {}
        proven: list[SchemaChangeEvent] = []
        control = 0
        for index, value in enumerate(chunk.values):
            if value is None:
                control += 1
                continue
            try:
                found = self._open(value, chunk.topic)
                event = found.event
                if event is None:
                    control += 1
                    proven += schema_changes(chunk, index, found.payload)
                elif event.is_truncate:
                    truncates.append(_truncate(chunk, index, event))
                else:
                    key = self._keys.open(chunk.keys[index])
                    group_key = (event.source, found.shape, key.shape, key.names)
                    groups.setdefault(group_key, _Group()).add(index, found.payload, key.payload)
            except RecordError as error:
                if error.reason.code == "missing_op" and is_flat(value):
                    flat.append(index)
                else:
                    rejects.append(rejected(chunk, index, error.reason))
        return Decoded([], rejects, truncates, control, proven), groups

    def _open(self, value: bytes, topic: str) -> _Message:
        """A message with its wrapper taken off. Raises RecordError."""
        shape, payload = self._value_envelopes.open(value)
        event = None if payload == b"null" else read_event(payload, topic)
        return _Message(shape, payload, event)

    def _memory(self, group_key: GroupKey) -> TableMemory:
        memory = self._memories.get(group_key)
        if memory is None:
            source, value_shape, key_shape, key_names = group_key
            if len(self._memories) >= _MAX_MEMORIES:
                self._memories.clear()
            key_columns = None if key_shape is None else key_shape.columns
            memory = TableMemory(
                source,
                key_names,
                value_shape.columns,
                key_columns,
                module=self._module,
                type_mapping=self._settings.type_mapping,
                images=self._settings.images,
            )
            self._memories[group_key] = memory
        return memory


def _without_tombstones(
    chunk: RecordChunk,
) -> tuple[npt.NDArray[np.int64] | slice, list[bytes], list[bytes | None]]:
    """Indices, values and keys of the records that have a value."""
    if _all_there(chunk.values):
        return slice(None), cast("list[bytes]", chunk.values), chunk.keys
    values = [value for value in chunk.values if value is not None]
    indices = [index for index, value in enumerate(chunk.values) if value is not None]
    return np.array(indices, np.int64), values, [chunk.keys[index] for index in indices]


def _all_there(texts: Sequence[bytes | None]) -> bool:
    """Whether none is missing. Asking for truth is much quicker than looking for None."""
    return all(texts) or None not in texts


def _picked(chunk: RecordChunk, indices: list[int]) -> RecordChunk:
    """Some records of a chunk, as if there were no others."""
    return replace(
        chunk,
        offsets=chunk.offsets[indices],
        timestamps=chunk.timestamps[indices],
        keys=[chunk.keys[index] for index in indices],
        values=[chunk.values[index] for index in indices],
        headers=None,
        sizes=None,
    )


def _together(one: Decoded, other: Decoded) -> Decoded:
    return Decoded(
        one.batches + other.batches,
        one.rejected + other.rejected,
        one.truncates + other.truncates,
        one.control + other.control,
        one.schema_changes + other.schema_changes,
    )


def _truncate(chunk: RecordChunk, index: int, event: Event) -> Truncate:
    position = position_of(event.position)
    return Truncate(
        event.source,
        chunk.partition,
        int(chunk.offsets[index]),
        None if position == UNKNOWN_POSITION else position,
    )
