"""Decode messages of all JSON formats; a `Dialect` maps them to table, row, operation and key.

A uniform chunk (one table, the same fields in all messages) is read natively with the plan of
earlier chunks, without parsing a message in Python. If a chunk contains several tables, this is
done separately for the messages of each table. All other messages are converted to normalized
events (`normalized_events`). The events of a table are decoded with one row plan, which is extended
if necessary.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import pyarrow.compute as pc

from ingestd.cdc.assembly import EMPTY_ROW, assemble_changes
from ingestd.cdc.base import (
    ChangeBatch,
    Decoded,
    FormatSettings,
    KnownColumns,
    RecordChunk,
    RejectedRecord,
    SourceTable,
    comment_events,
    has_no_nulls,
    key_columns,
    picked,
    present_indices,
)
from ingestd.cdc.change_images import CELL_ERRORS
from ingestd.cdc.json.format_readers import PYTHON_ONLY, FormatReaders, NativeFormat
from ingestd.cdc.json.messages import NO_ENVELOPE, Messages
from ingestd.cdc.json.normalized_events import (
    Dialect,
    Group,
    GroupKey,
    Message,
    NormalizedEvent,
    SortedRecords,
    TableNormalizer,
    sort_records,
)
from ingestd.cdc.json.row_plan import RowWants
from ingestd.cdc.json.table_messages import (
    TableMemory,
    TargetTypes,
    decode_if_uniform,
    decode_messages,
    read_natively,
)
from ingestd.cdc.native_module import NativeModule
from ingestd.cdc.record_errors import Reason, Reasons, RecordError, rejected
from ingestd.paimon.spec.arrow import Column
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.row_selection import Indices

_MAX_MEMORIES = 2000
_PAYLOAD = "payload"


@dataclass(frozen=True, slots=True)
class _Read:
    """The records of a group that were read natively: their indices, and their batch."""

    indices: Indices
    batch: ChangeBatch


class JsonChanges:
    """The decoder of the JSON format `name`.

    `dialect` maps a message to a normalized event, and `native` describes the same format for the
    native extension `module`. If `module` is None, all messages are decoded in Python, with the
    same results. Plans of tables are cached, so one decoder should be used for many chunks.
    """

    def __init__(
        self,
        name: str,
        dialect: Dialect,
        settings: FormatSettings,
        module: NativeModule | None,
        native: NativeFormat = PYTHON_ONLY,
    ) -> None:
        self.name = name
        self._dialect = dialect
        self._settings = settings
        self._module = module
        self._native = native
        self._in_order = native.in_order
        self._readers = FormatReaders(module, native)
        self._memories: dict[GroupKey, TableMemory] = {}
        self._latest: dict[str, GroupKey] = {}
        self._mixed: set[str] = set()
        """The topics whose latest chunk had changes of several groups."""

    def decode(self, chunk: RecordChunk, known: KnownColumns, declared: KnownColumns) -> Decoded:
        """Decode a chunk; invalid records are returned as rejected records.

        `known` are the columns of existing target tables, and `declared` the columns whose types
        are configured. Raises UnsupportedError if JSON values cannot be read as a column's type.
        """
        group = None if chunk.topic in self._mixed else self._presumed_group(chunk)
        if group is None:
            return self._decode_mixed(chunk, known, declared)
        memory = self._memory(group, known)
        messages = self._messages(chunk, group)
        if messages is None:
            return self._decode_mixed(chunk, known, declared)
        normalizer = group.normalizer
        source = normalizer.source
        types = TargetTypes(known.get(source, {}), declared.get(source, {}))
        if normalizer.is_normalized:
            batch = decode_if_uniform(memory, messages, types)
        else:
            batch = self._read_natively(normalizer, memory, messages, types)
        if batch is None:
            return self._decode_mixed(chunk, known, declared)
        self._latest[chunk.topic] = group
        control = len(chunk.values) - len(messages.offsets)
        comments = comment_events(chunk, batch, normalizer.envelope.comments)
        return Decoded([batch], [], [], control, comments)

    def _presumed_group(self, chunk: RecordChunk) -> GroupKey | None:
        """Return the group to which all messages of a chunk presumably belong, or None.

        It is the latest group of the topic. If there is none, or if messages must be decoded in
        order, it is the group of the first message.
        """
        latest = None if self._in_order else self._latest.get(chunk.topic)
        return latest or self._first_group(chunk)

    def _first_group(self, chunk: RecordChunk) -> GroupKey | None:
        """Return the group of the first record with a value, or of the first record in order.

        Returns None if there is no such record, or if it is not a valid change.
        """
        values, every = chunk.values, self._in_order
        index = next((n for n, value in enumerate(values) if every or value is not None), None)
        if index is None or values[index] == b"":
            return None
        key, value = chunk.keys[index], values[index]
        first: Message | None
        try:
            if value is None:
                first = self._dialect.normalize_tombstone(key, chunk.topic)
            else:
                first = self._dialect.normalize(value, key, chunk.topic)
        except RecordError:
            return None
        return GroupKey.of(first) if isinstance(first, NormalizedEvent) else None

    def _messages(self, chunk: RecordChunk, group: GroupKey) -> Messages | None:
        """Return the messages of a chunk, or None if they cannot all belong to the group.

        Records without a value are left out, but if messages must be decoded in order, they are the
        deletes of their keys.
        """
        if _is_ambiguous(group):
            return None
        valued: Indices | None = None
        if not has_no_nulls(chunk.values):
            valued = present_indices(chunk.values, empty=True)
            if not self._in_order:
                chunk, valued = chunk.take(valued), None
        values = chunk.values if valued is None else picked(chunk.values, valued)
        if not values:
            return None
        values = cast("Sequence[bytes]", values)
        envelope = group.normalizer.envelope
        if group.key_envelope is None:
            keyless = valued is None and self._native.keyless(chunk.keys)
            return Messages(values, None, chunk.offsets, envelope) if keyless else None
        if not has_no_nulls(chunk.keys):
            return None
        keys = cast("Sequence[bytes]", chunk.keys)
        return Messages(values, keys, chunk.offsets, envelope, group.key_envelope, valued)

    def _memory(self, group: GroupKey, known: KnownColumns) -> TableMemory:
        """Return the memory of a group, a new one for a new group.

        If messages have no key columns, the key is that of the target table.
        """
        normalizer, envelope, names = group
        if not names and not normalizer.is_normalized:
            names = key_columns(known.get(normalizer.source, {}))
        key = GroupKey(normalizer, envelope, names)
        memory = self._memories.get(key)
        if memory is None:
            if len(self._memories) >= _MAX_MEMORIES:
                self._memories.clear()
            memory = self._memories[key] = TableMemory(
                normalizer.source,
                names,
                normalizer.columns,
                None if envelope is None else envelope.columns,
                module=self._module,
                type_mapping=self._settings.type_mapping,
                wants=RowWants(
                    normalizer.partial,
                    self._settings.images,
                    self._settings.presence,
                    normalizer.hidden,
                ),
            )
        return memory

    def _read_natively(
        self,
        normalizer: TableNormalizer,
        memory: TableMemory,
        messages: Messages,
        types: TargetTypes,
    ) -> ChangeBatch | None:
        """Read messages with the current plan of their group; None if a message does not match.

        Also returns None if the group has no current plan, if the plan has too many columns for
        these messages, or if no column of the batch is visible.
        """
        plan = memory.plan
        if plan is None or not memory.is_current(types):
            return None
        if not memory.takes(messages.values):
            return None
        reader = self._readers.reader(normalizer, plan)
        try:
            batch = assemble_changes(read_natively(reader, plan, messages))
        except CELL_ERRORS:
            return None
        visible = strip_hidden(batch, normalizer)
        return visible if visible.types else None

    def _decode_mixed(
        self, chunk: RecordChunk, known: KnownColumns, declared: KnownColumns
    ) -> Decoded:
        read = self._decode_tables(chunk, known, declared)
        records = self._sort(chunk, read)
        batches = {int(table.indices[0]): [table.batch] for table in read.values()}
        for key, table in read.items():
            records.altered += comment_events(chunk, table.batch, key.normalizer.envelope.comments)
        tables: dict[int, SourceTable] = {}
        for group in records.groups.values():
            decoded, refused = self._decode_group(chunk, group, known, declared)
            for index, reason in refused.items():
                records.bad.setdefault(group.indices[index], reason)
                tables.setdefault(group.indices[index], group.key.normalizer.source)
            batches[group.indices[0]] = decoded
            if decoded:
                self._latest[chunk.topic] = group.key
                comments = group.key.normalizer.envelope.comments
                records.altered += comment_events(chunk, decoded[-1], comments)
        several = len(batches) > 1 and not self._in_order
        (self._mixed.add if several else self._mixed.discard)(chunk.topic)
        in_order = [batch for first in sorted(batches) for batch in batches[first]]
        return Decoded(
            _without_records(in_order, chunk, records.bad),
            _rejected(chunk, records.bad, tables),
            records.truncates,
            records.control,
            records.altered,
        )

    def _decode_tables(
        self, chunk: RecordChunk, known: KnownColumns, declared: KnownColumns
    ) -> dict[GroupKey, _Read]:
        """Return the batches of the groups that could be read natively as a whole.

        The messages of a table are skipped if any of them does not match the plan of its group.
        """
        read: dict[GroupKey, _Read] = {}
        if not self._memories:
            return read
        for indices in self._readers.by_table(chunk.values):
            records = chunk.take(indices)
            group = self._first_group(records)
            # Messages whose table fields differ may still belong to the same group.
            if group is None or group in read:
                continue
            messages = self._messages(records, group)
            # Keys whose fields have another order belong to another group.
            if messages is None or not messages.has_keys_in_order(group.key_names):
                continue
            normalizer, memory = group.normalizer, self._memory(group, known)
            source = normalizer.source
            types = TargetTypes(known.get(source, {}), declared.get(source, {}))
            batch = self._read_natively(normalizer, memory, messages, types)
            if batch is not None:
                read[group] = _Read(indices, batch)
        return read

    def _sort(self, chunk: RecordChunk, read: dict[GroupKey, _Read]) -> SortedRecords:
        """Group the records that were not read natively.

        A group is decoded completely either natively or in Python. If a record belongs to a group
        in `read`, this group is removed from `read`, and all its records are grouped.
        """
        left = np.ones(len(chunk.values), np.bool_)
        for table in read.values():
            left[table.indices] = False
        records = sort_records(self._dialect, chunk, np.flatnonzero(left).tolist())
        split = [read.pop(key) for key in records.groups if key in read]
        for table in split:
            left[table.indices] = True
        if split:
            records = sort_records(self._dialect, chunk, np.flatnonzero(left).tolist())
        return records

    def _decode_group(
        self, chunk: RecordChunk, group: Group, known: KnownColumns, declared: KnownColumns
    ) -> tuple[list[ChangeBatch], Reasons]:
        normalizer = group.key.normalizer
        source = normalizer.source
        types = TargetTypes(known.get(source, {}), declared.get(source, {}))
        keys = None if group.key.key_envelope is None else group.keys
        messages = Messages(group.values, keys, chunk.offsets[group.indices])
        memory = self._memory(group.key, known)
        batches, refused = decode_messages(memory, messages, types)
        visible = [strip_hidden(batch, normalizer) for batch in batches]
        for batch in visible:
            if not batch.types:
                rows = np.flatnonzero(np.isin(messages.offsets, batch.offset)).tolist()
                refused |= dict.fromkeys(rows, EMPTY_ROW)
        return [batch for batch in visible if batch.types], refused


def _is_ambiguous(group: GroupKey) -> bool:
    """Return whether a message key with the fields of this group could also be an envelope."""
    return group.key_envelope is NO_ENVELOPE and _PAYLOAD in group.key_names


def _without_records(
    batches: list[ChangeBatch], chunk: RecordChunk, bad: Mapping[int, Reason]
) -> list[ChangeBatch]:
    """Return batches without the rows of rejected records, and without batches that become empty.

    `bad` has the rejection reasons by index. An invalid row rejects its whole record.
    """
    if not bad:
        return batches
    offsets = chunk.offsets[list(bad)]
    kept = [batch.filter(~np.isin(batch.offset, offsets)) for batch in batches]
    return [batch for batch in kept if len(batch.offset)]


def _rejected(
    chunk: RecordChunk, bad: Mapping[int, Reason], tables: Mapping[int, SourceTable]
) -> list[RejectedRecord]:
    """Return the rejected records; `tables` has the source tables that are known, by index."""
    return [rejected(chunk, index, bad[index], tables.get(index)) for index in sorted(bad)]


def strip_hidden(batch: ChangeBatch, normalizer: TableNormalizer) -> ChangeBatch:
    """Return a batch without the row fields that are not columns, with types that fit its values.

    These fields are those in `normalizer.hidden`. If a value is too long for its CHAR or VARCHAR
    column, the column becomes a VARCHAR with the length of the longest value; BINARY and VARBINARY
    columns become VARBINARY in the same way. If `normalizer.is_normalized`, the batch is returned
    unchanged.
    """
    if normalizer.is_normalized:
        return batch
    hidden = [name for name in batch.types if name in normalizer.hidden]
    types: dict[str, DataType] = {
        name: _long_enough(batch, name, data_type)
        for name, data_type in batch.types.items()
        if name not in normalizer.hidden
    }
    if not hidden and types == dict(batch.types) and not batch.lacking:
        return batch
    return replace(
        batch,
        columns=batch.columns.drop_columns(hidden),
        types=types,
        unavailable={
            n: marks for n, marks in batch.unavailable.items() if n not in normalizer.hidden
        },
        lacking={n: marks for n, marks in batch.lacking.items() if n not in normalizer.hidden},
    )


def _long_enough(batch: ChangeBatch, name: str, data_type: DataType) -> DataType:
    if data_type.length is None or data_type.root not in _LENGTHS:
        return data_type
    measure, root = _LENGTHS[data_type.root]
    longest = pc.max(measure(batch.columns.column(name))).as_py() or 0
    return data_type if longest <= data_type.length else DataType(root, length=longest)


_characters: Callable[..., Column] = pc.utf8_length
_bytes: Callable[..., Column] = pc.binary_length
_LENGTHS: Mapping[str, tuple[Callable[[Column], Column], str]] = {
    "CHAR": (_characters, "VARCHAR"),
    "VARCHAR": (_characters, "VARCHAR"),
    "BINARY": (_bytes, "VARBINARY"),
    "VARBINARY": (_bytes, "VARBINARY"),
}
