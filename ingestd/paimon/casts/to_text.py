"""Cast values to strings and to bytes, as in Java.

Strings longer than the target type are truncated; shorter ones are padded for CHAR and BINARY.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/schema/#update-schema
"""

import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.paimon.spec.arrow import Array
from ingestd.paimon.spec.data_types import (
    BINARY_ROOTS,
    CHARACTER_ROOTS,
    INTEGER_ROOTS,
    NESTED_ROOTS,
    TIMESTAMP_ROOTS,
    DataType,
)
from ingestd.paimon.spec.float_text import java_double, java_float
from ingestd.paimon.spec.value_text import (
    date_texts,
    decimal_texts,
    time_texts,
    timestamp_texts,
)

TEXT = DataType("STRING")
_NEVER_CUT = BINARY_ROOTS | NESTED_ROOTS


def cast_to_text(array: Array, source: DataType, target: DataType) -> Array:
    """Cast values to strings of the target's length: truncated, and padded with blanks for CHAR.

    The strings of bytes and nested values are neither truncated nor padded. Raises ValueError for
    a type without a string form, ArrowInvalid for bytes that are not UTF-8.
    """
    texts = text_of(array, source)
    if target.length is None or source.root in _NEVER_CUT:
        return texts
    cut = _compute("utf8_slice_codeunits", texts, start=0, stop=target.length)
    if target.root == "CHAR":
        return _compute("utf8_rpad", cut, width=target.length, padding=" ")
    return cut


def cast_to_bytes(array: Array, target: DataType) -> Array:
    """Cast strings or bytes to bytes of the target's length.

    Longer values are truncated; shorter values are padded with zero bytes for BINARY.
    """
    data: Array = array.cast(pa.binary())
    if target.length is None:
        return data
    length = target.length
    pad = target.root == "BINARY"
    values: Any = data.to_pylist()
    cut = [None if value is None else value[:length] for value in values]
    if pad:
        cut = [None if value is None else value.ljust(length, b"\0") for value in cut]
    return pa.array(cut, pa.binary())


def _compute(name: str, array: Array, **options: object) -> Array:
    function: Any = getattr(pc, name)
    result: Array = function(array, **options)
    return result


def text_of(array: Array, t: DataType) -> Array:
    """Return the string of each value, not truncated; null for a null value.

    Raises ValueError for a type without a string form, ArrowInvalid for bytes that are not UTF-8.
    """
    if t.root in CHARACTER_ROOTS:
        return array
    if t.root in TIMESTAMP_ROOTS:
        return _timestamps(array, t)
    if t.root == "TIME":
        return _times(array, t.precision or 0)
    if t.root in _PLAIN:
        return _PLAIN[t.root](array)
    return _nested(array, t)


def _floats(array: Array) -> Array:
    """Return the string of each float or double, with the digits and in the notation of Java.

    Each distinct value is formatted once.
    """
    single = array.type == pa.float32()
    cells = array.to_numpy(zero_copy_only=False)
    texts = {}
    for value in np.unique(cells.view(np.int32 if single else np.int64)).tolist():
        number = np.array(value, np.int32 if single else np.int64).view(cells.dtype)[()]
        texts[value] = java_float(float(number)) if single else java_double(float(number))
    keys = cells.view(np.int32 if single else np.int64).tolist()
    nulls = array.is_null().to_numpy(zero_copy_only=False)
    return pa.array([texts[key] for key in keys], pa.string(), mask=nulls)


def _timestamps(array: Array, t: DataType) -> Array:
    """Return the strings of timestamps, with at least as many fraction digits as the type has."""
    kind: Any = array.type
    width = {"ms": 3, "us": 6, "ns": 9}[kind.unit]
    least = t.precision or 0
    cells: Any = timestamp_texts(array, width, "").to_pylist()
    return pa.array([_trimmed(cell, width - least) for cell in cells], pa.string())


def _trimmed(text: str | None, most: int) -> str | None:
    """Return a timestamp without up to `most` trailing zeros, and with a blank instead of the T.

    None stays None.
    """
    if text is None:
        return None
    kept = text.rstrip("0")
    kept = text[: max(len(kept), len(text) - most)]
    return kept.removesuffix(".").replace("T", " ")


def _times(array: Array, precision: int) -> Array:
    """Return the strings of times, with `precision` fraction digits except trailing zeros.

    At least one digit stays, unless the precision is 0.
    """
    cells: Any = time_texts(array).to_pylist()
    texts = [None if cell is None else _time(cell, precision) for cell in cells]
    return pa.array(texts, pa.string())


def _time(text: str, precision: int) -> str:
    clock, _, digits = text.partition(".")
    if not precision:
        return clock
    return f"{clock}.{digits[:precision].rstrip('0') or '0'}"


_PLAIN: Mapping[str, Callable[[Array], Array]] = {
    **dict.fromkeys((*INTEGER_ROOTS, "BOOLEAN"), lambda array: array.cast(pa.string())),
    **dict.fromkeys(BINARY_ROOTS, lambda array: array.cast(pa.string())),
    **dict.fromkeys(("FLOAT", "DOUBLE"), _floats),
    "DECIMAL": decimal_texts,
    "DATE": date_texts,
}


def _nested(column: Array, t: DataType) -> Array:
    array: Any = column
    nulls = array.is_null().to_pylist()
    if t.root == "ROW":
        parts = [_cells(array.field(i), field.type) for i, field in enumerate(t.fields)]
        rows: Iterable[tuple[str, ...]] = zip(*parts, strict=True) if parts else [()] * len(array)
        texts = [f"{{{', '.join(row)}}}" for row in rows]
        return _masked(texts, nulls)
    bounds = array.offsets.to_pylist()
    if t.root == "MAP" and t.key is not None and t.value is not None:
        keys, values = _cells(array.keys, t.key), _cells(array.items, t.value)
        items = [f"{key} -> {value}" for key, value in zip(keys, values, strict=True)]
        opening, closing = "{", "}"
    elif t.root == "ARRAY" and t.element is not None:
        items, opening, closing = _cells(array.values, t.element), "[", "]"
    else:
        raise ValueError(f"{t} has no text")
    pairs = itertools.pairwise(bounds)
    lists = [f"{opening}{', '.join(items[start:end])}{closing}" for start, end in pairs]
    return _masked(lists, nulls)


def _cells(array: Array, t: DataType) -> list[str]:
    texts: Any = _compute("fill_null", text_of(array, t), fill_value="null").to_pylist()
    return list(texts)


def _masked(texts: list[str], nulls: list[bool]) -> Array:
    cells = [None if null else text for text, null in zip(texts, nulls, strict=True)]
    return pa.array(cells, pa.string())
