"""Encode rows as canonical JSON lines, as printed by `ingestd read`.

Each row is one object with the columns in order. Integers and booleans are JSON numbers and
booleans; floats are as Java prints doubles, NaN and Infinity as strings; decimals as strings with
their full scale; binaries as hex; dates, times and timestamps as ISO 8601 strings with as many
digits of the fraction as the type has (times: 3) and Z for local time zones; a MAP or MULTISET as a
list of pairs ordered by the key's text; a VARIANT as an object with its own JSON as text. Whole
columns are converted to text, and then joined to lines.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.paimon.casts.java_double import java_double
from ingestd.paimon.casts.json_text import ESCAPED_RE2, quoted
from ingestd.paimon.casts.value_text import (
    date_texts,
    decimal_texts,
    time_texts,
    timestamp_texts,
)
from ingestd.paimon.casts.variant_text import variant_text
from ingestd.paimon.spec.arrow import MULTISET_COUNT, Array, Column
from ingestd.paimon.spec.data_types import (
    BINARY_ROOTS,
    CHARACTER_ROOTS,
    INTEGER_ROOTS,
    TIMESTAMP_ROOTS,
    DataField,
    DataType,
)

_Item = TypeVar("_Item")


def json_lines(rows: pa.Table, fields: Sequence[DataField]) -> list[str]:
    """Return one JSON line per row, in the order of the rows.

    `fields` are the columns with their Paimon types.
    """
    if rows.num_rows == 0:
        return []
    arrays = [_whole(rows.column(field.name)) for field in fields]
    return _strings(_objects(arrays, fields, rows.num_rows))


def sorted_json_lines(rows: pa.Table, fields: Sequence[DataField]) -> list[str]:
    """Return the lines of `json_lines` in their canonical order."""
    return sort_lines(json_lines(rows, fields))


def sort_lines(lines: Iterable[str]) -> list[str]:
    """Return lines ordered by their UTF-16 code units, as Java compares strings."""
    return sorted(lines, key=utf16)


def utf16(text: str) -> bytes:
    """Return the UTF-16 code units of a text, the sort key of lines and of map keys."""
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
    if t.root in BINARY_ROOTS:
        return _mapped(array, lambda value: f'"{value.hex()}"')
    if t.root == "VARIANT":
        return _mapped(array, _variant)
    if t.root in _ROOTS:
        return _ROOTS[t.root](array)
    return _nested_texts(array, t)


def _string_texts(array: Array) -> Array:
    if pc.any(pc.match_substring_regex(array, ESCAPED_RE2)).as_py():
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
