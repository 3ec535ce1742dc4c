"""The merge engine `partial-update`: rows are completed column by column.

Columns outside sequence groups keep the newest value that is not null. Columns of a group follow
its sequence columns, nulls included, or are computed by an aggregate function.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/merge-engine/partial-update/#partial-update
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ingestd.errors import UnsupportedError
from ingestd.paimon.merge.aggregate_functions import fold
from ingestd.paimon.merge.events import AGG, RETRACT, REVERSED, SET, SKIP, MergeEvents, Ops
from ingestd.paimon.merge.key_order import SortedKeys
from ingestd.paimon.merge.merged_rows import MergeInput
from ingestd.paimon.merge.row_kinds import PARTIAL_UPDATE_REFUSAL
from ingestd.paimon.merge.value_codes import is_valid, sequence_ranks
from ingestd.paimon.spec.arrow import Column
from ingestd.paimon.spec.data_types import RowKind
from ingestd.paimon.spec.merge_rules import (
    LAST_NON_NULL_VALUE,
    LAST_VALUE,
    FieldFunction,
    MergeRules,
    SequenceGroup,
)
from ingestd.paimon.spec.row_selection import Indices, Mask

_FILL_IN = FieldFunction(LAST_NON_NULL_VALUE)
_FOLLOW = FieldFunction(LAST_VALUE)


class GroupOrder:
    """The order of a merge's events in one sequence group.

    `counts` (n,) marks the events to consider. Of these, `known` (n,) marks the events with a value
    in any sequence column. Of the known events, `accepted` (n,) marks those that are not older than
    an earlier one of their key.
    """

    def __init__(
        self, group: SequenceGroup, rows: pa.Table, events: MergeEvents, counts: Mask
    ) -> None:
        self.group = group
        columns = [rows.column(name) for name in group.sequence]
        known = np.zeros(rows.num_rows, np.bool_)
        for column in columns:
            known |= is_valid(column)
        self.known: Mask = known[events.rows] & counts
        # Codes start at 1: the empty row is below every sequence.
        self._ranks: Indices = np.where(self.known, sequence_ranks(columns)[events.rows] + 1, 0)
        self.accepted: Mask = self.among(events.key)

    def restart(self, segments: Indices) -> None:
        """Recompute `accepted`, with an event compared only with earlier ones of its segment.

        A segment is a run of successive events; `segments` (n,) has the number of each event's
        segment, ascending.
        """
        self.accepted = self.among(segments)

    def among(self, segments: Indices) -> Mask:
        """Return a mask (n,) of the known events not older than an earlier one of their segment.

        `segments` (n,) has the number of each event's segment, ascending. `accepted` does not
        change.
        """
        # An offset per segment keeps its codes above those of the segment before.
        width = int(self._ranks.max(initial=0)) + 1
        lifted = self._ranks + segments * width
        highest = np.maximum.accumulate(lifted) if len(lifted) else lifted
        marks: Mask = self.known & (lifted >= highest)
        return marks


def group_orders(
    groups: Sequence[SequenceGroup], merge_input: MergeInput, counts: Mask
) -> list[GroupOrder]:
    """Return the order of each group whose sequence columns are all in the rows of the input.

    Groups without them are left out. `counts` (n,) marks the events to consider.
    """
    names = set(merge_input.rows.column_names)
    wanted = [group for group in groups if set(group.sequence) <= names]
    return [GroupOrder(group, merge_input.rows, merge_input.events, counts) for group in wanted]


def restarts(orders: Sequence[GroupOrder], merge_input: MergeInput) -> Mask:
    """Return a mask (n,) of the events that delete the whole row because of a sequence group.

    After such an event each group starts again, so `orders` are updated, and later events may be
    accepted. Therefore the first such event of every key is searched for, then the second, and so
    on.
    """
    events, removals = merge_input.events, np.zeros(len(merge_input.kinds), np.bool_)
    deletes = (
        (merge_input.kinds == RowKind.DELETE)
        & ~merge_input.ignored
        & ~merge_input.single[events.key]
    )
    removing = [order for order in orders if order.group.removes]
    if not removing or not bool(deletes.any()):
        return removals
    while True:
        candidates = np.zeros(len(removals), np.bool_)
        for order in removing:
            candidates |= deletes & order.accepted
        done = events.last(removals)[events.key]
        candidates &= np.arange(len(removals)) > done
        first = events.first(candidates)
        if not bool((first >= 0).any()):
            return removals
        removals[first[first >= 0]] = True
        segments = np.cumsum(_begins(events) | removals) - 1
        for order in orders:
            order.restart(segments)


def _begins(events: MergeEvents) -> Mask:
    begins = np.zeros(len(events.rows), np.bool_)
    begins[events.starts] = True
    return begins


def merge(rows: pa.Table, keys: SortedKeys, rules: MergeRules) -> pa.Table:
    """Return one row per key, ordered by key; `keys` has the order of `rows`.

    A key with a single row keeps it unchanged, unless `rules.merges_single` is set. Other rows are
    of kind INSERT, or DELETE if the newest row of the key deletes the whole row, or if no row of
    the key adds values. Raises UnsupportedError for a deletion among several rows of a key if no
    option defines its effect, or if a function cannot retract its values.
    """
    merge_input = MergeInput.of(rows, keys, rules)
    leads = _leading_retractions(merge_input)
    orders = group_orders(rules.groups, merge_input, ~merge_input.ignored | leads)
    removed = restarts(orders, merge_input)
    if rules.remove_on_delete:
        removed |= (merge_input.kinds == RowKind.DELETE) & ~merge_input.ignored
    elif not rules.groups:
        _refuse_retractions(merge_input)
    # If the first event of a key is a deletion, it sets the row's values, then retracts them.
    twice = leads & ~merge_input.ignored & ~removed & bool(rules.groups)
    updates = _Updates.of(merge_input, orders, leads | removed, twice)

    def column(name: str, values: Column) -> Column:
        return updates.column(name, values, rules.functions)

    adds = merge_input.events.first(~merge_input.retracts & ~merge_input.absent) >= 0
    return merge_input.table(column, removed[merge_input.last] | ~adds)


def _leading_retractions(merge_input: MergeInput) -> Mask:
    first = merge_input.events.first(~merge_input.absent)
    first = first[~merge_input.single & (first >= 0)]
    leads = np.zeros(len(merge_input.kinds), np.bool_)
    leads[first] = merge_input.retracts[first]
    return leads


def _refuse_retractions(merge_input: MergeInput) -> None:
    several = ~merge_input.single[merge_input.events.key]
    if bool((merge_input.retracts & several & ~merge_input.ignored).any()):
        raise UnsupportedError(PARTIAL_UPDATE_REFUSAL)


@dataclass(frozen=True, slots=True)
class _Updates:
    """The operations of events on columns.

    `source` has the index of each event in the merge input. `base` are the operations before
    sequence groups are considered.
    """

    events: MergeEvents
    source: Indices
    base: Ops
    retracts: Mask
    by_column: Mapping[str, GroupOrder]

    @classmethod
    def of(
        cls, merge_input: MergeInput, orders: Sequence[GroupOrder], sets: Mask, twice: Mask
    ) -> "_Updates":
        base: Ops = np.where(merge_input.retracts, RETRACT, AGG)
        base[merge_input.ignored] = SKIP
        base[sets | merge_input.single[merge_input.events.key]] = SET
        events, source = merge_input.events, np.arange(len(base))
        if bool(twice.any()):
            source, events = np.repeat(source, 1 + twice), events.repeated(twice)
            base = base[source]
            # The second of the two is the deletion itself.
            base[np.flatnonzero(twice) + np.arange(1, np.count_nonzero(twice) + 1)] = RETRACT
        by_column = {
            name: order
            for order in orders
            for name in (*order.group.sequence, *order.group.columns)
        }
        return cls(events, source, base, base == RETRACT, by_column)

    def column(self, name: str, values: Column, functions: Mapping[str, FieldFunction]) -> Column:
        order = self.by_column.get(name)
        if order is None:
            # Columns outside groups are not retracted.
            ops = np.where(self.retracts, SKIP, self.base)
            return fold(name, values, self.events, ops, _FILL_IN)
        accepted, known = order.accepted[self.source], order.known[self.source]
        moves = (self.base == AGG) | self.retracts
        ops = self.base.copy()
        if name in order.group.sequence:
            ops[moves] = np.where(accepted, AGG, SKIP)[moves]
            return fold(name, values, self.events, ops, _FOLLOW)
        if name not in functions:
            ops[moves & ~accepted] = SKIP
            return fold(name, values, self.events, ops, _FOLLOW)
        ops[moves & ~known] = SKIP
        ops[(self.base == AGG) & known & ~accepted] = REVERSED
        return fold(name, values, self.events, ops, functions[name])
