"""Encode rows as canonical JSON lines, as printed by `ingestd read`.

Each row is one JSON object with the columns in order:

* Integers and booleans are JSON numbers and booleans.
* Floats are formatted as by Java's `Double.toString`; NaN and Infinity are strings.
* Decimals are strings with their full scale; binaries are hexadecimal strings.
* Dates, times and timestamps are ISO 8601 strings. Times have 3 fraction digits, timestamps as many
  as their type has; timestamps with local time zone end with Z.
* A MAP or MULTISET is a list of pairs, ordered by the text of the key.
* A VARIANT is an object whose field `variant` has its JSON as a string.

Strings are escaped as by Java's JSON writer. Whole columns are converted to text, which is then
joined to lines.

The bytes of a VARIANT are a header (two bits for the kind, six for details) and its content; field
names are stored once, in its metadata.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/fileformat/#parquet
"""

import base64
import re
import struct
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.errors import FormatError
from ingestd.paimon.spec.arrow import MULTISET_COUNT, Array, Column
from ingestd.paimon.spec.data_types import (
    BINARY_ROOTS,
    CHARACTER_ROOTS,
    INTEGER_ROOTS,
    TIMESTAMP_ROOTS,
    DataField,
    DataType,
)
from ingestd.paimon.spec.float_text import java_double, java_float
from ingestd.paimon.spec.value_text import (
    date_texts,
    decimal_texts,
    time_texts,
    timestamp_texts,
)

_ESCAPES: Mapping[str, str] = {
    '"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r",
}  # fmt: skip
_ESCAPED = re.compile(r'["\\\x00-\x1f]')
_ESCAPED_RE2 = r'["\\\x00-\x1f]'
"""A regular expression (RE2) of the characters to escape."""


def quoted(text: str) -> str:
    """Return text as a JSON string in quotes.

    Control characters without a short escape are escaped in upper-case hexadecimal.
    """
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _escape(match: re.Match[str]) -> str:
    return _ESCAPES.get(match[0]) or f"\\u{ord(match[0]):04X}"


_Item = TypeVar("_Item")


def json_lines(rows: pa.Table, fields: Sequence[DataField]) -> list[str]:
    """Return the canonical JSON line of each row, in the order of the rows.

    `fields` are the columns to encode, with their Paimon types. Raises FormatError for an invalid
    VARIANT.
    """
    if rows.num_rows == 0:
        return []
    arrays = [_whole(rows.column(field.name)) for field in fields]
    return _strings(_objects(arrays, fields, rows.num_rows))


def sorted_json_lines(rows: pa.Table, fields: Sequence[DataField]) -> list[str]:
    """Return the canonical JSON lines of rows, ordered by their UTF-16 code units.

    `fields` are the columns to encode, with their Paimon types. Raises FormatError for an invalid
    VARIANT.
    """
    return sort_lines(json_lines(rows, fields))


def sort_lines(lines: Iterable[str]) -> list[str]:
    """Return lines ordered by their UTF-16 code units, as Java compares strings."""
    return sorted(lines, key=utf16)


def utf16(text: str) -> bytes:
    """Return a text in big-endian UTF-16: a sort key that orders texts as Java does."""
    return text.encode("utf-16-be", "surrogatepass")


def _whole(column: Column) -> Array:
    array: Any = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array


def _strings(texts: Array) -> list[str]:
    strings: Any = texts.to_pylist()
    return list(strings)


def _objects(arrays: Sequence[Array], fields: Sequence[DataField], count: int) -> Array:
    """Return the JSON object of each row; a null cell is `null`."""
    parts: list[Any] = []
    opening = "{"
    for array, field in zip(arrays, fields, strict=True):
        parts += [pa.scalar(f"{opening}{quoted(field.name)}:"), _values(array, field.type)]
        opening = ","
    # Without any column this is still one object for each row.
    start = pa.array([""] * count if parts else ["{"] * count, pa.string())
    return _joined(start, *parts, "}")


def _values(array: Array, t: DataType) -> Array:
    fill: Any = pc.fill_null
    filled: Array = fill(_texts(array, t), "null")
    return filled


def _texts(array: Array, t: DataType) -> Array:
    """Return the JSON text of each cell, or null for a null cell."""
    if t.root in CHARACTER_ROOTS:
        return _string_texts(array)
    if t.root in INTEGER_ROOTS or t.root == "BOOLEAN":
        return array.cast(pa.string())
    if t.root in TIMESTAMP_ROOTS:
        suffix = "Z" if t.root == "TIMESTAMP_LTZ" else ""
        return _in_quotes(timestamp_texts(array, t.precision or 0, suffix))
    if t.root in BINARY_ROOTS or t.root == "BLOB":
        return _mapped(array, lambda value: f'"{value.hex()}"')
    if t.root == "VARIANT":
        return _mapped(array, _variant)
    if t.root in _ROOTS:
        return _ROOTS[t.root](array)
    return _nested_texts(array, t)


