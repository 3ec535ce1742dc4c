"""What becomes of keys that come with another partition than they have, by merge engine.

Arrays over the rows of a batch, ordered by key and then by sequence number; partitions are
numbers, -1 for none.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/data-distribution/
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ingestd.paimon.merge.row_kinds import NO_KIND
from ingestd.paimon.spec.data_types import RowKind

NOWHERE = -1

Numbers = npt.NDArray[np.int64]
_Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class KeyRows:
    """Rows by key: the number of its key, the kind, and the partition that each came with.

    `old` is the partition that each key has so far; keys are numbered as they are ordered.
    """

    key: Numbers
    kind: npt.NDArray[np.int8]
    came: Numbers
    old: Numbers

    @property
    def first(self) -> Numbers:
        """Where the rows of each key begin."""
        return np.searchsorted(self.key, np.arange(len(self.old)))

    @property
    def last(self) -> Numbers:
        """The last row of each key."""
        return np.searchsorted(self.key, np.arange(len(self.old)), side="right") - 1

    @property
    def retracts(self) -> _Mask:
        """Marks the rows that take something back."""
        marks: _Mask = (self.kind == RowKind.UPDATE_BEFORE) | (self.kind == RowKind.DELETE)
        return marks


@dataclass(frozen=True, slots=True)
class Moves:
    """The partition that each row goes to, whether it goes at all, and what has to be deleted.

    Row `left[i]` leaves a row behind in partition `left_in[i]`.
    """

    target: Numbers
    kept: _Mask
    left: Numbers
    left_in: Numbers


def moves_of(engine: str, rows: KeyRows, *, every_step: bool) -> Moves:
    """What happens to the rows of a batch under a merge engine.

    Without `every_step` a key goes straight to where it ends: what it passes on its way there is
    neither written nor deleted.
    """
    if engine == "deduplicate":
        return _followed(rows, every_step)
    stays = np.where(rows.old != NOWHERE, rows.old, rows.came[rows.first])[rows.key]
    kept = stays == rows.came if engine == "first-row" else np.ones(len(stays), bool)
    none: Numbers = np.zeros(0, np.int64)
    return Moves(stays, kept, none, none)


def _followed(rows: KeyRows, every_step: bool) -> Moves:
    """A key is where its last row said; what takes a row back does so where the row is."""
    old, here = rows.old[rows.key], np.arange(len(rows.key))
    adds = ~rows.retracts
    said = np.maximum.accumulate(np.where(adds, here, -1)) if len(here) else here
    is_said = said >= rows.first[rows.key]
    target = np.where(is_said, rows.came[said], np.where(old != NOWHERE, old, rows.came))
    before = np.concatenate([old[:1], target[:-1]])
    before[rows.first] = rows.old
    moved = adds & (before != NOWHERE) & (before != target)
    kept = np.ones(len(here), bool)
    if not every_step:
        final = target[rows.last][rows.key]
        kept = (target == final) | (target == old)
        moved &= (before == final) | (before == old)
    left = np.flatnonzero(moved)
    return Moves(target, kept, left, before[left])


def ends_gone(rows: KeyRows, engine: str, *, remove_on_delete: bool) -> _Mask:
    """Marks the keys that have no row any more when all rows are merged."""
    last = rows.kind[rows.last]
    if engine == "deduplicate":
        return rows.retracts[rows.last]
    gone: _Mask = last == (RowKind.DELETE if remove_on_delete else NO_KIND)
    return gone
