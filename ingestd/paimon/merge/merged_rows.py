"""The input and the output table of merge engines that compute rows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.paimon.merge.events import MergeEvents
from ingestd.paimon.merge.key_order import SortedKeys
from ingestd.paimon.merge.row_kinds import Kinds
from ingestd.paimon.spec.arrow import Column
from ingestd.paimon.spec.data_types import SEQUENCE_NUMBER, VALUE_KIND, RowKind
from ingestd.paimon.spec.merge_rules import MergeRules
from ingestd.paimon.spec.row_selection import Indices, Mask, retractions

LEVEL = "_LEVEL"
"""The column with the level of each row's file, for rules with `newest_level_only`."""


@dataclass(frozen=True, slots=True)
class MergeInput:
    """The rows to merge, their events, and the properties of each event.

    `kinds` (n,) has the row kind of each event. The masks (n,) mark events: `retracts` marks
    retractions, `absent` marks events that were already merged into a lower level, `ignored` marks
    the absent events and, if the rules ignore deletions, the retractions. `single` (keys,) marks
    keys with one row, which is kept unchanged; it marks none if the rules merge single rows, too.
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
        """Return the merge input of `rows`, whose order is `keys`, with masks according to `rules`.

        `rows` has the row kinds, and if events may be absent, the levels.
        """
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
    def last(self) -> Indices:
        """The number of the last event of each key that is not ignored; shape (keys,).

        If all events of a key are ignored, it is the number of its last event.
        """
        if not bool(self.ignored.any()):
            return self.events.ends - 1
        newest = self.events.last(~self.ignored)
        return np.where(newest < 0, self.events.ends - 1, newest)

    def table(self, column: Callable[[str, Column], Column], deleted: Mask) -> pa.Table:
        """Return the merged rows, one per key, with the columns of the input except `LEVEL`.

        `column` is called with the name and the cells of each column that is not a system column,
        and returns one cell per key. A merged row has the kind INSERT, or DELETE if the mask
        `deleted` (keys,) marks its key; a single row keeps its kind.
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