def _string_texts(array: Array) -> Array:
    if pc.any(pc.match_substring_regex(array, _ESCAPED_RE2)).as_py():
        return _mapped(array, quoted)
    return _in_quotes(array)


def _in_quotes(texts: Array) -> Array:
    return _joined('"', texts, '"')


def _joined(*parts: Array | str) -> Array:
    """Concatenate strings element by element; an element is null if any of its parts is null."""
    join: Any = pc.binary_join_element_wise
    texts: Array = join(*parts, "")
    return texts


def _mapped(array: Array, convert: Callable[..., str]) -> Array:
    values = array.to_pylist()
    return pa.array([None if v is None else convert(v) for v in values], pa.string())


def _variant(parts: Mapping[str, bytes]) -> str:
    return f'{{"variant":{quoted(variant_text(parts["value"], parts["metadata"]))}}}'


def _float_texts(array: Array) -> Array:
    """Return the JSON texts of floats; each distinct value is formatted once, as this is slow."""
    # By their bits, because -0.0 equals 0.0.
    encoded: Any = array.cast(pa.float64()).view(pa.int64()).dictionary_encode()
    values = encoded.dictionary.view(pa.float64()).to_pylist()
    texts = pa.array([_json_double(value) for value in values], pa.string())
    return texts.take(encoded.indices)


def _json_double(value: float) -> str:
    text = java_double(value)
    return text if text[-1].isdigit() else f'"{text}"'


_ROOTS: Mapping[str, Callable[[Array], Array]] = {
    "FLOAT": _float_texts,
    "DOUBLE": _float_texts,
    "DECIMAL": lambda array: _in_quotes(decimal_texts(array)),
    "DATE": lambda array: _in_quotes(date_texts(array)),
    "TIME": lambda array: _in_quotes(time_texts(array)),
}


def _nested_texts(column: Array, t: DataType) -> Array:
    array: Any = column
    nulls = array.is_null().to_numpy(zero_copy_only=False)
    if t.root == "ROW":
        texts = _objects(array.flatten(), t.fields, len(array))
        hidden: Array = pc.if_else(pa.array(nulls), pa.scalar(None, pa.string()), texts)
        return hidden
    key, value = t.key or t.element, t.value or MULTISET_COUNT
    if t.root in ("MAP", "MULTISET") and key is not None:
        keys, values = _values(array.keys, key), _values(array.items, value)
        pairs = list(zip(_strings(keys), _strings(values), strict=True))
        return pa.array(_lists(array.offsets.to_pylist(), nulls, pairs, _map_text), pa.string())
    if t.element is None:
        raise ValueError(f"{t} has no JSON form here")
    elements = _strings(_values(array.values, t.element))
    return pa.array(_lists(array.offsets.to_pylist(), nulls, elements, _array_text), pa.string())


def _lists(
    ends: list[int],
    nulls: npt.NDArray[np.bool_],
    items: list[_Item],
    text: Callable[[list[_Item]], str],
) -> list[str | None]:
    """Return the text of each list, None for a null list.

    `items` are the texts of all elements, `ends` the offsets of the lists among them.
    """
    bounds = zip(nulls, ends[:-1], ends[1:], strict=True)
    return [None if null else text(items[start:end]) for null, start, end in bounds]


def _array_text(elements: list[str]) -> str:
    return f"[{','.join(elements)}]"


def _map_text(pairs: list[tuple[str, str]]) -> str:
    ordered = sorted(pairs, key=lambda pair: utf16(pair[0]))
    return _array_text([f"[{key},{value}]" for key, value in ordered])


_PRIMITIVE, _SHORT_TEXT, _ARRAY = 0, 1, 3
_DEEPEST = 150


def variant_text(value: bytes, metadata: bytes) -> str:
    """Return a VARIANT value as JSON. Raises FormatError if the bytes are invalid."""
    try:
        return _Variant(value, metadata).text(0, 0)
    except (ValueError, IndexError, struct.error, KeyError, OverflowError) as error:
        raise FormatError(f"{len(value)} bytes are no variant: {error!r}") from error


