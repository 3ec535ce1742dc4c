"""Readers of columns whose values are strings in the format of the source database.

All values of a column become one Arrow string array, which is cast as a whole. MySQL geometries
(four bytes of SRID, then well-known binary) become GeoJSON.
"""

import json
import struct
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import UNSET

from ingestd.cdc.columns import unavailable
from ingestd.cdc.columns.column_reader import (
    ColumnEncoding,
    ColumnReader,
    Finish,
    Value,
    Values,
    decimal_numbers,
    from_present,
)
from ingestd.cdc.columns.json_inference import NUMBER_KINDS, TEXT_KINDS, JsonKinds
from ingestd.cdc.columns.raw_cells import string_or_json
from ingestd.cdc.columns.temporal_columns import read_texts
from ingestd.cdc.columns.wire_column import Meaning, WireColumn
from ingestd.paimon.spec.arrow import Array, cast_exactly, new_infinities, to_arrow_type
from ingestd.paimon.spec.data_types import (
    BINARY_ROOTS,
    CHARACTER_ROOTS,
    INTEGER_ROOTS,
    TIMESTAMP_ROOTS,
    DataType,
)

_not_equal: Callable[..., Array] = pc.not_equal
_AFTER_DIGITS = 0x3A
"""The first ASCII code after the digits.

Signs and points have smaller codes, letters of hexadecimal numbers have larger codes.
"""
_ZERO_DATE = "0000-00-00"
_TEMPORAL_ROOTS = TIMESTAMP_ROOTS | {"DATE", "TIME"}


def source_text_reader(column: WireColumn, kinds: JsonKinds) -> ColumnReader:
    """Return the reader for a column whose values are text in the format of the source database.

    `kinds` are the kinds of the JSON values of the column.
    """
    numbers = column.meaning is Meaning.SOURCE_TEXT and column.data_type.root == "DECIMAL"
    if numbers and kinds <= NUMBER_KINDS | TEXT_KINDS:
        return decimal_numbers(column.data_type)
    finish = _finish(column)
    if kinds <= TEXT_KINDS:

        def build(values: list[Any]) -> Array:
            return finish(pa.array(values, pa.string()))

        encoding = ColumnEncoding(("text", ()), pa.string(), finish)
        return ColumnReader(str, from_present(build), unavailable.find_nothing, encoding)

    def build_any(values: Values) -> Array:
        return finish(pa.array([_text(value) for value in values], pa.string()))

    return ColumnReader(msgspec.Raw, build_any, unavailable.find_nothing)


def _text(value: Value) -> str | None:
    raw = b"null" if value is None or value is UNSET else bytes(value)
    return None if raw == b"null" else _BOOLEANS.get(raw) or string_or_json(raw)


_BOOLEANS = {b"true": "1", b"false": "0"}


def _finish(column: WireColumn) -> Finish:
    special = _BY_MEANING.get(column.meaning)
    if special is not None:
        return lambda texts: special(texts, column)
    data_type = column.data_type
    return lambda texts: read_source_texts(texts, data_type)


def read_source_texts(texts: Array, data_type: DataType) -> Array:
    """Convert strings in the source database's format to an array of the type.

    Raises ValueError, TypeError, ArithmeticError, RecursionError or ArrowException if a string is
    invalid.
    """
    root = data_type.root
    arrow_type = to_arrow_type(data_type)
    if root in CHARACTER_ROOTS:
        return texts
    if root in INTEGER_ROOTS:
        return _integers(texts, arrow_type)
    if root == "BOOLEAN":
        return _not_equal(_integers(texts, pa.int64()), 0)
    if root in _TEMPORAL_ROOTS:
        return _temporal(texts, data_type)
    if root in BINARY_ROOTS:
        return texts.cast(pa.binary())
    values = cast_exactly(texts, arrow_type)
    if root in ("FLOAT", "DOUBLE") and new_infinities(texts, values):
        raise OverflowError(f"out of range of {data_type}")
    return values


def _integers(texts: Array, arrow_type: pa.DataType) -> Array:
    if (_characters(texts) >= _AFTER_DIGITS).any():
        raise ValueError("not an integer")
    return texts.cast(arrow_type)


def _characters(texts: Array) -> npt.NDArray[np.uint8]:
    """Return the concatenated bytes of all strings."""
    _, offsets, data = texts.buffers()
    bounds = np.frombuffer(memoryview(offsets or b""), np.int32)[texts.offset :][: len(texts) + 1]
    if not len(bounds):
        return np.zeros(0, np.uint8)
    return np.frombuffer(memoryview(data or b""), np.uint8)[bounds[0] : bounds[-1]]


def _temporal(texts: Array, data_type: DataType) -> Array:
    """Convert strings to dates, times or timestamps.

    A zero date (0000-00-00), which MySQL allows, becomes null.
    """
    if data_type.root != "TIME":
        zero = pc.starts_with(texts, pattern=_ZERO_DATE)
        if pc.any(zero).as_py():
            texts = pc.if_else(zero, pa.scalar(None, pa.string()), texts)
        try:
            return texts.cast(to_arrow_type(data_type))
        except pa.ArrowInvalid:
            pass  # formats that Arrow does not parse
    return read_texts(texts.to_pylist(), data_type)


def _latin1(texts: Array, column: WireColumn) -> Array:
    if not (_characters(texts) >= 0x80).any():
        return texts.cast(pa.binary())
    cells = [None if text is None else text.encode("latin-1") for text in texts.to_pylist()]
    return pa.array(cells, pa.binary())


def _utf8(texts: Array, column: WireColumn) -> Array:
    return texts.cast(pa.binary())


