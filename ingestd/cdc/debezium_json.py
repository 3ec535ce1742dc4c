"""Data format `debezium-json`: Debezium change events in JSON, with or without their schemas.

A chunk whose messages are all alike (one table, one schema, no control messages) goes through the
plan of the last one in a few calls. Any other chunk is taken apart message by message, grouped by
table, schema and key, and learnt from.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import msgspec
import numpy as np
import numpy.typing as npt

from ingestd.cdc.base import (
    UNKNOWN_POSITION,
    Decoded,
    KnownColumns,
    RecordChunk,
    Rejected,
    SourceTable,
    Truncate,
)
from ingestd.cdc.column_learning import TableMemory
from ingestd.cdc.debezium_envelope import BARE, Envelopes, Shape
from ingestd.cdc.debezium_event import Event, read_event
from ingestd.cdc.messages import Messages
from ingestd.cdc.native_module import NativeModule, native_module
from ingestd.cdc.record_errors import (
    PARSE_ERRORS,
    RecordError,
    explain,
    refuse,
    rejected,
)
from ingestd.cdc.source_position import position_of
from ingestd.cdc.table_messages import decode_if_alike, decode_messages

_MAX_MEMORIES = 2000
_decode_key_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode

GroupKey = tuple[SourceTable, Shape, Shape | None, tuple[str, ...]]


def new_format() -> "DebeziumJson":
    """A decoder that has learnt nothing yet."""
    return DebeziumJson(native_module())


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
    """A message value without its wrapper."""

    shape: Shape
    payload: bytes
    event: Event


@dataclass(frozen=True, slots=True)
class _Key:
    """A message key without its wrapper; `shape` is None when there is no key."""

    shape: Shape | None
    payload: bytes
    names: tuple[str, ...]


_NO_KEY = _Key(None, b"", ())


class DebeziumJson:
    """Decoder of Debezium JSON; keeps what it learnt of tables, so use one for many chunks.

    Without `module` everything is decoded in Python, with the same results.
    """

    name = "debezium-json"

    def __init__(self, module: NativeModule | None) -> None:
        self._module = module
        self._value_envelopes = Envelopes(is_key=False)
        self._key_envelopes = Envelopes(is_key=True)
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
                if found is None or found.event.is_truncate:
                    return None
                opened = self._open_key(key)
            except RecordError:
                return None
            return (found.event.source, found.shape, opened.shape, opened.names)
        return None

    def _decode_apart(
        self, chunk: RecordChunk, known: KnownColumns, declared: KnownColumns
    ) -> Decoded:
        decoded, groups = self._sort(chunk)
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
        decoded.rejected.sort(key=lambda letter: letter.offset)
        return decoded

    def _sort(self, chunk: RecordChunk) -> tuple[Decoded, dict[GroupKey, _Group]]:
        """All records that are no row changes, and the others by group."""
        rejects: list[Rejected] = []
        truncates: list[Truncate] = []
        groups: dict[GroupKey, _Group] = {}
        control = 0
        for index, value in enumerate(chunk.values):
            try:
                found = None if value is None else self._open(value, chunk.topic)
                if found is None:
                    control += 1
                elif found.event.is_truncate:
                    truncates.append(_truncate(chunk, index, found.event))
                else:
                    key = self._open_key(chunk.keys[index])
                    group_key = (found.event.source, found.shape, key.shape, key.names)
                    groups.setdefault(group_key, _Group()).add(index, found.payload, key.payload)
            except RecordError as error:
                rejects.append(rejected(chunk, index, error.reason))
        return Decoded([], rejects, truncates, control), groups

    def _open(self, value: bytes, topic: str) -> "_Message | None":
        """A message with its wrapper taken off; None for control messages."""
        shape, payload = self._value_envelopes.open(value)
        if payload == b"null":
            return None
        event = read_event(payload, topic)
        return None if event is None else _Message(shape, payload, event)

    def _open_key(self, key: bytes | None) -> "_Key":
        if key is None:
            return _NO_KEY
        shape, payload = self._key_envelopes.open(key)
        if payload == b"null":
            return _NO_KEY
        try:
            names = tuple(_decode_key_fields(payload))
        except msgspec.ValidationError as error:
            message = "the message key is not a JSON object"
            raise refuse("key", "not_an_object", message) from error
        except PARSE_ERRORS as error:
            raise RecordError(explain(error, "message key", "key")) from error
        return _Key(shape, payload, names) if names else _NO_KEY

    def _memory(self, group_key: GroupKey) -> TableMemory:
        memory = self._memories.get(group_key)
        if memory is None:
            source, value_shape, key_shape, key_names = group_key
            if len(self._memories) >= _MAX_MEMORIES:
                self._memories.clear()
            key_columns = None if key_shape is None else key_shape.columns
            memory = TableMemory(
                source, key_names, value_shape.columns, key_columns, module=self._module
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


def _truncate(chunk: RecordChunk, index: int, event: Event) -> Truncate:
    position = position_of(event.position)
    return Truncate(
        event.source,
        chunk.partition,
        int(chunk.offsets[index]),
        None if position == UNKNOWN_POSITION else position,
    )
