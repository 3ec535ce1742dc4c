"""Message layouts: where messages have the fields of a change, for the native reader.

A layout describes a whole message, and converts its columns to changes. It may refuse any message;
what it accepts, it decodes to the same changes as the format's decoder in Python.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from ingestd.cdc.base import UNKNOWN_POSITION, SourceTable
from ingestd.cdc.columns.column_encoding import INT64_ENCODING, Spec
from ingestd.cdc.json.native_cells import (
    CoalescedImage,
    ColumnImage,
    GatheredImage,
    IrregularError,
    MaskedImage,
    NativeImage,
    codes,
    counts,
    flags,
    numbers,
)
from ingestd.cdc.json.native_plan import NULL_SPEC, RUNS_SPEC, RowSpecs, texts_of
from ingestd.cdc.native_module import Columns, NativeColumn, NativeModule, NativePlan, Path
from ingestd.cdc.row_layout import NO_KIND, Indices, Kinds, Mask
from ingestd.cdc.source_position import file_number, is_snapshot, packed_positions
from ingestd.paimon.spec.data_types import RowKind

Numbers = npt.NDArray[np.int64]
_decode_mark = msgspec.json.Decoder(str | bool | None).decode
_decode_name = msgspec.json.Decoder(str | None).decode


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


@dataclass(frozen=True, slots=True)
class SourceLog:
    """The paths of the fields with a change's position in the log of its database.

    None is a field that no message has.
    """

    snapshot: Path | None
    lsn: Path | None
    file: Path | None
    pos: Path | None
    row: Path | None

    def read(self, columns: Columns, kinds: Kinds) -> Log:
        """Return positions and snapshot rows. Raises IrregularError or one of `PARSE_ERRORS`."""
        size = len(kinds)
        snapshot = np.zeros(size, np.bool_)
        if self.snapshot is not None:
            snapshot = _snapshot_rows(columns[self.snapshot], size)
        return Log(self.positions(columns, snapshot), snapshot)

    def positions(self, columns: Columns, snapshot: Mask) -> Numbers:
        """Return the position of each change. Raises IrregularError or one of `PARSE_ERRORS`."""
        size = len(snapshot)
        lsn, has_lsn = _numbers(columns, self.lsn, size)
        if (lsn < 0).any():
            raise IrregularError("positions of more than one kind")
        if has_lsn.all():
            return lsn
        files = np.full(size, UNKNOWN_POSITION, np.int64)
        if self.file is not None:
            runs = columns[self.file]
            found = [file_number(_decode_name(text)) for text in _texts(runs)]
            files = np.repeat(np.array(found, np.int64), run_lengths(runs, size))
        pos, has_pos = _numbers(columns, self.pos, size)
        row, _ = _numbers(columns, self.row, size)
        packed = packed_positions(files, pos, row)
        packed[~has_pos] = UNKNOWN_POSITION
        return np.where(has_lsn, lsn, packed)


def _numbers(columns: Columns, path: Path | None, size: int) -> tuple[Numbers, Mask]:
    if path is None:
        return np.zeros(size, np.int64), np.zeros(size, np.bool_)
    return numbers(columns[path], size)


def _snapshot_rows(runs: NativeColumn, size: int) -> Mask:
    marks = [is_snapshot(_decode_mark(text)) for text in _texts(runs)]
    return np.repeat(np.array(marks, np.bool_), run_lengths(runs, size))


def _texts(column: NativeColumn) -> list[bytes]:
    """Return the JSON text of each run; an absent field is null."""
    return [b"null" if text is None else text for _, text in column.runs or ()]


def run_lengths(column: NativeColumn, rows: int) -> Indices:
    """Return the number of rows of each run."""
    bounds = np.array([*(start for start, _ in column.runs or ()), rows], np.int64)
    lengths: Indices = bounds[1:] - bounds[:-1]
    return lengths


_BEFORE, _AFTER, _SOURCE = "before", "after", "source"
_LOG = SourceLog(
    (_SOURCE, "snapshot"), (_SOURCE, "lsn"), (_SOURCE, "file"), (_SOURCE, "pos"), (_SOURCE, "row")
)
OPERATIONS = texts_of(("c", "r", "u", "d"))
"""JSON texts of the operations on rows."""
_KINDS = chosen(
    ("op",), (NO_KIND, RowKind.INSERT, RowKind.INSERT, RowKind.UPDATE_AFTER, RowKind.DELETE)
)


def normalized_layout(source: SourceTable, specs: RowSpecs) -> TwoImages | None:
    """Return the layout of a table's normalized events: Debezium's `source`, `op` and both images.

    None if JSON has to escape the table's name.
    """
    names = _source_names(source)
    if names is None:
        return None
    position = [
        *((name, False, INT64_ENCODING.spec) for name in ("lsn", "pos", "row")),
        *((name, False, RUNS_SPEC) for name in ("file", "snapshot")),
    ]
    fields = (
        ("op", True, ("choice", OPERATIONS)),
        (_SOURCE, True, ("object", False, False, [*names, *position])),
        (_BEFORE, False, specs.old),
        (_AFTER, False, specs.row),
    )
    root = ("object", False, False, fields)
    return TwoImages(root, (_BEFORE,), (_AFTER,), _KINDS, _LOG.read)


def _source_names(source: SourceTable) -> list[tuple[str, bool, Spec]] | None:
    """Return the fields that name the table; None if JSON has to escape a name."""
    found: list[tuple[str, bool, Spec]] = []
    for field, name in zip(("db", "schema", "table"), source, strict=True):
        if name is None:
            found.append((field, False, NULL_SPEC))
        elif any(character in '"\\' or character < " " for character in name):
            return None
        else:
            found.append((field, True, ("literal", f'"{name}"'.encode())))
    return found


@dataclass(frozen=True, slots=True)
class NativeReader:
    """A layout and its plans.

    `keys` is None if the messages have no key. `hidden` are fields of rows that are no columns."""

    layout: Layout
    values: NativePlan
    keys: NativePlan | None
    hidden: frozenset[str]


def native_reader(
    module: NativeModule,
    layout: Layout,
    specs: RowSpecs,
    hidden: frozenset[str] = frozenset(),
) -> NativeReader:
    """Return the reader of messages of a layout, whose images have these nodes."""
    keys = None if specs.key is None else module.Plan(specs.key)
    return NativeReader(layout, module.Plan(layout.root), keys, hidden)