def _bits(texts: Array, column: WireColumn) -> Array:
    if column.data_type.root == "BOOLEAN":
        return _not_equal(_integers(texts, pa.int64()), 0)
    numbers = _integers(texts, pa.uint64()).to_pylist()
    if column.data_type.root in CHARACTER_ROOTS:
        width = column.width
        return pa.array([None if n is None else f"{n:0{width}b}" for n in numbers], pa.string())
    size = (column.width + 7) // 8
    return pa.array([None if n is None else n.to_bytes(size, "big") for n in numbers], pa.binary())


def _labels(texts: Array, column: WireColumn) -> Array:
    """Replace the numbers of ENUM labels by the labels; texts that are labels are not changed.

    Number 0 is the empty label of an invalid value. Raises ValueError for an unknown label, unless
    the column has no labels.
    """
    by_number = ("", *column.labels)
    numbers = {str(number): label for number, label in enumerate(by_number)}
    encoded = texts.dictionary_encode()
    distinct = map(str, encoded.dictionary.to_pylist())
    named = [numbers.get(text, text) for text in distinct]
    unknown = set(named) - {*by_number}
    if unknown and column.labels:
        raise ValueError(f"{min(unknown)!r} is not a label of the enumeration")
    labels = pa.array(named, pa.string())
    return pa.DictionaryArray.from_arrays(encoded.indices, labels).dictionary_decode()


def _label_sets(texts: Array, column: WireColumn) -> Array:
    cache: dict[str, list[str]] = {}
    sets = [None if t is None else _chosen(t, column.labels, cache) for t in texts.to_pylist()]
    if column.data_type.root in CHARACTER_ROOTS:
        return pa.array([None if set_ is None else ",".join(set_) for set_ in sets], pa.string())
    return pa.array(sets, to_arrow_type(column.data_type))


def _chosen(text: str, labels: tuple[str, ...], cache: dict[str, list[str]]) -> list[str]:
    """Return the labels of a set. Canal sends numbers, also if the labels are digits."""
    chosen = cache.get(text)
    if chosen is None:
        bits = int(text) if text.isdecimal() and len(text) < 20 else None
        if bits is not None and not bits >> len(labels):
            chosen = [label for bit, label in enumerate(labels) if bits >> bit & 1]
        elif bits is not None and text not in labels:
            raise ValueError(f"{text} has bits for more labels than the set has")
        else:
            chosen = text.split(",") if text else []
        cache[text] = chosen
    return chosen


def _geometries(texts: Array, column: WireColumn) -> Array:
    cells = [None if text is None else geometry_json(text) for text in texts.to_pylist()]
    return pa.array(cells, pa.string())


_BY_MEANING: Mapping[Meaning, Callable[[Array, WireColumn], Array]] = {
    Meaning.LATIN1: _latin1,
    Meaning.UTF8: _utf8,
    Meaning.BIT_NUMBER: _bits,
    Meaning.ENUM: _labels,
    Meaning.LABEL_SET: _label_sets,
    Meaning.GEOMETRY: _geometries,
}
SOURCE_MEANINGS = frozenset({Meaning.SOURCE_TEXT, *_BY_MEANING})


_NAMES = {
    1: "Point",
    2: "LineString",
    3: "Polygon",
    4: "MultiPoint",
    5: "MultiLineString",
    6: "MultiPolygon",
    7: "GeometryCollection",
}
_COLLECTION = 7


def geometry_json(text: str) -> str:
    """Return GeoJSON, with the SRID, for a geometry whose bytes are the characters of `text`.

    Raises ValueError if the bytes are not a valid geometry.
    """
    data = text.encode("latin-1")
    reader = _Reader(data)
    try:
        (srid,) = struct.unpack_from("<I", data)
        geometry = reader.geometry()
    except struct.error as error:
        raise ValueError(f"not a geometry: {error}") from error
    if reader.offset != len(data):
        raise ValueError("not a geometry: bytes are left over")
    return json.dumps(geometry | {"srid": srid}, separators=(",", ":"))


class _Reader:
    """A reader of a geometry's well-known binary, which follows the four bytes of the SRID."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._order = "<"
        self.offset = 4

    def geometry(self) -> dict[str, Any]:
        """Read the next geometry, and return it as a GeoJSON object.

        Raises ValueError or struct.error if the bytes are not a valid geometry.
        """
        (order,) = self._take("B")
        self._order = "<" if order else ">"
        (kind,) = self._take("I")
        name = _NAMES.get(kind)
        if name is None:
            raise ValueError(f"not a geometry: type {kind}")
        if kind == _COLLECTION:
            return {"type": name, "geometries": [self.geometry() for _ in range(self._count())]}
        if kind > 3:
            members = [self.geometry() for _ in range(self._count())]
            if any("coordinates" not in member for member in members):
                raise ValueError("not a geometry: a collection inside of another kind")
            return {"type": name, "coordinates": [member["coordinates"] for member in members]}
        read = (self._point, self._points, self._rings)[kind - 1]
        return {"type": name, "coordinates": read()}

    def _point(self) -> list[float]:
        return [int(n) if n.is_integer() else n for n in self._take("dd")]

    def _points(self) -> list[Any]:
        return [self._point() for _ in range(self._count())]

    def _rings(self) -> list[Any]:
        return [self._points() for _ in range(self._count())]

    def _count(self) -> int:
        (count,) = self._take("I")
        if count > len(self._data):
            raise ValueError("not a geometry: more parts than bytes")
        return int(count)

    def _take(self, layout: str) -> tuple[Any, ...]:
        layout = self._order + layout
        values = struct.unpack_from(layout, self._data, self.offset)
        self.offset += struct.calcsize(layout)
        return values
