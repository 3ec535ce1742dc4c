"""Group the messages of a JSON format by table, and read them natively in their own layout.

Native readers do not convert messages to normalized events. The classifier only groups messages; a
group is checked when it is read with the layout of its table. Messages that cannot be read natively
are decoded one by one in Python, with the same result.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np
import pyarrow as pa

from ingestd.cdc.base import Texts, picked, present_indices
from ingestd.cdc.columns.column_reader import RAW, Spec
from ingestd.cdc.json.message_layout import Layout, NativeReader, native_reader
from ingestd.cdc.json.native_cells import to_cells
from ingestd.cdc.json.normalized_events import TableNormalizer
from ingestd.cdc.json.row_plan import RowPlan
from ingestd.cdc.native_module import Columns, NativeModule, NativePlan, Path
from ingestd.paimon.spec.row_selection import Indices, Mask

MakeLayout = Callable[[TableNormalizer, RowPlan], Layout | None]
"""Returns the native layout of a table's messages, or None if only Python can decode them."""
KeyCheck = Callable[[Sequence[bytes | None]], bool]
"""Returns whether a format treats all of these message keys as absent."""
_MAX_READERS = 2000
_NULL = b"null"
_MAX_MISMATCHES = 64
"""Maximum number of failed reads of a chunk; after these, the other messages are not classified."""


@dataclass(frozen=True, slots=True)
class TableFields:
    """The fields by which messages are grouped by table.

    `names` are the paths of the fields with the table name. `rows` maps the paths of other fields
    to the JSON texts that they may have in messages with rows. An absent field is equivalent to
    null.
    """

    names: tuple[Path, ...]
    rows: Mapping[Path, tuple[bytes, ...]]

    @property
    def spec(self) -> Spec:
        """The native plan node that matches messages with rows of any table of this format."""
        return _open_object([*self.names, *self.rows])


def _open_object(paths: Sequence[Path]) -> Spec:
    inner: dict[str, list[Path]] = {}
    for name, *rest in paths:
        inner.setdefault(name, []).append(tuple(rest))
    fields = [
        (name, False, _open_object(below) if all(below) else RAW.spec)
        for name, below in inner.items()
    ]
    return ("object", False, False, fields)


@dataclass(slots=True)
class _ReadChunk:
    """The messages of a chunk that were read: indices and columns, an item for each read.

    `mismatches` is the number of reads that failed.
    """

    indices: list[Indices] = field(default_factory=list)
    columns: list[Columns] = field(default_factory=list)
    mismatches: int = 0


class Classifier:
    """A native reader that groups the messages of a chunk by table.

    `module` is the extension, and `fields` are the fields by which messages are grouped.
    """

    def __init__(self, module: NativeModule, fields: TableFields) -> None:
        self._fields = fields
        self._plan: NativePlan = module.Plan(fields.spec)

    def sort(self, values: Texts) -> list[Indices]:
        """Return the ascending indices of the messages with rows, in one array for each table.

        Messages without rows, and messages that the plan cannot read, are omitted. The tables are
        in the order of their first messages.
        """
        indices, chunk = present_indices(values, empty=False), _ReadChunk()
        self._read(indices, cast("Sequence[bytes]", picked(values, indices)), chunk)
        if not chunk.indices:
            return []
        rows, tables = np.concatenate(chunk.indices), self._tables(chunk)
        marks = self._rows(chunk)
        return _grouped(rows[marks], tables[marks])

    def _read(self, indices: Indices, values: Sequence[bytes], chunk: _ReadChunk) -> None:
        """Read messages into `chunk`; if a read fails, exclude irregular messages by bisection.

        After `_MAX_MISMATCHES` failed reads, the remaining messages are omitted.
        """
        if not values or chunk.mismatches >= _MAX_MISMATCHES:
            return
        columns = self._plan.read(values, b"", b"")
        if columns is not None:
            chunk.indices.append(indices)
            chunk.columns.append(columns)
            return
        chunk.mismatches += 1
        if len(values) > 1:
            half = len(values) // 2
            self._read(indices[:half], values[:half], chunk)
            self._read(indices[half:], values[half:], chunk)

    def _tables(self, chunk: _ReadChunk) -> Indices:
        """Return a number for each message; messages of the same table have the same number."""
        numbers = np.zeros(sum(map(len, chunk.indices)), np.int64)
        for path in self._fields.names:
            codes, texts = _texts(chunk, path)
            if len(texts) > 1:
                # Numbers are reassigned after each field, so that they do not overflow.
                numbers = np.unique(numbers * len(texts) + codes, return_inverse=True)[1]
        return numbers

    def _rows(self, chunk: _ReadChunk) -> Mask:
        """Return a mask of the messages that contain rows."""
        marks = np.ones(sum(map(len, chunk.indices)), np.bool_)
        for path, row_texts in self._fields.rows.items():
            codes, texts = _texts(chunk, path)
            marks &= np.array([text in row_texts for text in texts], np.bool_)[codes]
        return marks


