"""Decode the messages of one source table into change batches, and reject invalid ones.

Messages go through the plan of the last ones. If any does not pass, a sample of them and then all
that still do not pass are looked into, and a new plan is made; what fails then is refused. All
become one batch, unless they scatter their columns.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from ingestd.cdc.base import ChangeBatch
from ingestd.cdc.json.change_rows import Events, assemble, assemble_good, join
from ingestd.cdc.json.column_learning import (
    CellKinds,
    TableMemory,
    TooManyCellsError,
    Types,
    check_cells,
    counted,
    look_into,
    parts,
    plan_of,
)
from ingestd.cdc.json.messages import Messages
from ingestd.cdc.json.native_rows import read_natively
from ingestd.cdc.json.row_plan import RowPlan
from ingestd.cdc.record_errors import BUILD_ERRORS, PARSE_ERRORS, Reasons, RecordError, explain

_SLICE = 4096
_SAMPLE = 256


def decode_with(plan: RowPlan, messages: Messages) -> ChangeBatch:
    """Decode all messages with a plan; raises `PARSE_ERRORS` or `BUILD_ERRORS` if one fails.

    If not all of them can be read natively they go in slices, so that one odd message costs no
    more than its slice; and the structs of a slice stay in the processor's cache until they are
    columns.
    """
    batch = read_natively(plan.native, plan, messages)
    if batch is not None:
        return batch
    size = len(messages.values)
    parts = [messages.part(start, start + _SLICE) for start in range(0, size, _SLICE)]
    batches = []
    for part in parts:
        batch = read_natively(plan.native, plan, part) if len(parts) > 1 else None
        batches.append(batch or _decode_in_python(plan, part.payloads()))
    return join(plan, batches)


def _decode_in_python(plan: RowPlan, payloads: Messages) -> ChangeBatch:
    changes = plan.changes.many(payloads.values)
    keys = None if payloads.keys is None else plan.keys.many(payloads.keys)
    return assemble(plan, Events(changes, keys, payloads.offsets))


def decode_if_uniform(
    memory: TableMemory, messages: Messages, known: Types, declared: Types
) -> ChangeBatch | None:
    """Decode messages that all match the current plan; None if there is no such plan.

    Raises UnsupportedError for a column type without an Arrow form.
    """
    try:
        if not memory.is_current(known, declared):
            memory.renew(known, declared)
        if not memory.takes(messages.values):
            memory.forget()
        if memory.plan is None:
            return _Learning(memory, messages.payloads()).decode_by_sample()
        return decode_with(memory.plan, messages)
    except (*PARSE_ERRORS, *BUILD_ERRORS, TooManyCellsError):
        return None


def decode_messages(
    memory: TableMemory, messages: Messages, known: Types, declared: Types
) -> tuple[list[ChangeBatch], Reasons]:
    """Return the batches of all valid messages, and the reasons of the others.

    Raises UnsupportedError for a column type without an Arrow form.
    """
    batch = decode_if_uniform(memory, messages, known, declared)
    if batch is not None:
        return [batch], {}
    payloads = messages.payloads()
    try:
        batch, refused = _Learning(memory, payloads).decode()
    except TooManyCellsError:
        return _decode_in_parts(memory, payloads)
    return [] if batch is None else [batch], refused


def _decode_in_parts(memory: TableMemory, payloads: Messages) -> tuple[list[ChangeBatch], Reasons]:
    """Decode as `decode_messages`, in several batches that learn columns independently."""
    memory.forget()
    batches: list[ChangeBatch] = []
    refused: Reasons = {}
    for start, stop in parts(payloads.values, partial(_lacking_in, memory, payloads)):
        learning = _Learning(replace(memory), payloads.part(start, stop))
        batch, bad = learning.decode()
        batches += [] if batch is None else [batch]
        refused |= {start + place: reason for place, reason in bad.items()}
    return batches, refused


def _lacking_in(memory: TableMemory, payloads: Messages, place: int) -> list[str]:
    """Return a message's columns that the table lacks; empty if the message is invalid."""
    key = None if payloads.keys is None else payloads.keys[place]
    try:
        return memory.lacking(look_into(payloads.values[place], key, images=memory.images))
    except RecordError:
        return []


