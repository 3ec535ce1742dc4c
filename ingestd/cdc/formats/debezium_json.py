"""Data format `debezium-json`: Debezium change events in JSON, with or without their schemas.

Flattened rows among them are recognised by the fields that the transform adds; a topic with only
such rows is faster to read as `debezium-flat-json`.

A uniform chunk (one table, one schema, no control messages) is decoded with the plan of the
previous one in a few calls; in a chunk of several tables, so are the messages of each table. All
other messages are parsed one by one, grouped by table, schema and key, and extend the plan.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt

from ingestd.cdc.base import (
    ChangeBatch,
    Decoded,
    FormatDescriptor,
    FormatSettings,
    KnownColumns,
    RecordChunk,
)
from ingestd.cdc.column_learning import TableMemory
from ingestd.cdc.columns.type_mapping import JSON_TYPE_MAPPINGS
from ingestd.cdc.debezium_envelope import BARE
from ingestd.cdc.debezium_event import EVENT_TIME, is_debezium
from ingestd.cdc.event_records import EventRecords, GroupKey, SortedEvents, in_order
from ingestd.cdc.formats.debezium_flat_json import FlatDialect
from ingestd.cdc.json_changes import JsonChanges
from ingestd.cdc.messages import Messages
from ingestd.cdc.native.classifier import Classifier
from ingestd.cdc.native.layouts.debezium import LOOK
from ingestd.cdc.native.layouts.flat import flat_layout
from ingestd.cdc.native.module import NativeModule, native_module
from ingestd.cdc.native.rows import read_natively
from ingestd.cdc.native.uniform_chunk import Native, no_keys
from ingestd.cdc.record_errors import rejected
from ingestd.cdc.table_messages import decode_if_uniform, decode_messages
from ingestd.cdc.texts import Texts, all_there, picked, there

_MAX_MEMORIES = 2000
_NO_SETTINGS = FormatSettings()


def new_format(settings: FormatSettings) -> "DebeziumJson":
    """Return a decoder without cached tables."""
    return DebeziumJson(native_module(), settings)


@dataclass(frozen=True, slots=True)
class _Read:
    """The records of a group that were read natively, by index."""

    indices: list[int]
    batch: ChangeBatch


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
        self._sorter = None if module is None else Classifier(module, LOOK)
        self._records = EventRecords()
        self._flat = JsonChanges(
            self.name, FlatDialect(), settings, module, Native(flat_layout, keyless=no_keys)
        )
        self._memories: dict[GroupKey, TableMemory] = {}
        self._usual: dict[str, GroupKey] = {}

    def decode(self, chunk: RecordChunk, known: KnownColumns, declared: KnownColumns) -> Decoded:
        """Decode a chunk; bad records are in the result, never raised.

        `known` are the columns that the target table has, `declared` those whose types the
        configuration fixes. Raises UnsupportedError for a column type without an Arrow type.
        """
        decoded = self._decode_uniform(chunk, known, declared)
        return self._decode_apart(chunk, known, declared) if decoded is None else decoded

    def _decode_uniform(
        self, chunk: RecordChunk, known: KnownColumns, declared: KnownColumns
    ) -> Decoded | None:
        """Decode a chunk if all messages match the topic's previous ones; else return None."""
        group_key = self._usual.get(chunk.topic) or self._records.first_group(chunk)
        if group_key is None:
            return None
        source = group_key[0]
        messages = _messages(chunk, group_key)
        if messages is None:
            return None
        memory = self._memory(group_key)
        batch = decode_if_uniform(memory, messages, known.get(source, {}), declared.get(source, {}))
        if batch is None:
            return None
        self._usual[chunk.topic] = group_key
        return Decoded([batch], [], [], len(chunk.values) - len(messages.values))

    def _decode_apart(
        self, chunk: RecordChunk, known: KnownColumns, declared: KnownColumns
    ) -> Decoded:
        read = self._decode_tables(chunk, known, declared)
        found = self._sort(chunk, read)
        decoded = found.others
        batches = {one.indices[0]: [one.batch] for one in read.values()}
        for group_key, group in found.groups.items():
            source = group_key[0]
            memory = self._memory(group_key)
            keys = None if group_key[2] is None else group.keys
            messages = Messages(group.values, keys, chunk.offsets[group.indices])
            made, bad = decode_messages(
                memory, messages, known.get(source, {}), declared.get(source, {})
            )
            if made:
                batches[group.indices[0]] = made
                self._usual[chunk.topic] = group_key
            for place, reason in bad.items():
                decoded.rejected.append(rejected(chunk, group.indices[place], reason))
        decoded.batches.extend(batch for first in sorted(batches) for batch in batches[first])
        if found.flat:
            flat = chunk.take(np.array(found.flat, np.int64))
            decoded = _together(decoded, self._flat.decode(flat, known, declared))
        decoded.rejected.sort(key=lambda dead_letter: dead_letter.offset)
        return decoded

    def _decode_tables(
        self, chunk: RecordChunk, known: KnownColumns, declared: KnownColumns
    ) -> dict[GroupKey, _Read]:
        """Decode the messages of each table whose messages all match the plan of the first one."""
        found: dict[GroupKey, _Read] = {}
        if self._sorter is None or not self._memories:
            return found
        for indices in self._sorter.sort(chunk.values):
            part = chunk.take(indices)
            group_key = self._records.first_group(part)
            # What is named in two ways may still be one table.
            if group_key is None or group_key in found:
                continue
            # Keys with their fields in another order are of another group.
            if not in_order(part.keys, group_key[3]):
                continue
            source = group_key[0]
            memory, messages = self._memory(group_key), _messages(part, group_key)
            if memory.plan is None or messages is None or not memory.takes(messages.values):
                continue
            if memory.is_current(known.get(source, {}), declared.get(source, {})):
                batch = read_natively(memory.plan, messages)
                if batch is not None:
                    found[group_key] = _Read(indices.tolist(), batch)
        return found

    def _sort(self, chunk: RecordChunk, read: dict[GroupKey, _Read]) -> SortedEvents:
        """Sort the remaining records; a group is read natively as a whole or in Python."""
        left = np.ones(len(chunk.values), np.bool_)
        for one in read.values():
            left[one.indices] = False
        found = self._records.sort(chunk, np.flatnonzero(left).tolist())
        split = [read.pop(key) for key in found.groups if key in read]
        for one in split:
            left[one.indices] = True
        return self._records.sort(chunk, np.flatnonzero(left).tolist()) if split else found

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