def _texts(chunk: _ReadChunk, path: Path) -> tuple[Indices, list[bytes]]:
    """Return an index for each message, and the list of distinct JSON texts to which it refers.

    The text is that of the field at `path`; the text of an absent field is null.
    """
    arrays = [
        to_cells(columns[path], RAW, len(indices)).array
        for columns, indices in zip(chunk.columns, chunk.indices, strict=True)
    ]
    column = pa.concat_arrays(arrays)
    encoded = (column.fill_null(_NULL) if column.null_count else column).dictionary_encode()
    texts = [text or _NULL for text in encoded.dictionary.to_pylist()]
    return encoded.indices.to_numpy().astype(np.int64), texts


def _grouped(indices: Indices, tables: Indices) -> list[Indices]:
    """Return the message indices of each table; tables are in the order of their first messages.

    `tables` are the numbers of the messages' tables, parallel to `indices`.
    """
    order = np.argsort(tables, kind="stable")
    bounds = np.flatnonzero(np.diff(tables[order])) + 1
    groups: list[Indices] = np.split(indices[order], bounds)
    return sorted((group for group in groups if len(group)), key=lambda group: int(group[0]))


def any_keys(keys: Sequence[bytes | None]) -> bool:
    """Return True, for formats that ignore message keys."""
    return True


def no_keys(keys: Sequence[bytes | None]) -> bool:
    """Return whether no message has a key: the check of formats to which every key matters."""
    return keys.count(None) == len(keys)


def no_objects(keys: Sequence[bytes | None]) -> bool:
    """Return whether no message key can be an object, for formats that read only object keys."""
    return no_keys(keys) or all(key is None or key[:1] not in _MAY_OPEN for key in keys)


_MAY_OPEN = frozenset({b"{", b" ", b"\t", b"\r", b"\n"})


def no_layout(normalizer: TableNormalizer, plan: RowPlan) -> None:
    """Return None; this is the layout function of formats that only Python can decode."""
    return


@dataclass(frozen=True, slots=True)
class NativeFormat:
    """How the messages of a format are decoded natively.

    `make_layout` returns the layout of a table's messages. `table_fields` are the fields by which
    messages are grouped by table, or None if messages must be decoded in order, because a message
    affects later messages. In formats with `table_fields`, tombstones are not changes. `keyless`
    returns whether message keys are treated as absent.
    """

    make_layout: MakeLayout = no_layout
    table_fields: TableFields | None = None
    keyless: KeyCheck = any_keys

    @property
    def in_order(self) -> bool:
        """Whether messages must be decoded in order, because they can affect later messages."""
        return self.table_fields is None


PYTHON_ONLY = NativeFormat()
"""A format without native layouts, whose messages are decoded in order."""


class FormatReaders:
    """The native readers of a format's messages, cached by row plan.

    If `module` is None, messages are not grouped or read natively.
    """

    def __init__(self, module: NativeModule | None, native: NativeFormat) -> None:
        self._module = module
        self._native = native
        self._classifier = None
        if module is not None and native.table_fields is not None:
            self._classifier = Classifier(module, native.table_fields)
        self._readers: dict[int, tuple[RowPlan, NativeReader | None]] = {}

    def by_table(self, values: Sequence[bytes | None]) -> list[Indices]:
        """Return the indices of the messages with rows, in one array for each table.

        Messages of one table may still have different layouts. The list is empty if messages must
        be decoded in order, or if the extension is not installed.
        """
        return [] if self._classifier is None else self._classifier.sort(values)

    def reader(self, normalizer: TableNormalizer, plan: RowPlan) -> NativeReader | None:
        """Return the reader of a table's messages, or None if only Python can decode them."""
        if normalizer.is_normalized:
            return plan.native
        cached = self._readers.get(id(plan))
        if cached is not None:
            return cached[1]
        if len(self._readers) >= _MAX_READERS:
            self._readers.clear()
        reader = self._new_reader(normalizer, plan)
        # The cache references the plan, so that no other plan can get the same id.
        self._readers[id(plan)] = (plan, reader)
        return reader

    def _new_reader(self, normalizer: TableNormalizer, plan: RowPlan) -> NativeReader | None:
        layout = self._native.make_layout(normalizer, plan)
        if layout is None or plan.specs is None or self._module is None:
            return None
        return native_reader(self._module, layout, plan.specs, normalizer.hidden)
