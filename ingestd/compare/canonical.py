"""Canonical texts of values in the lake. Statements in SQL compute the same texts in the database.

    integers, BOOLEAN, DECIMAL   decimal digits, `true` or `false`, the full scale
    FLOAT, DOUBLE                the bits of IEEE 754 in hexadecimal; 0 for -0, one NaN
    DATE, TIME, TIMESTAMP        days; milliseconds; units of the type since 1970, UTC
    texts                        unchanged, or normalized as `Form` describes
    bytes                        hexadecimal
    ARRAY                        its elements, each written like a cell of a row

A cell of a row is the number of its UTF-8 bytes, a colon and the text, or `-` for null, so that
rows are equal exactly if their cells are. The hash of a row is the first 60 bits of the SHA-256 of
its cells: all databases compute it, also those without MD5 (MySQL 9.6, FIPS mode).
"""

import hashlib
import itertools
import struct
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.paimon.spec.arrow import Array, to_arrow_type
from ingestd.paimon.spec.data_types import (
    BINARY_ROOTS,
    CHARACTER_ROOTS,
    INTEGER_ROOTS,
    TIMESTAMP_ROOTS,
    DataType,
)
from ingestd.paimon.spec.value_text import decimal_texts

HASH_DIGITS = 15
"""Hexadecimal digits of a hash: 60 bits, which fit into a signed integer of any database."""
PART_DIGITS = 3
"""Hexadecimal digits of a key's hash that name its hash partition, if keys have no order."""
NULL_CELL = "-"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_UNITS_OF_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_SHOWN_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}


class Form(Enum):
    """How values of a column are normalized before they are compared."""

    AS_IS = "as-is"
    PADDED = "padded"
    """Trailing blanks are removed."""
    NUMBER = "number"
    """Trailing zeros of a fraction are removed."""
    COMMAS = "commas"
    """A backslash before a comma is removed: Debezium's stream writes it, its snapshot does not."""
    UNSIGNED = "unsigned"
    """Signed 64-bit numbers are read as the unsigned numbers with the same bits."""


def canonical_texts(values: Array, t: DataType, form: Form = Form.AS_IS) -> Array:
    """Return an array of the canonical text of each value; null for null.

    `has_canonical_text` must be true for the type `t`. `form` is how texts are normalized.
    """
    if t.element is not None:
        return _array_texts(values, t.element, form)
    if t.root in CHARACTER_ROOTS or form is Form.UNSIGNED:
        return _FORMS[form](values)
    return _TEXTS[t.root](values)


def has_canonical_text(t: DataType) -> bool:
    """Return whether values of a type have canonical texts.

    A comparison leaves out columns of other types.
    """
    if t.root == "ARRAY" and t.element is not None:
        return has_canonical_text(t.element)
    return t.root in CHARACTER_ROOTS or t.root in _TEXTS


def row_cells(columns: Sequence[Array]) -> Array:
    """Return an array with the concatenated cells of each row, as bytes or text to be hashed.

    A cell is a canonical text after its length, or a mark for null. `columns` are arrays of
    canonical texts, one for each column and of the same length.
    """
    return _call("binary_join_element_wise", *map(_cells, columns), "")


def hash_of(cells: bytes) -> int:
    """Return the hash of a row or a key: an integer of 60 bits, from SHA-256 of its `cells`."""
    return int(hashlib.sha256(cells).hexdigest()[:HASH_DIGITS], 16)


def part_of(key_cells: bytes) -> str:
    """Return the hash partition of a key, three hexadecimal digits.

    `key_cells` are the concatenated cells of the key. Hash partitions divide the rows of tables
    whose keys have no common order in lake and database.
    """
    return hashlib.sha256(key_cells).hexdigest()[:PART_DIGITS]


def joined_cells(texts: Sequence[str | None]) -> bytes:
    """Return the concatenated cells of one row, given the canonical text of each column.

    A cell is `LENGTH:TEXT`, with the length in bytes, or a mark for null.
    """
    cells = (NULL_CELL if text is None else f"{len(text.encode())}:{text}" for text in texts)
    return "".join(cells).encode()


