"""The input and the output table of merge engines that compute rows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.paimon.merge.events import Index, MergeEvents
from ingestd.paimon.merge.key_order import SortedKeys
from ingestd.paimon.merge.row_kinds import Kinds
from ingestd.paimon.spec.arrow import Column
from ingestd.paimon.spec.data_types import SEQUENCE_NUMBER, VALUE_KIND, RowKind
from ingestd.paimon.spec.merge_rules import MergeRules
from ingestd.paimon.spec.row_selection import Mask, retractions

LEVEL = "_LEVEL"
"""The column with the level of each row's file, for rules with `newest_level_only`."""


@dataclass(frozen=True, slots=True)
class MergeInput:
    """The rows to merge, and what is known of each event.

    `kinds` (n,) is the row kind of each event. Masks of events: `retracts` marks retractions,
    `absent` events that were already merged into a lower level, `ignored` these and the retractions
    to ignore. `single` (keys,) marks keys with one row, which is kept unchanged.
    """

    rows: pa.Table
    events: MergeEvents
    kinds: Kinds
    retracts: Mask
    absent: Mask
    ignored: Mask
    single: Mask

    @classmethod
    def of(cls, rows: pa.Table, keys: SortedKeys, rules: MergeRules) -> "MergeInput":
        """Return the merge input of rows in the order `keys`."""
        events = MergeEvents.of(keys)
        kinds: Kinds = rows.column(VALUE_KIND).to_numpy()[events.rows]
        retracts = retractions(kinds)
        absent = np.zeros(len(kinds), np.bool_)
        if LEVEL in rows.column_names:
            absent = _below_newest_level(rows.column(LEVEL).to_numpy()[events.rows], events)
        ignored = absent | retracts if rules.ignore_delete else absent
        single = (events.sizes == 1) & (not rules.merges_single)
        return cls(rows, events, kinds, retracts, absent, ignored, single)

    @property
    def last(self) -> Index:
        """Return the last event of each key that is not ignored, or its last event if all are."""
        if not bool(self.ignored.any()):
            return self.events.ends - 1
        newest = self.events.last(~self.ignored)
        return np.where(newest < 0, self.events.ends - 1, newest)

    def table(self, column: Callable[[str, Column], Column], deleted: Mask) -> pa.Table:
        """Return the merged rows with system columns; `column` merges a column, given its name.

        A merged row is an insert, or a delete where `deleted` marks it; a single row keeps its
        kind.
        """
        last = self.last
        kinds = np.where(deleted, np.int8(RowKind.DELETE), np.int8(RowKind.INSERT))
        kinds = np.where(self.single, self.kinds[last], kinds)
        columns: dict[str, Any] = {}
        for name in self.rows.column_names:
            values: Column = self.rows.column(name)
            if name == VALUE_KIND:
                columns[name] = pa.array(kinds)
            elif name == SEQUENCE_NUMBER:
                columns[name] = self.events.pick(values, last)
            elif name != LEVEL:
                columns[name] = column(name, values)
        return pa.table(columns)


def _below_newest_level(levels: npt.NDArray[Any], events: MergeEvents) -> Mask:
    """Return a mask of the rows above level 0 that have a newer row above level 0.

    Of these levels, the lowest one with a row of the key has the newest row.
    """
    above = np.where(levels > 0, levels, np.iinfo(levels.dtype).max)
    lowest = np.minimum.reduceat(above, events.starts) if events.count else above
    ignored: Mask = (levels > 0) & (levels > lowest[events.key])
    return ignored
