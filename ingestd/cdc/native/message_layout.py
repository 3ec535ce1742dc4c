"""Message layouts: where messages have the fields of a change, for the native reader.

A layout describes a whole message, and converts its columns to changes. It may refuse any message;
what it accepts, it decodes to the same changes as the format's decoder in Python.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ingestd.cdc.base import UNKNOWN_POSITION
from ingestd.cdc.native.cells import IrregularError, codes, counts, flags
from ingestd.cdc.native.image import (
    CoalescedImage,
    ColumnImage,
    GatheredImage,
    MaskedImage,
    NativeImage,
)
from ingestd.cdc.native.module import Columns, Path, Spec
from ingestd.cdc.row_layout import NO_KIND, Indices, Kinds, Mask
from ingestd.paimon.spec.data_types import RowKind

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Log:
    """Source positions (n,) of messages, and a mask (n,) of snapshot rows."""

    position: Numbers
    snapshot: Mask


@dataclass(frozen=True, slots=True)
class LayoutChanges:
    """Changes as columns, one row per change."""

    kinds: Kinds
    after: NativeImage
    before: NativeImage
    log: Log
    offsets: Numbers


class Layout(Protocol):
    """The layout of one table's messages in one format."""

    @property
    def root(self) -> Spec:
        """Return the node of a whole message."""
        ...

    def changes(self, columns: Columns, offsets: Numbers) -> LayoutChanges:
        """Return the changes of messages. Raises IrregularError or one of `PARSE_ERRORS`."""
        ...


ReadKinds = Callable[[Columns], Kinds]
ReadLog = Callable[[Columns, Kinds], Log]


@dataclass(frozen=True, slots=True)
class TwoImages:
    """The layout of messages with before and after images in separate fields."""

    root: Spec
    before: Path
    after: Path
    kinds: ReadKinds
    log: ReadLog

    def changes(self, columns: Columns, offsets: Numbers) -> LayoutChanges:
        """See `Layout`."""
        kinds = self.kinds(columns)
        before = ColumnImage(columns, self.before, flags(columns[self.before]))
        after = ColumnImage(columns, self.after, flags(columns[self.after]))
        return LayoutChanges(kinds, after, before, self.log(columns, kinds), offsets)


@dataclass(frozen=True, slots=True)
class OneRow:
    """The layout of messages with one row, also for deletes, and the old values of an update.

    `old` is None if messages do not contain old values.
    """

    root: Spec
    row: Path
    old: Path | None
    kinds: ReadKinds
    log: ReadLog

    def changes(self, columns: Columns, offsets: Numbers) -> LayoutChanges:
        """See `Layout`."""
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
    """The layout of `OneRow` with any number of rows per message."""

    root: Spec
    row: Path
    old: Path
    kinds: ReadKinds
    log: ReadLog

    def changes(self, columns: Columns, offsets: Numbers) -> LayoutChanges:
        """See `Layout`."""
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
    """Return the index of each row's old image, negative for rows without one."""
    updates = kinds == RowKind.UPDATE_AFTER
    if (updates & (olds != 0) & (olds != sizes)).any():
        raise IrregularError("an update has another number of rows than of old ones")
    firsts = np.where(updates & (olds != 0), np.cumsum(olds) - olds, NO_KIND)
    starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
    firsts = np.repeat(firsts, sizes)
    return np.where(firsts < 0, NO_KIND, firsts + np.arange(len(firsts)) - starts)


def _of_rows(
    rows: ColumnImage,
    old: NativeImage | None,
    kinds: Kinds,
    log: ReadLog,
    columns: Columns,
    offsets: Numbers,
) -> LayoutChanges:
    deletes: Mask = kinds == RowKind.DELETE
    has_deletes = bool(deletes.any())
    after: NativeImage = MaskedImage(rows, ~deletes) if has_deletes else rows
    before: NativeImage = MaskedImage(rows, deletes)
    if old is not None:
        before = CoalescedImage(before, old) if has_deletes else old
    return LayoutChanges(kinds, after, before, log(columns, kinds), offsets)


def chosen(path: Path, kinds: Sequence[int]) -> ReadKinds:
    """Return the row kinds for the texts of a choice; the first is that of an absent field."""
    by_code = np.array(kinds, np.int8)

    def read(columns: Columns) -> Kinds:
        found: Kinds = by_code[codes(columns[path])]
        if (found == NO_KIND).any():
            raise IrregularError("a message has no operation")
        return found

    return read


def no_log(columns: Columns, kinds: Kinds) -> Log:
    """Return unknown positions, for messages that do not contain their log position."""
    size = len(kinds)
    return Log(np.full(size, UNKNOWN_POSITION, np.int64), np.zeros(size, np.bool_))
