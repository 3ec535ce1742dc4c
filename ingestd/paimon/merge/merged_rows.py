"""What merge engines that compute rows start from, and the table they end with."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.paimon.merge.base import SortedKeys
from ingestd.paimon.merge.events import Index, Mask, MergeEvents
from ingestd.paimon.spec.arrow import Column
from ingestd.paimon.spec.data_types import SEQUENCE_NUMBER, VALUE_KIND, RowKind
from ingestd.paimon.spec.merge_rules import MergeRules

LEVEL = "_LEVEL"
"""A column with the level of each row's file, for tables where a level holds what is above."""

Kinds = npt.NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class MergeInput:
    """Rows to merge, seen by their events.

    `kinds` is the row kind of each event, `retracts` marks those that take back, `absent` those
    that a lower level has taken in, `ignored` those and the retractions that are to be ignored;
    `single` the keys with one row, which stays as it is.
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
        """Return the merged rows; `keys` is their merge order."""
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
        """Return the last event of each key that counts; the last one of all if none does."""
        if not bool(self.ignored.any()):
            return self.events.ends - 1
        found = self.events.last(~self.ignored)
        return np.where(found < 0, self.events.ends - 1, found)

    def table(self, column: Callable[[str, Column], Column], deleted: Mask) -> pa.Table:
        """Return the merged rows, `column` giving the cells of a column; system columns are added.

        A merged row is an insert, or a delete where `deleted` says so.
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


def retractions(kinds: Kinds) -> Mask:
    """Return which row kinds take a row back."""
    marks: Mask = (kinds == RowKind.DELETE) | (kinds == RowKind.UPDATE_BEFORE)
    return marks


def _below_newest_level(levels: npt.NDArray[Any], events: MergeEvents) -> Mask:
    """Return rows above level 0 but for those of the lowest such level of the key."""
    above = np.where(levels > 0, levels, np.iinfo(levels.dtype).max)
    lowest = np.minimum.reduceat(above, events.starts) if events.count else above
    ignored: Mask = (levels > 0) & (levels > lowest[events.key])
    return ignored