@dataclass(frozen=True, slots=True)
class _Variant:
    value: bytes
    metadata: bytes

    def text(self, at: int, depth: int) -> str:
        """Return the JSON of the value that begins at a position."""
        if depth > _DEEPEST:
            raise ValueError("nested too deep")
        kind, detail = self.value[at] & 3, self.value[at] >> 2
        if kind == _PRIMITIVE:
            return _PRIMITIVES[detail](self.value, at + 1)
        if kind == _SHORT_TEXT:
            return _quoted(_slice(self.value, at + 1, detail))
        if kind == _ARRAY:
            return f"[{','.join(self._items(at, detail, depth))}]"
        return f"{{{','.join(self._fields(at, detail, depth))}}}"

    def _items(self, at: int, detail: int, depth: int) -> Iterator[str]:
        width, count_width = (detail & 3) + 1, 4 if detail >> 2 & 1 else 1
        count = _unsigned(self.value, at + 1, count_width)
        offsets = at + 1 + count_width
        data = offsets + (count + 1) * width
        for i in range(count):
            yield self.text(data + _unsigned(self.value, offsets + i * width, width), depth + 1)

    def _fields(self, at: int, detail: int, depth: int) -> Iterator[str]:
        width, id_width = (detail & 3) + 1, (detail >> 2 & 3) + 1
        count_width = 4 if detail >> 4 & 1 else 1
        count = _unsigned(self.value, at + 1, count_width)
        ids = at + 1 + count_width
        offsets = ids + count * id_width
        data = offsets + (count + 1) * width
        for i in range(count):
            name = self._name(_unsigned(self.value, ids + i * id_width, id_width))
            position = data + _unsigned(self.value, offsets + i * width, width)
            yield f"{name}:{self.text(position, depth + 1)}"

    def _name(self, number: int) -> str:
        width = (self.metadata[0] >> 6) + 1
        count = _unsigned(self.metadata, 1, width)
        if number >= count:
            raise ValueError(f"there is no name {number}")
        start = _unsigned(self.metadata, 1 + (number + 1) * width, width)
        end = _unsigned(self.metadata, 1 + (number + 2) * width, width)
        return _quoted(_slice(self.metadata, 1 + (count + 2) * width + start, end - start))


def _slice(data: bytes, start: int, size: int) -> bytes:
    if size < 0 or start + size > len(data):
        raise ValueError(f"{size} bytes at {start} are outside the value")
    return data[start : start + size]


def _unsigned(data: bytes, start: int, width: int) -> int:
    return int.from_bytes(_slice(data, start, width), "little")


def _signed(data: bytes, start: int, width: int) -> int:
    return int.from_bytes(_slice(data, start, width), "little", signed=True)


def _quoted(text: bytes) -> str:
    return quoted(text.decode())


def _sized(data: bytes, at: int) -> bytes:
    return _slice(data, at + 4, _unsigned(data, at, 4))


def _decimal(data: bytes, at: int, width: int) -> str:
    scale, number = data[at], _signed(data, at + 1, width)
    digits = f"{abs(number):0{scale + 1}d}"
    whole, fraction = digits[: len(digits) - scale], digits[len(digits) - scale :].rstrip("0")
    return f"{'-' if number < 0 else ''}{whole}{'.' if fraction else ''}{fraction}"


def _double(data: bytes, at: int) -> str:
    (number,) = struct.unpack_from("<d", data, at)
    return _number(java_double(number))


def _float(data: bytes, at: int) -> str:
    (number,) = struct.unpack_from("<f", data, at)
    return _number(java_float(number))


def _number(text: str) -> str:
    return text if text[-1].isdigit() else f'"{text}"'


def _date(data: bytes, at: int) -> str:
    days = pa.array([_signed(data, at, 4)], pa.int32()).cast(pa.date32())
    return f'"{date_texts(days)[0].as_py()}"'


def _timestamp(data: bytes, at: int, suffix: str) -> str:
    micros = pa.array([_signed(data, at, 8)], pa.int64()).cast(pa.timestamp("us"))
    text = timestamp_texts(micros, 6, "")[0].as_py()
    return f'"{text.rstrip("0").rstrip(".").replace("T", " ")}{suffix}"'


def _integer(width: int) -> Callable[[bytes, int], str]:
    return lambda data, at: str(_signed(data, at, width))


_PRIMITIVES: Mapping[int, Callable[[bytes, int], str]] = {
    0: lambda data, at: "null",
    1: lambda data, at: "true",
    2: lambda data, at: "false",
    3: _integer(1),
    4: _integer(2),
    5: _integer(4),
    6: _integer(8),
    7: _double,
    8: lambda data, at: _decimal(data, at, 4),
    9: lambda data, at: _decimal(data, at, 8),
    10: lambda data, at: _decimal(data, at, 16),
    11: _date,
    12: lambda data, at: _timestamp(data, at, "+00:00"),
    13: lambda data, at: _timestamp(data, at, ""),
    14: _float,
    15: lambda data, at: f'"{base64.b64encode(_sized(data, at)).decode()}"',
    16: lambda data, at: _quoted(_sized(data, at)),
    20: lambda data, at: f'"{uuid.UUID(bytes=_slice(data, at, 16))}"',
}
"""Detail of a primitive's header -> function that formats the value at a position."""
