"""Decode the messages of one source table into change batches, and reject invalid messages.

Messages are decoded with the row plan of earlier messages, natively if the extension is installed.
If a message does not match the plan, columns are learned: the kinds of values are counted by
column, first in a sample of the messages, then in all messages that still do not match. A new plan
is made from the schema in the messages, from declared and known types, or from the kinds. Messages
that still fail are rejected.

Each row of a batch has a cell for each column, so n messages with one new column each would have n
times n cells. Columns that the table has are not limited. If the table lacks more than `FEW`
columns, these may have at most as many cells as the messages have bytes; otherwise the messages are
divided into several batches. This does not happen if each message has most of the columns.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import msgspec
import numpy as np

from ingestd.cdc.assembly import TableChanges, assemble_changes
from ingestd.cdc.base import ChangeBatch, ColumnTypes, SourceTable, Texts, bytes_of
from ingestd.cdc.change_images import CELL_ERRORS
from ingestd.cdc.columns.column_reader import PlanColumn
from ingestd.cdc.columns.json_inference import (
    JsonKinds,
    default_kinds,
    kinds_of,
    reader_kinds,
    resolve_type,
)
from ingestd.cdc.columns.type_mapping import DECIMAL_NO_CHANGE, TO_STRING
from ingestd.cdc.columns.wire_column import STRING, Meaning, WireColumn, key_column
from ingestd.cdc.json.change_rows import Events, assemble, assemble_good, join
from ingestd.cdc.json.message_layout import NativeReader
from ingestd.cdc.json.messages import Envelope, Messages
from ingestd.cdc.json.native_cells import ColumnImage, IrregularError
from ingestd.cdc.json.row_plan import RowPlan, RowWants, make_plan
from ingestd.cdc.native_module import Columns, NativeModule, NativePlan
from ingestd.cdc.record_errors import (
    BUILD_ERRORS,
    PARSE_ERRORS,
    Reasons,
    RecordError,
    explain,
    record_error,
)
from ingestd.paimon.spec.data_types import DataType

CellKinds = Mapping[str, tuple[str, ...]]
"""The kinds of the values of one message, by column."""
KindCounts = Mapping[str, Counter[str]]
"""The number of occurrences of each kind, by column."""

MOST_IN_A_RECORD = 32_768
"""Maximum number of columns in a message from which columns are learned."""
FEW = 256
"""The number of columns missing in the table up to which the cells of a batch are not limited."""
_SLICE = 4096
_SAMPLE = 256


class _Images(msgspec.Struct, gc=False):
    before: msgspec.Raw = msgspec.Raw(b"null")
    after: msgspec.Raw = msgspec.Raw(b"null")


_decode_images = msgspec.json.Decoder(_Images).decode
_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class TooManyCellsError(Exception):
    """One batch of the messages would exceed the cell budget (see `exceeds_cell_budget`)."""


class TargetTypes(NamedTuple):
    """The column types of a target table, and those that are declared in the configuration."""

    known: ColumnTypes
    declared: ColumnTypes


@dataclass(slots=True)
class TableMemory:
    """The cached plan for messages with the same table, schema and key, and what it depends on.

    `value_columns` and `key_columns` are the columns of the schema in the messages, or None if they
    have no schema. `kinds` counts the kinds of JSON values by column; `types` are the column types
    for which the plan was made. `module` builds native plans (None: only
    Python decodes). `type_mapping` are options such as `to-string`. `wants` are the options of the
    plan. `width` is the number of columns of the plan that the table lacks.
    """

    source: SourceTable
    key_names: tuple[str, ...]
    value_columns: tuple[WireColumn, ...] | None
    key_columns: tuple[WireColumn, ...] | None
    kinds: KindCounts = field(default_factory=dict)
    plan: RowPlan | None = None
    width: int = 0
    types: TargetTypes = field(default_factory=lambda: TargetTypes({}, {}))
    module: NativeModule | None = None
    type_mapping: frozenset[str] = frozenset()
    wants: RowWants = field(default_factory=RowWants)

    def is_current(self, types: TargetTypes) -> bool:
        """Return whether there is a plan that was made for these types."""
        return self.plan is not None and types == self.types

    def renew(self, types: TargetTypes) -> None:
        """Replace the types, and discard the plan made for the old ones.

        If the table no longer exists, the kinds of values that were counted for it are discarded as
        well, so that a new table has the types of its own values. If messages have a schema, a new
        plan is built immediately. Raises RecordError if a column name is invalid, and
        UnsupportedError if JSON values cannot be read as the type of a column.
        """
        counts: KindCounts = {} if self.types.known and not types.known else self.kinds
        self.types = TargetTypes(dict(types.known), dict(types.declared))
        self.remember(None, counts)
        if self.value_columns is not None:
            self.plan = plan_of(self, self.kinds)

    def remember(self, plan: RowPlan | None, counts: KindCounts) -> None:
        """Cache a plan, or None, and the counts of value kinds from which it was made."""
        self.plan, self.kinds, self.width = plan, counts, len(self.lacking(counts))

    def lacking(self, names: Iterable[str]) -> list[str]:
        """Return those of the `names` that the table lacks; none if messages have a schema."""
        if self.value_columns is not None:
            return []
        return [name for name in names if name not in self.types.known]

    def takes(self, values: Sequence[bytes | None]) -> bool:
        """Return whether the plan can decode these messages into one batch; True without a plan.

        False if too many cells of the batch would be in columns that the table lacks.
        """
        return self.plan is None or not exceeds_cell_budget(self.width, values)

    def forget(self) -> None:
        """Discard the plan, so that the types of columns that the table lacks are determined again.

        The counts of kinds of JSON values of these columns are discarded as well.
        """
        lacking = frozenset(self.lacking(self.kinds))
        self.remember(None, {n: counter for n, counter in self.kinds.items() if n not in lacking})

    def fixed(self, name: str) -> DataType | None:
        """Return the type of a column that does not depend on its values, or None.

        This is the declared type, or STRING for other columns with the type mapping option
        to-string.
        """
        declared = self.types.declared.get(name)
        return STRING if declared is None and TO_STRING in self.type_mapping else declared


def decode_if_uniform(
    memory: TableMemory, messages: Messages, types: TargetTypes
) -> ChangeBatch | None:
    """Decode messages with the plan in `memory`, or return None if any message does not match.

    If there is no plan for these types, it is made from a sample, and cached if all messages match.
    Raises UnsupportedError if JSON values cannot be read as the type of a column.
    """
    try:
        if not memory.is_current(types):
            memory.renew(types)
        if not memory.takes(messages.values):
            memory.forget()
        plan, counts = memory.plan, memory.kinds
        if plan is None:
            learning = _Learning(memory, messages.payloads())
            plan, counts = learning.plan_of_sample(), learning.counts
        try:
            batch = assemble_changes(read_natively(plan.native, plan, messages))
        except CELL_ERRORS:
            batch = _decode_in_slices(plan, messages)
    except (*PARSE_ERRORS, *BUILD_ERRORS, TooManyCellsError):
        return None
    if memory.plan is None:
        memory.remember(plan, counts)
    return batch


def read_natively(
    native: NativeReader | None, plan: RowPlan, messages: Messages
) -> TableChanges[PlanColumn]:
    """Read messages by the native reader `native` into changes, whose values are not converted yet.

    Raises ValueError, TypeError, ArithmeticError, RecursionError, ArrowException or MsgspecError if
    `native` is None, or if only Python can decode the messages. `assemble_changes` can raise the
    same errors later, when it converts the values.
    """
    if native is None:
        raise IrregularError("the messages have no native reader")
    columns = _read_columns(native.values, messages.values, messages.value_envelope)
    keys: Columns | None = None
    if native.keys is not None and messages.keys is not None:
        keys = _read_columns(native.keys, messages.keys, messages.key_envelope)
    changes = native.layout.changes(columns, messages.offsets)
    if messages.valued is not None:
        changes = changes.with_tombstones(messages.valued, messages.offsets)
    visible = [column for column in plan.columns if column.name not in native.hidden]
    return TableChanges(
        source=plan.source,
        columns=[column for column in visible if column.reader is not None],
        key_names=plan.key_names,
        kinds=changes.kinds,
        after=changes.after,
        before=changes.before,
        key=None if keys is None else ColumnImage(keys, (), np.ones(len(changes.kinds), np.bool_)),
        offset=changes.offsets,
        position=changes.log.position,
        snapshot_row=changes.log.snapshot,
        partial=plan.wants.partial,
        images=plan.wants.images,
        sought=visible if plan.wants.presence else (),
        named=[column for column in visible if column.name not in plan.wants.hidden],
    )


def _read_columns(native: NativePlan, texts: Sequence[bytes], envelope: Envelope) -> Columns:
    columns = native.read(texts, envelope.prefix, envelope.suffix)
    if columns is None:
        raise IrregularError("a message does not match the plan")
    return columns


def _decode_in_slices(plan: RowPlan, messages: Messages) -> ChangeBatch:
    """Decode messages in slices, each natively if possible, else in Python.

    An irregular message then affects only its slice, and the structs of a slice stay in the
    processor's cache until they are converted to columns. Raises one of `PARSE_ERRORS` or
    `BUILD_ERRORS`.
    """
    size = len(messages.values)
    if size <= _SLICE:
        return _decode_in_python(plan, messages.payloads())
    batches = []
    for start in range(0, size, _SLICE):
        message_slice = messages.part(start, start + _SLICE)
        try:
            batches.append(assemble_changes(read_natively(plan.native, plan, message_slice)))
        except CELL_ERRORS:
            batches.append(_decode_in_python(plan, message_slice.payloads()))
    return join(plan, batches)


def _decode_in_python(plan: RowPlan, payloads: Messages) -> ChangeBatch:
    changes = plan.changes.many(payloads.values)
    keys = None if payloads.keys is None else plan.keys.many(payloads.keys)
    return assemble(plan, Events(changes, keys, payloads.offsets))


def decode_messages(
    memory: TableMemory, messages: Messages, types: TargetTypes
) -> tuple[list[ChangeBatch], Reasons]:
    """Return batches of the valid messages, and the rejection reasons of other messages by index.

    Raises UnsupportedError if JSON values cannot be read as the type of a column.
    """
    batch = decode_if_uniform(memory, messages, types)
    if batch is not None:
        return [batch], {}
    payloads = messages.payloads()
    try:
        batch, refused = _Learning(memory, payloads).decode()
    except TooManyCellsError:
        return _decode_in_parts(memory, payloads)
    return [] if batch is None else [batch], refused


def _decode_in_parts(memory: TableMemory, payloads: Messages) -> tuple[list[ChangeBatch], Reasons]:
    """Decode messages in several batches, each of which learns columns independently.

    Returns the batches, and the rejection reasons of invalid messages by index.
    """
    memory.forget()
    batches: list[ChangeBatch] = []
    refused: Reasons = {}
    for start, stop in batch_bounds(payloads.values, partial(_lacking_in, memory, payloads)):
        learning = _Learning(replace(memory), payloads.part(start, stop))
        batch, bad = learning.decode()
        batches += [] if batch is None else [batch]
        refused |= {start + index: reason for index, reason in bad.items()}
    return batches, refused


def _lacking_in(memory: TableMemory, payloads: Messages, index: int) -> list[str]:
    """Return the columns of a message that the table lacks.

    The list is empty if the message is invalid.
    """
    key = None if payloads.keys is None else payloads.keys[index]
    try:
        return memory.lacking(column_kinds(payloads.values[index], key, images=memory.wants.images))
    except RecordError:
        return []


class _Learning:
    """A decoder that learns columns from messages that do not match the cached plan.

    `counts` are the kinds of values from which the latest plan was made.
    """

    def __init__(self, memory: TableMemory, messages: Messages) -> None:
        self.counts: KindCounts = {}
        self._memory, self._messages = memory, messages
        self._bad: Reasons = {}
        self._sampled: dict[int, CellKinds] = {}
        self._irregular: dict[int, CellKinds] = {}
        self._weight = 1

    def plan_of_sample(self) -> RowPlan:
        """Return a plan made from a sample of the messages.

        Raises RecordError if a message in the sample is invalid, and TooManyCellsError if the plan
        has too many columns.
        """
        self._take_sample()
        for reason in self._bad.values():
            raise RecordError(reason)
        return self._plan()

    def decode(self) -> tuple[ChangeBatch | None, Reasons]:
        """Return a batch of the valid messages, and the rejection reasons of the others by index.

        The batch is None if no message is valid. Raises TooManyCellsError if the messages have too
        many columns for one batch.
        """
        if self._memory.plan is not None:
            refused: Reasons = {}
            self._sieve(self._memory.plan, refused)
            if len(refused) <= _SAMPLE:
                self._irregular = self._look_into(refused)
                return self._decode_good(self._plan())
        self._take_sample()
        try:
            plan = self._plan()
        except RecordError as error:
            return None, dict.fromkeys(range(len(self._messages.values)), error.reason)
        return self._decode_good(self._replan(plan))

    def _take_sample(self) -> None:
        size = len(self._messages.values)
        sample = list(range(size))
        if size > 2 * _SAMPLE:
            sample = [*range(_SAMPLE), *range(size - _SAMPLE, size)]
            self._weight = size // len(sample)
        self._sampled = self._look_into(sample)

    def _look_into(self, indices: Iterable[int]) -> dict[int, CellKinds]:
        """Return the kinds of values by message; add the reasons of invalid messages to `_bad`."""
        kinds: dict[int, CellKinds] = {}
        keys = self._messages.keys
        for index in indices:
            try:
                key = None if keys is None else keys[index]
                value, images = self._messages.values[index], self._memory.wants.images
                kinds[index] = column_kinds(value, key, images=images)
            except RecordError as error:
                self._bad[index] = error.reason
        return kinds

    def _plan(self) -> RowPlan:
        """Return a plan for the sampled and irregular messages that are valid.

        Raises TooManyCellsError if it has too many columns, and the errors of `plan_of`.
        """
        sampled = (kinds for index, kinds in self._sampled.items() if index not in self._bad)
        irregular = (kinds for index, kinds in self._irregular.items() if index not in self._bad)
        self.counts = with_counts(with_counts(self._memory.kinds, sampled, self._weight), irregular)
        if exceeds_cell_budget(len(self._memory.lacking(self.counts)), self._messages.values):
            raise TooManyCellsError
        return plan_of(self._memory, self.counts)

    def _replan(self, plan: RowPlan) -> RowPlan:
        """Return a plan that also covers the messages that do not match the given plan."""
        refused: Reasons = {}
        self._sieve(plan, refused)
        self._irregular = self._look_into(
            [index for index in refused if index not in self._sampled]
        )
        return self._plan()

    def _decode_good(self, plan: RowPlan) -> tuple[ChangeBatch | None, Reasons]:
        batch = self._sieve(plan, self._bad)
        if batch is not None:
            # The plan is made from valid messages only, because invalid messages would make its
            # readers slower.
            valid = self._plan()
            self._memory.remember(valid, self.counts)
        return batch, self._bad

    def _sieve(self, plan: RowPlan, refused: Reasons) -> ChangeBatch | None:
        """Return a batch of the messages that are valid for a plan, or None if no message is.

        The reasons of the other messages are added to `refused`. Messages in `_bad` are skipped.
        """
        keys = self._messages.keys
        indices: list[int] = []
        changes, key_rows = [], []
        for index, value in enumerate(self._messages.values):
            if index in self._bad:
                continue
            document, stage = "message value", "decode"
            try:
                change = plan.changes.single(value)
                if keys is not None:
                    document, stage = "message key", "key"
                    key_rows.append(plan.keys.single(keys[index]))
            except PARSE_ERRORS as error:
                refused[index] = explain(error, document, stage)
                continue
            changes.append(change)
            indices.append(index)
        has_keys = keys is not None
        events = Events(changes, key_rows if has_keys else None, self._messages.offsets[indices])
        batch, invalid = assemble_good(plan, events)
        refused |= {indices[event]: reason for event, reason in invalid.items()}
        return batch


def column_kinds(value: bytes, key: bytes | None, *, images: bool = False) -> CellKinds:
    """Return the kinds of the values in a message by column; columns are fields of rows and keys.

    `value` is a normalized event. The fields of its before image are included if `images` is set or
    the message has no key. Raises RecordError if the message is invalid, or has too many columns or
    an empty column name.
    """
    document = "message value"
    try:
        row_images = _decode_images(value)
        rows = [row_images.after]
        if key is None or images:
            rows.append(row_images.before)
        cells: dict[str, set[str]] = {}
        for row in rows:
            _add_kinds(cells, bytes(row))
        document = "message key"
        if key is not None:
            _add_kinds(cells, key)
    except PARSE_ERRORS as error:
        raise RecordError(explain(error, document)) from error
    check_width(cells)
    for name in cells:
        check_column_name(name)
    return {name: tuple(kinds) for name, kinds in cells.items()}


def _add_kinds(cells: dict[str, set[str]], row: bytes) -> None:
    if row != b"null":
        for name, raw in _decode_fields(row).items():
            cells.setdefault(name, set()).update(kinds_of(bytes(raw)))


def check_width(names: Collection[str]) -> None:
    """Raise RecordError if a message has more than 32,768 columns."""
    if len(names) > MOST_IN_A_RECORD:
        raise record_error(
            "schema",
            "too-many-columns",
            f"the message has {len(names)} columns, which is more than {MOST_IN_A_RECORD}",
        )


def check_column_name(name: str) -> None:
    """Raise RecordError if a column name is empty or blank."""
    if not name.strip():
        raise record_error("schema", "unsupported-column-name", "a column has an empty name")


def with_counts(before: KindCounts, messages: Iterable[CellKinds], weight: int = 1) -> KindCounts:
    """Return counts of value kinds by column: those in `before`, plus those of the messages.

    Each message is counted `weight` times.
    """
    counts = {name: counter.copy() for name, counter in before.items()}
    for cells in messages:
        for name, kinds in cells.items():
            counter = counts.setdefault(name, Counter())
            for kind in kinds:
                counter[kind] += weight
    return counts


def plan_of(memory: TableMemory, counts: KindCounts) -> RowPlan:
    """Build the row plan of a table from the counted kinds of its values.

    Raises RecordError if a column name is invalid, and UnsupportedError if JSON values cannot be
    read as the type of a column.
    """
    if memory.value_columns is not None:
        columns = _schema_columns(memory, memory.value_columns)
    else:
        columns = _inferred_columns(memory, counts)
        if not any(columns.values()):
            # Rows whose values are all null still need a column.
            columns = {name: WireColumn(name, STRING) for name in columns}
    kinds: dict[str, JsonKinds] = {}
    for name, column in columns.items():
        check_column_name(name)
        kinds[name] = reader_kinds(counts.get(name, {}))
        if column is not None and memory.value_columns is not None:
            kinds[name] |= default_kinds(column)
    return make_plan(
        memory.source, columns, kinds, memory.key_names, memory.module, wants=memory.wants
    )


def _schema_columns(
    memory: TableMemory, value_columns: tuple[WireColumn, ...]
) -> dict[str, WireColumn | None]:
    """Return the columns of the schema in the messages, with their declared types."""
    natural = {column.name: column for column in (memory.key_columns or ())}
    natural |= {column.name: column for column in value_columns}
    ordered = dict.fromkeys([column.name for column in value_columns] + list(memory.key_names))
    columns: dict[str, WireColumn | None] = {}
    for name in ordered:
        column = natural.get(name) or WireColumn(name, STRING, Meaning.JSON)
        if name in memory.key_names:
            column = key_column(column)
        columns[name] = _sized(column, memory).declared_as(memory.fixed(name))
    return columns


def _sized(column: WireColumn, memory: TableMemory) -> WireColumn:
    """Return a DECIMAL column with the precision and scale of the column in the table.

    If messages contain precision and scale, these are used instead, unless the option
    decimal-no-change is set. Other columns are returned unchanged.
    """
    known = memory.types.known.get(column.name)
    if known is None or known.root != "DECIMAL" or column.data_type.root != "DECIMAL":
        return column
    if column.sized and DECIMAL_NO_CHANGE not in memory.type_mapping:
        return column
    return replace(column, data_type=known.as_nullable())


def _inferred_columns(memory: TableMemory, counts: KindCounts) -> dict[str, WireColumn | None]:
    columns: dict[str, WireColumn | None] = {}
    untouched = memory.types.known if memory.wants.partial else ()
    for name in dict.fromkeys([*counts, *memory.key_names, *untouched]):
        data_type = resolve_type(
            counts.get(name, Counter()),
            memory.fixed(name),
            memory.types.known.get(name),
            is_key=name in memory.key_names,
        )
        columns[name] = None if data_type is None else WireColumn(name, data_type.as_nullable())
    return columns


def exceeds_cell_budget(lacking: int, values: Texts) -> bool:
    """Return whether one batch of these messages would have too many cells, mostly nulls.

    That is so if the table lacks more than 256 of their columns (`lacking`), there are several
    messages, and `lacking` times their number exceeds their size in bytes.
    """
    if lacking <= FEW:
        return False
    return _too_many(lacking, len(values), bytes_of(values))


def _too_many(lacking: int, messages: int, size: int) -> bool:
    return lacking > FEW and messages > 1 and lacking * messages > size


def batch_bounds(
    values: Sequence[bytes], lacking_in: Callable[[int], Collection[str]]
) -> Iterator[tuple[int, int]]:
    """Yield the bounds `[start, end)` of consecutive messages that fit into one batch.

    A batch ends before the message with which `exceeds_cell_budget` would be true. `lacking_in`
    returns the columns of a message that the table lacks, given the index of the message.
    """
    start, size = 0, 0
    names: set[str] = set()
    for index, value in enumerate(values):
        added = [name for name in lacking_in(index) if name not in names]
        size += len(value)
        if _too_many(len(names) + len(added), index - start + 1, size):
            yield start, index
            start, size, names = index, len(value), set()
            added = list(lacking_in(index))
        names.update(added)
    yield start, len(values)
