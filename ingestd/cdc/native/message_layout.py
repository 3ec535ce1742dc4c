"""Where the messages of a format have what makes a change, for the native reader.

A layout says how a whole message looks and takes its columns for changes. Whatever a message of
the format may have, a layout may refuse: what it takes is what the format's own decoder makes of
the same bytes, no more.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ingestd.cdc.base import UNKNOWN_POSITION
from ingestd.cdc.native.cells import Indices, Marks, codes, counts, flags
from ingestd.cdc.native.image import CoalescedImage, ColumnImage, GatheredImage, Image, MaskedImage
from ingestd.cdc.native.module import Columns, Path, Spec
from ingestd.paimon.spec.data_types import RowKind

Kinds = npt.NDArray[np.int8]
Numbers = npt.NDArray[np.int64]
NO_KIND = -1
"""Stands for a row kind where a message has no operation."""


class IrregularError(ValueError):
    """Messages that only the decoder in Python can judge."""


@dataclass(frozen=True, slots=True)
class Log:
    """Source positions of messages, and which of them are rows of a snapshot."""

    position: Numbers
    snapshot: Marks


@dataclass(frozen=True, slots=True)
class LayoutChanges:
    """Changes as columns: a row each.

    `rows` has the row of every change, where a format has that of a delete in the same place as
    all others.
    """

    kinds: Kinds
    after: Image
    before: Image
    rows: ColumnImage | None
    log: Log
    offsets: Numbers


class Layout(Protocol):
    """How the messages of one table look in one format."""

    @property
    def root(self) -> Spec:
        """A whole message."""
        ...

    def changes(self, columns: Columns, offsets: Numbers) -> LayoutChanges:
        """What messages say. Raises IrregularError, or one of `PARSE_ERRORS`."""
        ...


ReadKinds = Callable[[Columns], Kinds]
ReadLog = Callable[[Columns, Kinds], Log]


@dataclass(frozen=True, slots=True)
class TwoImages:
    """Rows before and after a change in places of their own."""

    root: Spec
    before: Path
    after: Path
    kinds: ReadKinds
    log: ReadLog

    def changes(self, columns: Columns, offsets: Numbers) -> LayoutChanges:
        """As `Layout` says."""
        kinds = self.kinds(columns)
        before = ColumnImage(columns, self.before, flags(columns[self.before]))
        after = ColumnImage(columns, self.after, flags(columns[self.after]))
        return LayoutChanges(kinds, after, before, None, self.log(columns, kinds), offsets)


@dataclass(frozen=True, slots=True)
class OneRow:
    """One row, which a delete has too, and beside it what an update changed.

    `old` is None if nothing is said of rows before updates.
    """

    root: Spec
    row: Path
    old: Path | None
    kinds: ReadKinds
    log: ReadLog

    def changes(self, columns: Columns, offsets: Numbers) -> LayoutChanges:
        """As `Layout` says."""
        kinds, there = self.kinds(columns), flags(columns[self.row])
        if not there.all():
            raise IrregularError("a message has no row")
        old = None
        if self.old is not None:
            image = ColumnImage(columns, self.old, flags(columns[self.old]))
            old = MaskedImage(image, image.there & (kinds == RowKind.UPDATE_AFTER))
        return _of_rows(
            ColumnImage(columns, self.row, there), old, kinds, self.log, columns, offsets
        )


@dataclass(frozen=True, slots=True)
class ListedRows:
    """As `OneRow`, with any number of rows in a message."""

    root: Spec
    row: Path
    old: Path
    kinds: ReadKinds
    log: ReadLog

    def changes(self, columns: Columns, offsets: Numbers) -> LayoutChanges:
        """As `Layout` says."""
        kinds, sizes, olds = self.kinds(columns), counts(columns[self.row]), columns[self.old]
        if not sizes.all():
            raise IrregularError("a message has no row")
        log = self.log(columns, kinds)
        places = _places(kinds, sizes, counts(olds)) if olds.seen else None
        if len(sizes) != columns[self.row].seen:
            kinds, offsets = np.repeat(kinds, sizes), np.repeat(offsets, sizes)
            log = Log(np.repeat(log.position, sizes), np.repeat(log.snapshot, sizes))
        rows = ColumnImage(columns, self.row, np.ones(len(kinds), np.bool_))
        old = None
        if places is not None:
            image = ColumnImage(columns, self.old, np.ones(olds.seen, np.bool_))
            old = GatheredImage(image, places)
        return _of_rows(rows, old, kinds, lambda *_: log, columns, offsets)


def _places(kinds: Kinds, sizes: Indices, olds: Indices) -> Indices:
    """Where among all old images that of each row is; negative where a row has none."""
    updates = kinds == RowKind.UPDATE_AFTER
    if (updates & (olds != 0) & (olds != sizes)).any():
        raise IrregularError("an update has another number of rows than of old ones")
    firsts = np.where(updates & (olds != 0), np.cumsum(olds) - olds, NO_KIND)
    starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
    firsts = np.repeat(firsts, sizes)
    return np.where(firsts < 0, NO_KIND, firsts + np.arange(len(firsts)) - starts)


def _of_rows(
    rows: ColumnImage,
    old: Image | None,
    kinds: Kinds,
    log: ReadLog,
    columns: Columns,
    offsets: Numbers,
) -> LayoutChanges:
    deletes: Marks = kinds == RowKind.DELETE
    has_deletes = bool(deletes.any())
    after: Image = MaskedImage(rows, ~deletes) if has_deletes else rows
    before: Image = MaskedImage(rows, deletes)
    if old is not None:
        before = CoalescedImage(before, old) if has_deletes else old
    return LayoutChanges(kinds, after, before, rows, log(columns, kinds), offsets)


def chosen(path: Path, kinds: Sequence[int]) -> ReadKinds:
    """Row kinds of the texts of a choice, beginning with that of a field that did not come."""
    by_code = np.array(kinds, np.int8)

    def read(columns: Columns) -> Kinds:
        found: Kinds = by_code[codes(columns[path])]
        if (found == NO_KIND).any():
            raise IrregularError("a message has no operation")
        return found

    return read


def no_log(columns: Columns, kinds: Kinds) -> Log:
    """Of messages that do not say where in a log they stand."""
    size = len(kinds)
    return Log(np.full(size, UNKNOWN_POSITION, np.int64), np.zeros(size, np.bool_))