def _messages(chunk: RecordChunk, group_key: GroupKey) -> Messages | None:
    """Return the messages of a chunk that have a value, if all have a key or none has."""
    _, value_shape, key_shape, _ = group_key
    indices, values, keys = _without_tombstones(chunk)
    if not values or not (all_there(keys) if key_shape else keys.count(None) == len(keys)):
        return None
    found = None if key_shape is None else cast("Sequence[bytes]", keys)
    return Messages(values, found, chunk.offsets[indices], value_shape, key_shape or BARE)


def _without_tombstones(
    chunk: RecordChunk,
) -> tuple[npt.NDArray[np.int64] | slice, Sequence[bytes], Texts]:
    """Return indices, values and keys of the records that have a value."""
    if all_there(chunk.values):
        return slice(None), cast("Sequence[bytes]", chunk.values), chunk.keys
    indices = there(chunk.values, empty=True)
    values = cast("Sequence[bytes]", picked(chunk.values, indices))
    return indices, values, picked(chunk.keys, indices)


def _together(one: Decoded, other: Decoded) -> Decoded:
    return Decoded(
        one.batches + other.batches,
        one.rejected + other.rejected,
        one.truncates + other.truncates,
        one.control + other.control,
        one.schema_changes + other.schema_changes,
    )


FORMAT = FormatDescriptor(
    name="debezium-json",
    description="Debezium, JSON converter",
    new_decoder=new_format,
    recognizes=is_debezium,
    registry="optional",
    event_time=EVENT_TIME,
    type_mapping=JSON_TYPE_MAPPINGS,
    source_position=True,
    truncates=True,
    schema_changes=True,
)