def shown_text(text: str | None, t: DataType) -> str | None:
    """Convert a canonical text of type `t` to a readable text; None for None.

    Floating-point values become decimal numbers, dates and timestamps texts in ISO 8601, arrays
    lists in brackets.
    """
    if text is None:
        return None
    if t.root in ("FLOAT", "DOUBLE"):
        code = ">f" if t.root == "FLOAT" else ">d"
        number = struct.unpack(code, bytes.fromhex(text))[0]
        return str(np.float32(number)) if t.root == "FLOAT" else repr(number)
    if t.root == "DATE" or t.root in TIMESTAMP_ROOTS:
        return _moment_text(text, t)
    if t.root == "ARRAY" and t.element is not None:
        items = [shown_text(item, t.element) for item in _split_cells(text)]
        return f"[{', '.join('null' if item is None else item for item in items)}]"
    return text


def _moment_text(text: str, t: DataType) -> str:
    """Return a date or timestamp as ISO 8601, or unchanged if it is out of Python's range."""
    try:
        if t.root == "DATE":
            return str((_EPOCH + timedelta(days=int(text))).date())
        kind: Any = to_arrow_type(t)
        seconds, rest = divmod(int(text), _UNITS_OF_SECOND[kind.unit])
        moment = (_EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat()
    except (ValueError, OverflowError):
        return text
    digits = _SHOWN_DIGITS[kind.unit]
    zone = "Z" if t.root == "TIMESTAMP_LTZ" else ""
    return f"{moment}.{rest:0{digits}d}{zone}" if digits else f"{moment}{zone}"


def _split_cells(text: str) -> list[str | None]:
    rest, cells = text.encode(), list[str | None]()
    while rest:
        if rest[:1] == NULL_CELL.encode():
            cells.append(None)
            rest = rest[1:]
            continue
        length, _, rest = rest.partition(b":")
        cells.append(rest[: int(length)].decode())
        rest = rest[int(length) :]
    return cells


def _cells(texts: Array) -> Array:
    lengths = _call("binary_length", texts).cast(pa.string())
    return _call("fill_null", _call("binary_join_element_wise", lengths, texts, ":"), NULL_CELL)


def _array_texts(values: Array, element: DataType, form: Form) -> Array:
    array: Any = values
    cells = _cells(canonical_texts(array.values, element, form)).to_pylist()
    bounds = itertools.pairwise(array.offsets.to_pylist())
    texts = ["".join(map(str, cells[start:end])) for start, end in bounds]
    return pa.array(texts, pa.string(), mask=array.is_null().to_numpy(zero_copy_only=False))


def _float_bits(values: Array) -> Array:
    numbers = values.to_numpy(zero_copy_only=False)
    single = numbers.dtype == np.float32
    # Adding 0 turns -0 into 0; every NaN becomes the one that the databases write.
    plain = np.where(np.isnan(numbers), np.array(np.nan, numbers.dtype), numbers + 0)
    width, bits = (8, np.uint32) if single else (16, np.uint64)
    texts = [f"{number:0{width}x}" for number in plain.astype(numbers.dtype).view(bits).tolist()]
    return pa.array(texts, pa.string(), mask=values.is_null().to_numpy(zero_copy_only=False))


def _numbers(values: Array) -> Array:
    kind: Any = values.type
    whole = pa.int32() if kind.bit_width == 32 else pa.int64()
    return values.cast(whole).cast(pa.string())


def _hexadecimal(values: Array) -> Array:
    cells = [None if value is None else value.hex() for value in values.to_pylist()]
    return pa.array(cells, pa.string())


def _plain_numbers(texts: Array) -> Array:
    """Return decimal numbers without trailing zeros of their fractions."""
    trimmed = _call("replace_substring_regex", texts, r"(\.\d*?)0+$", r"\1")
    return _call("replace_substring_regex", trimmed, r"\.$", "")


def _call(name: str, *arguments: object) -> Array:
    function: Callable[..., Array] = getattr(pc, name)
    return function(*arguments)


_FORMS: Mapping[Form, Callable[[Array], Array]] = {
    Form.AS_IS: lambda values: values,
    Form.PADDED: lambda values: _call("utf8_rtrim", values, " "),
    Form.NUMBER: _plain_numbers,
    Form.COMMAS: lambda values: _call("replace_substring", values, r"\,", ","),
    Form.UNSIGNED: lambda values: values.view(pa.uint64()).cast(pa.string()),
}
_TEXTS: Mapping[str, Callable[[Array], Array]] = {
    **dict.fromkeys((*INTEGER_ROOTS, "BOOLEAN"), lambda values: values.cast(pa.string())),
    **dict.fromkeys((*TIMESTAMP_ROOTS, "DATE", "TIME"), _numbers),
    **dict.fromkeys(BINARY_ROOTS, _hexadecimal),
    **dict.fromkeys(("FLOAT", "DOUBLE"), _float_bits),
    "DECIMAL": decimal_texts,
}
