"""Which rows of a partial update are the newest of a sequence group, and which start a row again.

A row is accepted by a group if the group's sequence columns are not all null in it and not less
than in any row accepted before.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/merge-engine/overview/
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from ingestd.paimon.merge.events import Index, Mask, MergeEvents
from ingestd.paimon.merge.merged_rows import MergeInput
from ingestd.paimon.merge.value_order import is_valid, sequence_ranks
from ingestd.paimon.spec.data_types import RowKind
from ingestd.paimon.spec.merge_rules import SequenceGroup


class GroupOrder:
    """One sequence group of the rows of a merge: `known` marks events whose sequence columns are
    not all null, `accepted` those that are not older than what was accepted before."""

    def __init__(
        self, group: SequenceGroup, rows: pa.Table, events: MergeEvents, counts: Mask
    ) -> None:
        self.group = group
        columns = [rows.column(name) for name in group.sequence]
        known = np.zeros(rows.num_rows, np.bool_)
        for column in columns:
            known |= is_valid(column)
        self.known: Mask = known[events.rows] & counts
        # From 1 on, since below every sequence there is the empty row.
        self._ranks: Index = np.where(self.known, sequence_ranks(columns)[events.rows] + 1, 0)
        self.accepted: Mask = self.among(events.key)

    def restart(self, segments: Index) -> None:
        """Let what is accepted depend on the events of the same segment only."""
        self.accepted = self.among(segments)

    def among(self, segments: Index) -> Mask:
        """Events that are accepted when every segment, numbered in order, begins again."""
        # An offset of its own keeps each segment above the one before.
        width = int(self._ranks.max(initial=0)) + 1
        lifted = self._ranks + segments * width
        highest = np.maximum.accumulate(lifted) if len(lifted) else lifted
        marks: Mask = self.known & (lifted >= highest)
        return marks


def group_orders(
    groups: Sequence[SequenceGroup], given: MergeInput, counts: Mask
) -> list[GroupOrder]:
    """The groups whose sequence columns were read; `counts` marks the events that matter."""
    names = set(given.rows.column_names)
    wanted = [group for group in groups if set(group.sequence) <= names]
    return [GroupOrder(group, given.rows, given.events, counts) for group in wanted]


def restarts(orders: Sequence[GroupOrder], given: MergeInput) -> Mask:
    """Events that delete the whole row by one of the groups that remove, which `orders` then
    take into account.

    Each such event changes what the groups accept after it, so the first of every key is found
    at once, then the second, and so on.
    """
    events, found = given.events, np.zeros(len(given.kinds), np.bool_)
    deletes = (given.kinds == RowKind.DELETE) & ~given.ignored & ~given.single[events.key]
    removing = [order for order in orders if order.group.removes]
    if not removing or not bool(deletes.any()):
        return found
    while True:
        candidates = np.zeros(len(found), np.bool_)
        for order in removing:
            candidates |= deletes & order.accepted
        done = events.last(found)[events.key]
        candidates &= np.arange(len(found)) > done
        first = events.first(candidates)
        if not bool((first >= 0).any()):
            return found
        found[first[first >= 0]] = True
        segments = np.cumsum(_begins(events) | found) - 1
        for order in orders:
            order.restart(segments)


def _begins(events: MergeEvents) -> Mask:
    begins = np.zeros(len(events.rows), np.bool_)
    begins[events.starts] = True
    return begins
