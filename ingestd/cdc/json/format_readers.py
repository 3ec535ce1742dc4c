"""Native decoding of one JSON format: the layouts of its messages, and grouping by table.

The bytes of messages are not rewritten. The classifier only groups messages; a group is checked
when it is read with the layout of its table. Messages that cannot be read natively are decoded one
by one in Python, with the same result.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np
import pyarrow as pa

from ingestd.cdc.base import Texts, picked, there
from ingestd.cdc.columns.column_reader import RAW, Spec
from ingestd.cdc.json.message_layout import Layout, NativeReader, native_reader
from ingestd.cdc.json.native_cells import to_cells
from ingestd.cdc.json.normalized_events import TableNormalizer
from ingestd.cdc.json.row_plan import RowPlan
from ingestd.cdc.native_module import Columns, NativeModule, NativePlan, Path
from ingestd.cdc.row_layout import Indices, Mask

MakeLayout = Callable[[TableNormalizer, RowPlan], Layout | None]
"""Returns the native layout of a table's messages, or None if only Python can decode them."""
KeyCheck = Callable[[Sequence[bytes | None]], bool]
"""Returns whether a format treats all of these message keys as absent."""
_MAX_READERS = 2000
_NULL = b"null"
_MAX_MISMATCHES = 64
"""Maximum number of failed reads; then the remaining messages are not classified."""


@dataclass(frozen=True, slots=True)
class TableFields:
    """The fields with the table name, and the JSON texts that other fields have in row messages.

    An absent field is equivalent to null.
    """

    names: tuple[Path, ...]
    rows: Mapping[Path, tuple[bytes, ...]]

    @property
    def spec(self) -> Spec:
        """The plan node of a message of any table."""
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
class _Seen:
    """The indices of the messages read so far, in parts, and the columns of each part."""

    indices: list[Indices] = field(default_factory=list)
    columns: list[Columns] = field(default_factory=list)
    mismatches: int = 0


class Classifier:
    """Groups the messages of chunks by table."""

    def __init__(self, module: NativeModule, fields: TableFields) -> None:
        self._fields = fields
        self._plan: NativePlan = module.Plan(fields.spec)

    def sort(self, values: Texts) -> list[Indices]:
        """Return the ascending indices of the row messages of each table.

        Other messages are omitted.
        """
        indices, seen = there(values, empty=False), _Seen()
        self._read(indices, cast("Sequence[bytes]", picked(values, indices)), seen)
        if not seen.indices:
            return []
        rows, tables = np.concatenate(seen.indices), self._tables(seen)
        marks = self._rows(seen)
        return _grouped(rows[marks], tables[marks])

    def _read(self, indices: Indices, values: Sequence[bytes], seen: _Seen) -> None:
        """Read messages; if a read fails, find the irregular messages by bisection."""
        if not values or seen.mismatches >= _MAX_MISMATCHES:
            return
        columns = self._plan.read(values, b"", b"")
        if columns is not None:
            seen.indices.append(indices)
            seen.columns.append(columns)
            return
        seen.mismatches += 1
        if len(values) > 1:
            half = len(values) // 2
            self._read(indices[:half], values[:half], seen)
            self._read(indices[half:], values[half:], seen)

    def _tables(self, seen: _Seen) -> Indices:
        """Return a number for each message, which is equal for messages of the same table."""
        numbers = np.zeros(sum(map(len, seen.indices)), np.int64)
        for path in self._fields.names:
            codes, texts = _texts(seen, path)
            if len(texts) > 1:
                # Numbers are reassigned after each field, so that they do not overflow.
                numbers = np.unique(numbers * len(texts) + codes, return_inverse=True)[1]
        return numbers

    def _rows(self, seen: _Seen) -> Mask:
        """Return a mask of the messages that contain rows."""
        marks = np.ones(sum(map(len, seen.indices)), np.bool_)
        for path, wanted in self._fields.rows.items():
            codes, texts = _texts(seen, path)
            marks &= np.array([text in wanted for text in texts], np.bool_)[codes]
        return marks


def _texts(seen: _Seen, path: Path) -> tuple[Indices, list[bytes]]:
    """Return a field of each message as an index into the list of its distinct JSON texts."""
    arrays = [
        to_cells(columns[path], RAW, len(indices)).array
        for columns, indices in zip(seen.columns, seen.indices, strict=True)
    ]
    column = pa.concat_arrays(arrays)
    encoded = (column.fill_null(_NULL) if column.null_count else column).dictionary_encode()
    texts = [text or _NULL for text in encoded.dictionary.to_pylist()]
    return encoded.indices.to_numpy().astype(np.int64), texts


def _grouped(indices: Indices, tables: Indices) -> list[Indices]:
    """Return the indices of the messages of each table, in order of first occurrence."""
    order = np.argsort(tables, kind="stable")
    bounds = np.flatnonzero(np.diff(tables[order])) + 1
    groups: list[Indices] = np.split(indices[order], bounds)
    return sorted((group for group in groups if len(group)), key=lambda group: int(group[0]))


def any_keys(keys: Sequence[bytes | None]) -> bool:
    """Return True, for formats that ignore message keys."""
    return True


def no_keys(keys: Sequence[bytes | None]) -> bool:
    """Return whether no message has a key, for formats that read every key."""
    return keys.count(None) == len(keys)


def no_objects(keys: Sequence[bytes | None]) -> bool:
    """Return whether no message key is an object, for formats that read only object keys."""
    return no_keys(keys) or all(key is None or key[:1] not in _MAY_OPEN for key in keys)


_MAY_OPEN = frozenset({b"{", b" ", b"\t", b"\r", b"\n"})


def no_layout(normalizer: TableNormalizer, plan: RowPlan) -> None:
    """Return None, for formats without native layouts."""
    return


@dataclass(frozen=True, slots=True)
class NativeFormat:
    """The native decoding of a format.

    `table_fields` is None if messages must be decoded in order, because a message affects later
    messages. Otherwise tombstones are not changes.
    """

    make_layout: MakeLayout = no_layout
    table_fields: TableFields | None = None
    keyless: KeyCheck = any_keys

    @property
    def in_order(self) -> bool:
        """Whether messages must be decoded in order."""
        return self.table_fields is None


PYTHON_ONLY = NativeFormat()
"""A format without native layouts."""


class FormatReaders:
    """The native readers of a format's messages, cached by plan.

    If `module` is None, there are none.
    """

    def __init__(self, module: NativeModule | None, native: NativeFormat) -> None:
        self._module = module
        self._native = native
        self._classifier = None
        if module is not None and native.table_fields is not None:
            self._classifier = Classifier(module, native.table_fields)
        self._readers: dict[int, tuple[RowPlan, NativeReader | None]] = {}

    def by_table(self, values: Sequence[bytes | None]) -> list[Indices]:
        """Return the indices of the messages of each table, which may have the same layout."""
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
        # The cache references the plan, so that no other plan can get its id.
        self._readers[id(plan)] = (plan, reader)
        return reader

    def _new_reader(self, normalizer: TableNormalizer, plan: RowPlan) -> NativeReader | None:
        layout = self._native.make_layout(normalizer, plan)
        if layout is None or plan.specs is None or self._module is None:
            return None
        return native_reader(self._module, layout, plan.specs, normalizer.hidden)