class _Learning:
    """One pass that learns columns from messages which the cached plan does not match."""

    def __init__(self, memory: TableMemory, messages: Messages) -> None:
        self._memory, self._messages = memory, messages
        self._bad: Reasons = {}
        self._sampled: dict[int, CellKinds] = {}
        self._irregular: dict[int, CellKinds] = {}
        self._weight = 1

    def decode(self) -> tuple[ChangeBatch | None, Reasons]:
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

    def decode_by_sample(self) -> ChangeBatch | None:
        """Decode with a plan made from a sample; raises if a message does not match it."""
        self._take_sample()
        if self._bad:
            return None
        batch = decode_with(self._plan(), self._messages)
        self._remember()
        return batch

    def _take_sample(self) -> None:
        size = len(self._messages.values)
        sample = list(range(size))
        if size > 2 * _SAMPLE:
            sample = [*range(_SAMPLE), *range(size - _SAMPLE, size)]
            self._weight = size // len(sample)
        self._sampled = self._look_into(sample)

    def _replan(self, plan: RowPlan) -> RowPlan:
        """Return a plan extended by all messages that do not match the given one."""
        refused: Reasons = {}
        self._sieve(plan, refused)
        self._irregular = self._look_into(
            [place for place in refused if place not in self._sampled]
        )
        return self._plan()

    def _decode_good(self, plan: RowPlan) -> tuple[ChangeBatch | None, Reasons]:
        batch = self._sieve(plan, self._bad)
        if batch is not None:
            self._remember()
        return batch, self._bad

    def _look_into(self, places: Iterable[int]) -> dict[int, CellKinds]:
        """Return the kinds of the messages' values; add reasons of invalid messages to `_bad`."""
        seen: dict[int, CellKinds] = {}
        keys = self._messages.keys
        for place in places:
            try:
                key = None if keys is None else keys[place]
                value, images = self._messages.values[place], self._memory.images
                seen[place] = look_into(value, key, images=images)
            except RecordError as error:
                self._bad[place] = error.reason
        return seen

    def _plan(self) -> RowPlan:
        """Return the plan for all valid messages. Raises TooManyCellsError."""
        sampled = (kinds for place, kinds in self._sampled.items() if place not in self._bad)
        irregular = (kinds for place, kinds in self._irregular.items() if place not in self._bad)
        self._counts = counted(counted(self._memory.kinds, sampled, self._weight), irregular)
        check_cells(len(self._memory.lacking(self._counts)), self._messages.values)
        return plan_of(self._memory, self._counts)

    def _remember(self) -> None:
        """Cache a plan of the valid messages only: invalid ones would make its readers slower."""
        self._memory.remember(self._plan(), self._counts)

    def _sieve(self, plan: RowPlan, refused: Reasons) -> ChangeBatch | None:
        """Return the batch of the valid messages; add reasons of the others to `refused`."""
        keys = self._messages.keys
        places: list[int] = []
        changes, key_rows = [], []
        for place, value in enumerate(self._messages.values):
            if place in self._bad:
                continue
            part, stage = "message value", "decode"
            try:
                change = plan.changes.one(value)
                if keys is not None:
                    part, stage = "message key", "key"
                    key_rows.append(plan.keys.one(keys[place]))
            except PARSE_ERRORS as error:
                refused[place] = explain(error, part, stage)
                continue
            changes.append(change)
            places.append(place)
        has_keys = keys is not None
        events = Events(changes, key_rows if has_keys else None, self._messages.offsets[places])
        batch, invalid = assemble_good(plan, events)
        refused |= {places[index]: reason for index, reason in invalid.items()}
        return batch
