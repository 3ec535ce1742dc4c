"""A first look at the messages of a chunk: which table each is of, and which are no rows.

It only groups messages: what it says of one is proven when its group is read by the layout of a
table, and messages that it cannot read are left to the decoder in Python.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np
import pyarrow as pa

from ingestd.cdc.native.cells import Indices, Marks, to_cells
from ingestd.cdc.native.column_encoding import RAW
from ingestd.cdc.native.module import Columns, NativeModule, NativePlan, Path, Spec
from ingestd.cdc.texts import Texts, picked, there

_NULL = b"null"
_MISFITS = 64
"""Reads of a look that may fail before no one looks any further."""


@dataclass(frozen=True, slots=True)
class Look:
    """Fields that name a table, and of others the JSON texts that they have in rows.

    A field that did not come is null.
    """

    names: tuple[Path, ...]
    rows: Mapping[Path, tuple[bytes, ...]]

    @property
    def spec(self) -> Spec:
        """The node of a message of any table."""
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
    """Indices of messages that were read, in parts, and the columns of each part."""

    indices: list[Indices] = field(default_factory=list)
    columns: list[Columns] = field(default_factory=list)
    misfits: int = 0


class Classifier:
    """Sorts the messages of chunks by table."""

    def __init__(self, module: NativeModule, look: Look) -> None:
        self._look = look
        self._plan: NativePlan = module.Plan(look.spec)

    def sort(self, values: Texts) -> list[Indices]:
        """Ascending indices of the rows of each table; what is not among them may be anything."""
        indices, seen = there(values, empty=False), _Seen()
        self._read(indices, cast("Sequence[bytes]", picked(values, indices)), seen)
        if not seen.indices:
            return []
        rows, tables = np.concatenate(seen.indices), self._tables(seen)
        marks = self._rows(seen)
        return _grouped(rows[marks], tables[marks])

    def _read(self, indices: Indices, values: Sequence[bytes], seen: _Seen) -> None:
        """Reads what can be read; halves what cannot, to find the messages that are odd."""
        if not values or seen.misfits >= _MISFITS:
            return
        columns = self._plan.read(values, b"", b"")
        if columns is not None:
            seen.indices.append(indices)
            seen.columns.append(columns)
            return
        seen.misfits += 1
        if len(values) > 1:
            half = len(values) // 2
            self._read(indices[:half], values[:half], seen)
            self._read(indices[half:], values[half:], seen)

    def _tables(self, seen: _Seen) -> Indices:
        """A number for each message, the same for messages of one table."""
        found = np.zeros(sum(map(len, seen.indices)), np.int64)
        for path in self._look.names:
            codes, texts = _texts(seen, path)
            if len(texts) > 1:
                # Numbers stay small, however many fields there are.
                found = np.unique(found * len(texts) + codes, return_inverse=True)[1]
        return found

    def _rows(self, seen: _Seen) -> Marks:
        """Which messages are rows."""
        marks = np.ones(sum(map(len, seen.indices)), np.bool_)
        for path, wanted in self._look.rows.items():
            codes, texts = _texts(seen, path)
            marks &= np.array([text in wanted for text in texts], np.bool_)[codes]
        return marks


def _texts(seen: _Seen, path: Path) -> tuple[Indices, list[bytes]]:
    """The text of a field in each message, as a place in the list of all texts."""
    parts = [
        to_cells(columns[path], RAW, len(indices)).array
        for columns, indices in zip(seen.columns, seen.indices, strict=True)
    ]
    found = pa.concat_arrays(parts)
    encoded = (found.fill_null(_NULL) if found.null_count else found).dictionary_encode()
    texts = [text or _NULL for text in encoded.dictionary.to_pylist()]
    return encoded.indices.to_numpy().astype(np.int64), texts


def _grouped(indices: Indices, tables: Indices) -> list[Indices]:
    """The indices of each number, in the order in which the numbers come."""
    order = np.argsort(tables, kind="stable")
    bounds = np.flatnonzero(np.diff(tables[order])) + 1
    groups: list[Indices] = np.split(indices[order], bounds)
    return sorted((one for one in groups if len(one)), key=lambda one: int(one[0]))
