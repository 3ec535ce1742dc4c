"""Aggregate functions that return one of their input values.

Each takes a column, the events and their operations, and returns one cell per key.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/merge-engine/aggregation/#aggregation-functions
"""

import numpy as np

from ingestd.paimon.merge.events import (
    AGG,
    RETRACT,
    REVERSED,
    SET,
    SKIP,
    MergeEvents,
    Ops,
    spread,
)
from ingestd.paimon.merge.value_codes import order_codes
from ingestd.paimon.spec.arrow import Column
from ingestd.paimon.spec.row_selection import Indices


def last_value(column: Column, events: MergeEvents, ops: Ops) -> Column:
    """Return the newest value of each key, null or not; null after a retraction."""
    at = events.last((ops != SKIP) & (ops != REVERSED))
    return events.pick(column, _without(at, ops[at] == RETRACT))


def primary_key(column: Column, events: MergeEvents, ops: Ops) -> Column:
    """Return the value of the newest row of each key, of any row kind.

    This is the function of key columns; events that are skipped or out of order do not count.
    """
    return events.pick(column, events.last((ops != SKIP) & (ops != REVERSED)))


def last_non_null_value(column: Column, events: MergeEvents, ops: Ops) -> Column:
    """Return the newest non-null value per key; null after the retraction of a non-null value."""
    known = events.valid(column)
    decides = (ops == SET) | (known & ((ops == AGG) | (ops == RETRACT)))
    at = events.last(decides)
    empty = (ops[at] == RETRACT) | ~known[at]
    at = _without(at, empty)
    older = known & (ops == REVERSED)
    if bool(older.any()):
        # An older value replaces a null.
        since = np.where(decides, np.arange(len(ops)), -1)
        after = older & (np.arange(len(ops)) > _floor(events, since))
        at = np.where(at < 0, events.first(after), at)
    return events.pick(column, at)


def first_value(column: Column, events: MergeEvents, ops: Ops) -> Column:
    """Return the value of the oldest event of each key, null or not; a SET event replaces it."""
    merges = (ops == AGG) | (ops == REVERSED)
    first = events.first(merges)
    begins = np.zeros(len(ops), np.bool_)
    begins[first[first >= 0]] = True
    # The first merge sets the value, unless it is that of an older row.
    decides = (ops == SET) | (begins & (ops == AGG)) | (~begins & (ops == REVERSED))
    return events.pick(column, events.last(decides))


def first_non_null_value(column: Column, events: MergeEvents, ops: Ops) -> Column:
    """Return the oldest non-null value per key; a SET event replaces it, even by null."""
    first = events.first(events.valid(column) & (ops == AGG))
    begins = np.zeros(len(ops), np.bool_)
    begins[first[first >= 0]] = True
    at = events.last((ops == SET) | begins)
    older = ops == REVERSED
    if bool(older.any()):
        at = _with_older(events, ops, events.valid(column), at)
    return events.pick(column, at)


def _with_older(events: MergeEvents, ops: Ops, known: np.ndarray, at: Indices) -> Indices:
    """Return `at`, the chosen event of each key, corrected for keys with REVERSED events.

    The events of these keys are applied again, one by one. `known` marks the events whose value is
    not null.
    """
    at = at.copy()
    for key in np.unique(events.key[ops == REVERSED]).tolist():
        picked, fixed = -1, False
        for event in range(int(events.starts[key]), int(events.ends[key])):
            op = ops[event]
            if op == SET:
                picked = event
            elif op == AGG and not fixed and known[event]:
                picked, fixed = event, True
            elif op == REVERSED:
                if not fixed and picked >= 0 and known[picked]:
                    fixed = True
                else:
                    picked = event
        at[key] = picked
    return at


def largest(column: Column, events: MergeEvents, ops: Ops) -> Column:
    """Return the maximum of the values of each key; null for a key without values.

    `ops` (n,) are the operations of the events; values before the last SET of a key do not count.
    Nulls are ignored. NaN is greater than all numbers.
    """
    return _extreme(column, events, ops, np.maximum)


def smallest(column: Column, events: MergeEvents, ops: Ops) -> Column:
    """Return the minimum of the values of each key; null for a key without values.

    `ops` (n,) are the operations of the events; values before the last SET of a key do not count.
    Nulls are ignored. NaN is greater than all numbers.
    """
    return _extreme(column, events, ops, np.minimum)


def _extreme(column: Column, events: MergeEvents, ops: Ops, choose: np.ufunc) -> Column:
    counts = events.since_set(ops) & events.valid(column)
    at = np.flatnonzero(counts)
    codes, key = order_codes(column)[events.rows[at]], events.key[at]
    offsets = np.searchsorted(key, np.arange(events.count + 1))
    present = np.diff(offsets) > 0
    if not len(at):
        return events.pick(column, np.full(events.count, -1))
    best = spread(choose.reduceat(codes, offsets[:-1][present]), present)
    hits = np.zeros(len(ops), np.bool_)
    hits[at[codes == best[key]]] = True
    return events.pick(column, events.first(hits))


def _without(at: Indices, empty: np.ndarray) -> Indices:
    return np.where(empty, -1, at)


def _floor(events: MergeEvents, since: Indices) -> Indices:
    """Return, for each event, the largest value in `since` among the events of its key.

    `since` is the position of an event that decides, and -1 for other events.
    """
    newest: Indices = np.maximum.reduceat(since, events.starts)
    return newest[events.key]
