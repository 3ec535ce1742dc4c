"""Message layouts, which state for the native reader where messages contain parts of a change.

A layout describes a whole message as a tree of nodes (the native plan), and converts the columns
that were read to changes. It may reject any message. Messages that it accepts are decoded to the
same changes as by the Python decoder of the format.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from ingestd.cdc.base import UNKNOWN_POSITION, Numbers, SourceTable
from ingestd.cdc.columns.column_reader import INT64_ENCODING, PlanColumn, Spec
from ingestd.cdc.json.native_cells import (
    CoalescedImage,
    ColumnImage,
    GatheredImage,
    IrregularError,
    MaskedImage,
    NativeImage,
)
from ingestd.cdc.native_module import Columns, NativeColumn, NativeModule, NativePlan, Path
from ingestd.cdc.operations import ROW_OPERATIONS
from ingestd.cdc.row_layout import ABSENT, NO_KIND, Kinds
from ingestd.cdc.source_position import file_number, is_snapshot, packed_positions
from ingestd.paimon.spec.data_types import RowKind
from ingestd.paimon.spec.row_selection import Indices, Mask

_decode_mark = msgspec.json.Decoder(str | bool | None).decode
_decode_name = msgspec.json.Decoder(str | None).decode
NULL_SPEC: Spec = ("null",)
NULL = b"null"
Field = tuple[str, bool, Spec]
"""The name of a field, whether it is required, and its node."""
RUNS_SPEC: Spec = ("runs",)
FLAG_SPEC: Spec = ("choice", (b"false", NULL))
"""The node of a flag that must be false or null."""


@dataclass(frozen=True, slots=True)
class RowSpecs:
    """The native plan nodes that match rows and keys of one table.

    `row` is the node of after images that may be null, and `whole` the node of after images that
    must not be null. `old` is the node of before images. `key` is None if the table has no key.
    """

    row: Spec
    whole: Spec
    old: Spec
    key: Spec | None


def row_specs(
    columns: Sequence[PlanColumn], key_columns: Sequence[PlanColumn], *, images: bool
) -> RowSpecs | None:
    """Return the nodes of a table, or None if only Python can decode its messages.

    The encodings of key columns must be comparable, because an update that changes the key becomes
    two rows. If `images` is set or the table has no key, all columns of before images are read,
    else only the key columns.
    """
    if any(not column.encoding.comparable for column in key_columns):
        return None
    row = columns_spec(columns, nullable=True, closed=True)
    whole = columns_spec(columns, nullable=False, closed=True)
    keys_only = not images and bool(key_columns)
    old = columns_spec(key_columns, nullable=True, closed=False) if keys_only else row
    key = columns_spec(key_columns, nullable=False, closed=True, required=True)
    return RowSpecs(row, whole, old, key if key_columns else None)


def spec_of(column: PlanColumn) -> Spec:
    """Return the native plan node of a column's values.

    A column has no reader if all its values were null so far. Its node accepts only null, and shows
    which rows lack the column.
    """
    return ("choice", (NULL,)) if column.reader is None else column.encoding.spec


def columns_spec(
    columns: Sequence[PlanColumn], *, nullable: bool, closed: bool, required: bool = False
) -> Spec:
    """Return the native plan node of a JSON object whose fields are these columns.

    If `nullable`, the object may be null. If `closed`, it must not have other fields. If
    `required`, it must have all columns.
    """
    fields = [(column.name, required, spec_of(column)) for column in columns]
    return ("object", nullable, closed, fields)


def constant_fields(constants: Mapping[str, bytes], names: Sequence[str]) -> list[Field]:
    """Return native plan fields with these names that must have the JSON texts in `constants`.

    `constants` must have a text for each of the names. A field whose text is null may be absent.
    """
    return [constant_field(name, constants[name]) for name in names]


def constant_field(name: str, text: bytes) -> Field:
    """Return a native plan field that must have this JSON text. If it is null, it may be absent."""
    return (name, False, NULL_SPEC) if text == NULL else (name, True, ("literal", text))


def open_object(fields: Sequence[Field], *, nullable: bool = False) -> Spec:
    """Return the native plan node of an object with these fields, and possibly others.

    If it is `nullable`, null is also accepted.
    """
    return ("object", nullable, False, tuple(fields))


def words_spec(words: Sequence[str]) -> Spec:
    """Return the native plan node of a string that must be one of these words."""
    return ("choice", texts_of(words))


def texts_of(words: Sequence[str]) -> tuple[bytes, ...]:
    """Encode words as JSON strings, with quotes."""
    return tuple(b'"%s"' % word.encode() for word in words)


def numbers(columns: Columns, path: Path | None, rows: int) -> tuple[Numbers, Mask]:
    """Return the integers (rows,) at a path in the messages, and a mask of those that are not null.

    `columns` are the columns that the native reader read. `path` is None for a field that no
    message has: all of its numbers are null.
    """
    if path is None:
        return np.zeros(rows, np.int64), np.zeros(rows, np.bool_)
    native = columns[path]
    values = np.frombuffer(native.data, np.int64)
    if native.validity is None:
        return values, np.ones(rows, np.bool_)
    bits = np.frombuffer(native.validity, np.uint8)
    return values, np.unpackbits(bits, count=rows, bitorder="little").view(np.bool_)


def run_texts(native: NativeColumn) -> list[bytes]:
    """Return the JSON text of each run of equal values in a column, `null` for an absent field."""
    return [b"null" if text is None else text for _, text in native.runs or ()]


def run_lengths(native: NativeColumn, rows: int) -> Indices:
    """Return the number of rows in each run of equal values of a column; shape (runs,)."""
    bounds = np.array([*(start for start, _ in native.runs or ()), rows], np.int64)
    lengths: Indices = bounds[1:] - bounds[:-1]
    return lengths


def flags(native: NativeColumn) -> Mask:
    """Return a mask (rows,) of the messages whose object in this column is present and not null."""
    return np.frombuffer(native.data, np.bool_)


def codes(native: NativeColumn) -> npt.NDArray[np.uint8]:
    """Return, for each row, the number of its word in the list of `words_spec`, from 1.

    The number is 0 if the field is absent; shape (rows,).
    """
    return np.frombuffer(native.data, np.uint8)


def counts(native: NativeColumn) -> Indices:
    """Return the number of objects in the JSON array of each message; shape (messages,)."""
    return np.frombuffer(native.data, np.uint32).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Log:
    """The log positions of n changes in the source database, and which changes are snapshot rows.

    `position` (n,) is -1 if unknown, and `snapshot` is a mask (n,).
    """

    position: Numbers
    snapshot: Mask


@dataclass(frozen=True, slots=True)
class LayoutChanges:
    """Changes as columns: row kinds, images, log positions, and offsets in the topic."""

    kinds: Kinds
    after: NativeImage
    before: NativeImage
    log: Log
    offsets: Numbers

    def with_tombstones(self, indices: Indices, offsets: Numbers) -> "LayoutChanges":
        """Return these changes and, for each tombstone among the messages, a delete without images.

        `offsets` are the offsets of all messages, tombstones included, and `indices` the indices of
        the messages that have these changes.
        """
        size = len(offsets)
        kinds, sources = np.full(size, RowKind.DELETE, np.int8), np.full(size, ABSENT, np.int64)
        kinds[indices], sources[indices] = self.kinds, np.arange(len(indices))
        log = _unknown_log(size)
        log.position[indices], log.snapshot[indices] = self.log.position, self.log.snapshot
        after, before = (GatheredImage(image, sources) for image in (self.after, self.before))
        return LayoutChanges(kinds, after, before, log, offsets)


class Layout(Protocol):
    """The native message layout of one table in one format: the plan, and how changes are read."""

    @property
    def root(self) -> Spec:
        """The native plan node that matches a whole message."""
        ...

    def changes(self, columns: Columns, offsets: Numbers) -> LayoutChanges:
        """Convert the columns that were read from messages to changes.

        `offsets` are the offsets of the messages. Raises IrregularError, MsgspecError,
        UnicodeDecodeError or RecursionError if only Python can decode the messages.
        """
        ...


ReadKinds = Callable[[Columns], Kinds]
ReadLog = Callable[[Columns, Kinds], Log]


@dataclass(frozen=True, slots=True)
class TwoImages:
    """The layout of messages with before and after images in separate fields.

    `root` is the node of a whole message, `before` and `after` are the paths of the images. `kinds`
    reads the row kinds from the columns of messages, `log` their log positions.
    """

    root: Spec
    before: Path
    after: Path
    kinds: ReadKinds
    log: ReadLog

    def changes(self, columns: Columns, offsets: Numbers) -> LayoutChanges:
        """Convert the columns that were read from messages to changes.

        `offsets` are the offsets of the messages. Raises IrregularError, MsgspecError,
        UnicodeDecodeError or RecursionError if only Python can decode the messages.
        """
        kinds = self.kinds(columns)
        before = ColumnImage(columns, self.before, flags(columns[self.before]))
        after = ColumnImage(columns, self.after, flags(columns[self.after]))
        return LayoutChanges(kinds, after, before, self.log(columns, kinds), offsets)


@dataclass(frozen=True, slots=True)
class OneRow:
    """The layout of messages with one row, and in updates also its old values.

    `root` is the node of a whole message. `row` is the path of the row, which in deletes is the
    deleted row, and `old` the path of the old values (None: messages do not contain them). `kinds`
    reads the row kinds from the columns of messages, `log` their log positions.
    """

    root: Spec
    row: Path
    old: Path | None
    kinds: ReadKinds
    log: ReadLog

    def changes(self, columns: Columns, offsets: Numbers) -> LayoutChanges:
        """Convert the columns that were read from messages to changes.

        `offsets` are the offsets of the messages. Raises IrregularError, MsgspecError,
        UnicodeDecodeError or RecursionError if only Python can decode the messages.
        """
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
    """The layout of messages with a list of one or more rows, and in updates also their old values.

    `root` is the node of a whole message, `row` the path of the rows, and `old` the path of the
    list of their old values. `kinds` reads the row kinds from the columns of messages, `log` their
    log positions.
    """

    root: Spec
    row: Path
    old: Path
    kinds: ReadKinds
    log: ReadLog

    def changes(self, columns: Columns, offsets: Numbers) -> LayoutChanges:
        """Convert the columns that were read from messages to changes, one for each listed row.

        `offsets` are the offsets of the messages. Raises IrregularError, MsgspecError,
        UnicodeDecodeError or RecursionError if only Python can decode the messages.
        """
        kinds, sizes, olds = self.kinds(columns), counts(columns[self.row]), columns[self.old]
        if not sizes.all():
            raise IrregularError("a message has no row")
        log = self.log(columns, kinds)
        old_indices = _old_indices(kinds, sizes, counts(olds)) if olds.seen else None
        if len(sizes) != columns[self.row].seen:
            kinds, offsets = np.repeat(kinds, sizes), np.repeat(offsets, sizes)
            log = Log(np.repeat(log.position, sizes), np.repeat(log.snapshot, sizes))
        rows = ColumnImage(columns, self.row, np.ones(len(kinds), np.bool_))
        old = None
        if old_indices is not None:
            image = ColumnImage(columns, self.old, np.ones(olds.seen, np.bool_))
            old = GatheredImage(image, old_indices)
        return _of_rows(rows, old, kinds, lambda *_: log, columns, offsets)


def _old_indices(kinds: Kinds, sizes: Indices, olds: Indices) -> Indices:
    """Return the index of each row's old image among all old images, or -1 if it has none.

    `sizes` and `olds` are the numbers of rows and of old images per message. Raises IrregularError
    if an update has old images, but not one for each row.
    """
    updates = kinds == RowKind.UPDATE_AFTER
    if (updates & (olds != 0) & (olds != sizes)).any():
        raise IrregularError("an update has old images, but not one for each row")
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
    """Return a function that reads the row kinds of messages from the words at a path.

    `kinds` are the row kinds of the words, preceded by the row kind of an absent field. The
    function raises IrregularError if a message has a word whose kind is -1.
    """
    by_code = np.array(kinds, np.int8)

    def read(columns: Columns) -> Kinds:
        row_kinds: Kinds = by_code[codes(columns[path])]
        if (row_kinds == NO_KIND).any():
            raise IrregularError("a message has no operation")
        return row_kinds

    return read


def no_log(columns: Columns, kinds: Kinds) -> Log:
    """Return unknown positions and no snapshot rows, for messages that contain no log position."""
    return _unknown_log(len(kinds))


def _unknown_log(size: int) -> Log:
    return Log(np.full(size, UNKNOWN_POSITION, np.int64), np.zeros(size, np.bool_))


@dataclass(frozen=True, slots=True)
class SourceLog:
    """The paths of the fields with the log position of a change (None: no message has the field).

    `snapshot` marks snapshot rows, `lsn` is a log sequence number, and `file`, `pos` and `row` are
    a position in a binary log.
    """

    snapshot: Path | None
    lsn: Path | None
    file: Path | None
    pos: Path | None
    row: Path | None

    def read(self, columns: Columns, kinds: Kinds) -> Log:
        """Return the log positions of changes, and which of them are snapshot rows.

        Raises IrregularError, MsgspecError, UnicodeDecodeError or RecursionError if only Python can
        decode the messages.
        """
        size = len(kinds)
        lsn, has_lsn = numbers(columns, self.lsn, size)
        if (lsn < 0).any():
            raise IrregularError("a log sequence number is negative")
        position = lsn
        if not has_lsn.all():
            pos, has_pos = numbers(columns, self.pos, size)
            row, _ = numbers(columns, self.row, size)
            files = np.full(size, UNKNOWN_POSITION, np.int64)
            if self.file is not None:
                runs = columns[self.file]
                lengths = run_lengths(runs, size)
                file_numbers = [file_number(_decode_name(text)) for text in run_texts(runs)]
                files = np.repeat(np.array(file_numbers, np.int64), lengths)
            packed = packed_positions(files, pos, row)
            packed[~has_pos] = UNKNOWN_POSITION
            position = np.where(has_lsn, lsn, packed)
        snapshot = np.zeros(size, np.bool_)
        if self.snapshot is not None:
            runs = columns[self.snapshot]
            marks = [is_snapshot(_decode_mark(text)) for text in run_texts(runs)]
            snapshot = np.repeat(np.array(marks, np.bool_), run_lengths(runs, size))
        return Log(position, snapshot)


_BEFORE, _AFTER, _SOURCE = "before", "after", "source"
_LOG = SourceLog(
    (_SOURCE, "snapshot"), (_SOURCE, "lsn"), (_SOURCE, "file"), (_SOURCE, "pos"), (_SOURCE, "row")
)
OPERATIONS = texts_of(tuple(ROW_OPERATIONS))
"""The row operations as JSON strings."""
_KINDS = chosen(("op",), (NO_KIND, *ROW_OPERATIONS.values()))


def normalized_layout(source: SourceTable, specs: RowSpecs) -> TwoImages | None:
    """Return the layout of a table's normalized events, or None if only Python can decode them.

    Only Python can decode them if the table name must be escaped in JSON. The fields that are read
    are `source`, `op`, `before` and `after`.
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
    """Return the fields with the table name, or None if a name must be escaped in JSON."""
    fields: list[tuple[str, bool, Spec]] = []
    for key, name in zip(("db", "schema", "table"), source, strict=True):
        if name is None:
            fields.append((key, False, NULL_SPEC))
        elif any(character in '"\\' or character < " " for character in name):
            return None
        else:
            fields.append((key, True, ("literal", f'"{name}"'.encode())))
    return fields


@dataclass(frozen=True, slots=True)
class NativeReader:
    """A message layout, and the native plans of message values and keys.

    `keys` is None if the table has no key. `hidden` are fields of rows that are not columns.
    """

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
    """Compile the native reader of messages with this layout, by the extension `module`.

    The layout was built from the nodes `specs`; only their `key` is used here. `hidden` are the
    fields of rows that are not columns.
    """
    keys = None if specs.key is None else module.Plan(specs.key)
    return NativeReader(layout, module.Plan(layout.root), keys, hidden)


def native_reader_of_events(
    module: NativeModule, source: SourceTable, specs: RowSpecs
) -> NativeReader | None:
    """Return the native reader for a table's normalized events.

    Returns None if the table name must be escaped in JSON.
    """
    layout = normalized_layout(source, specs)
    return None if layout is None else native_reader(module, layout, specs)
