"""The merge engine that fills rows in column by column.

Columns outside sequence groups keep the newest value that is no null. Columns of a group follow
its sequence columns, nulls included, or are computed by a function.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/merge-engine/overview/
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ingestd.errors import UnsupportedError
from ingestd.paimon.merge.base import SortedKeys
from ingestd.paimon.merge.events import (
    AGG,
    RETRACT,
    REVERSED,
    SET,
    SKIP,
    Index,
    Mask,
    MergeEvents,
    Ops,
)
from ingestd.paimon.merge.functions import fold
from ingestd.paimon.merge.merged_rows import MergeInput
from ingestd.paimon.merge.sequence_groups import GroupOrder, group_orders, restarts
from ingestd.paimon.spec.arrow import Column
from ingestd.paimon.spec.data_types import RowKind
from ingestd.paimon.spec.merge_rules import (
    LAST_NON_NULL_VALUE,
    LAST_VALUE,
    FieldFunction,
    MergeRules,
)

_FILL_IN = FieldFunction(LAST_NON_NULL_VALUE)
_FOLLOW = FieldFunction(LAST_VALUE)


def merge(
    rows: pa.Table, key_columns: Sequence[str], keys: SortedKeys, rules: MergeRules
) -> pa.Table:
    """One row of each key, ordered by key; the row of a key that has only one stays as it is.

    UnsupportedError for a deletion among several rows of a key if the rules do not say what
    becomes of it, or a function cannot take it back.
    """
    given = MergeInput.of(rows, keys, rules)
    leads = _leading_retractions(given)
    orders = group_orders(rules.groups, given, ~given.ignored | leads)
    removed = restarts(orders, given)
    if rules.remove_on_delete:
        removed |= (given.kinds == RowKind.DELETE) & ~given.ignored
    elif not rules.groups:
        _refuse_retractions(given)
    # A deletion that comes first gives the row its values, and then takes back what it can.
    twice = leads & ~given.ignored & ~removed & bool(rules.groups)
    updates = _Updates.of(given, orders, leads | removed, twice)

    def column(name: str, values: Column) -> Column:
        return updates.column(name, values, rules.functions)

    adds = given.events.first(~given.retracts & ~given.absent) >= 0
    return given.table(column, removed[given.last] | ~adds)


def _leading_retractions(given: MergeInput) -> Mask:
    first = given.events.first(~given.absent)
    first = first[~given.single & (first >= 0)]
    leads = np.zeros(len(given.kinds), np.bool_)
    leads[first] = given.retracts[first]
    return leads


def _refuse_retractions(given: MergeInput) -> None:
    several = ~given.single[given.events.key]
    if bool((given.retracts & several & ~given.ignored).any()):
        raise UnsupportedError(
            "'merge-engine' = 'partial-update' takes no deleted rows; set 'ignore-delete' or "
            "'partial-update.remove-record-on-delete' to 'true', or define sequence groups"
        )


@dataclass(frozen=True, slots=True)
class _Updates:
    """What each event does to the columns; `source` is the event of the merge input for each."""

    events: MergeEvents
    source: Index
    base: Ops
    retracts: Mask
    by_column: Mapping[str, GroupOrder]

    @classmethod
    def of(
        cls, given: MergeInput, orders: Sequence[GroupOrder], sets: Mask, twice: Mask
    ) -> "_Updates":
        base: Ops = np.where(given.retracts, RETRACT, AGG)
        base[given.ignored] = SKIP
        base[sets | given.single[given.events.key]] = SET
        events, source = given.events, np.arange(len(base))
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
            # Outside of groups nothing is taken back.
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
