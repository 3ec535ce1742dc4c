"""The decoder of all JSON formats that map a message to table, row, operation and key (a dialect).

A chunk whose messages all have the same fields is read natively; of a chunk that mixes tables, the
messages of each. Every other message becomes a canonical event (`normalized_events`), and the
events of one table are decoded by one row plan.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ingestd.cdc.base import (
    ChangeBatch,
    Decoded,
    FormatSettings,
    KnownColumns,
    RecordChunk,
    RejectedRecord,
)
from ingestd.cdc.column_learning import TableMemory, Types
from ingestd.cdc.messages import Messages
from ingestd.cdc.native.module import NativeModule
from ingestd.cdc.native.uniform_chunk import Native, UniformChunkReader
from ingestd.cdc.normalized_events import NormalizedEvent
from ingestd.cdc.normalized_records import (
    Dialect,
    Group,
    GroupKey,
    SortedRecords,
    group_key,
    sort_records,
)
from ingestd.cdc.record_errors import Reason, RecordError, rejected
from ingestd.cdc.table_messages import Reasons, decode_messages
from ingestd.cdc.visible_columns import strip_hidden

_MAX_MEMORIES = 2000
_NO_TYPES: Types = {}
_EMPTY_ROW = Reason("decode", "empty-row", "a row has no columns")


@dataclass(frozen=True, slots=True)
class _Read:
    """The records of a group that were read natively, by index."""

    group: GroupKey
    indices: list[int]
    batch: ChangeBatch


class JsonChanges:
    """Decoder of one JSON format; caches what it learnt of tables, so use one for many chunks.

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
        self._uniform = UniformChunkReader(module, native) if module and native else None
        self._memories: dict[GroupKey, TableMemory] = {}

    def decode(self, chunk: RecordChunk, known: KnownColumns, declared: KnownColumns) -> Decoded:
        """Decode a chunk; bad records are in the result, never raised.

        `known` are the columns that the target table has, `declared` those whose types the
        configuration fixes. Raises UnsupportedError for a column type without an Arrow form.
        """
        whole = self._decode_uniform(chunk, range(len(chunk.values)), known, declared)
        if whole is not None:
            return Decoded([whole.batch], [], [], 0)
        read, found = self._sort(chunk, self._decode_tables(chunk, known, declared))
        batches = {one.indices[0]: [one.batch] for one in read}
        for group in found.groups.values():
            source = group.form.source
            types, fixed = known.get(source, _NO_TYPES), declared.get(source, _NO_TYPES)
            made, refused = self._decode_group(chunk, group, types, fixed)
            for place, reason in refused.items():
                found.bad.setdefault(group.indices[place], reason)
            batches[group.indices[0]] = made
        in_order = [batch for first in sorted(batches) for batch in batches[first]]
        return Decoded(
            _without_records(in_order, chunk, found.bad),
            _rejected(chunk, found.bad),
            found.truncates,
            found.control,
            found.altered,
        )

    def _decode_tables(
        self, chunk: RecordChunk, known: KnownColumns, declared: KnownColumns
    ) -> dict[GroupKey, _Read]:
        """Decode the messages of each table whose messages all match the plan of the first one."""
        found: dict[GroupKey, _Read] = {}
        if self._uniform is None or not self._memories:
            return found
        for indices in self._uniform.by_table(chunk.values):
            if len(indices) == len(chunk.values):
                break  # tried already
            read = self._decode_uniform(chunk.take(indices), indices.tolist(), known, declared)
            # What is named in two ways may still be one table.
            if read is not None and read.group not in found:
                found[read.group] = read
        return found

    def _sort(
        self, chunk: RecordChunk, read: dict[GroupKey, _Read]
    ) -> tuple[list[_Read], SortedRecords]:
        """Return what was read natively, and all other records sorted.

        A group is read natively as a whole or in Python.
        """
        left = np.ones(len(chunk.values), np.bool_)
        for one in read.values():
            left[one.indices] = False
        found = sort_records(self._dialect, chunk, np.flatnonzero(left).tolist())
        split = [read.pop(key) for key in found.groups if key in read]
        for one in split:
            left[one.indices] = True
        if split:
            found = sort_records(self._dialect, chunk, np.flatnonzero(left).tolist())
        return list(read.values()), found

    def _decode_uniform(
        self,
        chunk: RecordChunk,
        indices: Iterable[int],
        known: KnownColumns,
        declared: KnownColumns,
    ) -> _Read | None:
        """Decode messages if all match the plan of the first one; None if they do not."""
        if self._uniform is None or not chunk.values or not chunk.values[0]:
            return None
        try:
            first = self._dialect.normalize(chunk.values[0], chunk.keys[0], chunk.topic)
        except RecordError:
            return None
        if not isinstance(first, NormalizedEvent):
            return None
        group = group_key(first)
        form, shape, names = group
        types, fixed = known.get(form.source, _NO_TYPES), declared.get(form.source, _NO_TYPES)
        memory = self._memories.get((form, shape, names or _key_of(types)))
        if memory is None or memory.plan is None or not memory.is_current(types, fixed):
            return None
        if not memory.takes(chunk.values):
            return None
        batch = self._uniform.read(chunk, first, memory.plan)
        seen = None if batch is None else strip_hidden(batch, form)
        return _Read(group, list(indices), seen) if seen is not None and seen.types else None

    def _decode_group(
        self, chunk: RecordChunk, group: Group, known: Types, declared: Types
    ) -> tuple[list[ChangeBatch], Reasons]:
        memory = self._memory((group.form, group.shape, group.names or _key_of(known)))
        keys = None if group.shape is None else group.keys
        messages = Messages(group.values, keys, chunk.offsets[group.indices])
        batches, refused = decode_messages(memory, messages, known, declared)
        seen = [strip_hidden(batch, group.form) for batch in batches]
        for one in seen:
            if not one.types:
                rows = np.flatnonzero(np.isin(messages.offsets, one.offset)).tolist()
                refused |= dict.fromkeys(rows, _EMPTY_ROW)
        return [one for one in seen if one.types], refused

    def _memory(self, group: GroupKey) -> TableMemory:
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


def _key_of(types: Types) -> tuple[str, ...]:
    """Return the key of the target table, for messages that name none."""
    return tuple(name for name, data_type in types.items() if not data_type.nullable)


def _without_records(
    batches: list[ChangeBatch], chunk: RecordChunk, bad: Mapping[int, Reason]
) -> list[ChangeBatch]:
    """Return batches without rejected records: one bad row rejects its whole record."""
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


def _rejected(chunk: RecordChunk, bad: Mapping[int, Reason]) -> list[RejectedRecord]:
    return [rejected(chunk, index, bad[index]) for index in sorted(bad)]
