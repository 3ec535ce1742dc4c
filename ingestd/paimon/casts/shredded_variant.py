"""Assemble VARIANT values that a Parquet file stores in parts ("shredded").

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/fileformat/#parquet

A group of `value` and `typed_value` has either an encoded value, or a value of a type: a scalar, a
list of groups, or a struct with a group for each of some fields, whose other fields are in `value`.
"""

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from ingestd.errors import FormatError
from ingestd.paimon.spec.arrow import Array

_Encoded = list[bytes | None]
_OBJECT, _ARRAY = 2, 3
_MOST_SHORT = 63
_DECIMAL_BYTES = ((9, 4, 8), (18, 8, 9), (38, 16, 10))
"""Most digits of a decimal -> its bytes, and the number of its type."""


def whole_variants(column: Array) -> Array:
    """Return shredded VARIANT values as structs of `value` and `metadata`; nulls remain null.

    Raises FormatError if a value is damaged.
    """
    group: Any = column
    arrow: Any = pa
    metadata = _child(group, "metadata").to_pylist()
    try:
        values = _values(group, metadata)
        present = group.is_valid().to_pylist()
        if any(valid and value is None for valid, value in zip(present, values, strict=True)):
            raise ValueError("a value is missing")
    except (ValueError, IndexError, KeyError) as error:
        raise FormatError(f"a shredded VARIANT is damaged: {error!r}") from error
    parts = [pa.array(values, pa.binary()), pa.array(metadata, pa.binary())]
    whole: Array = arrow.StructArray.from_arrays(
        parts, names=["value", "metadata"], mask=group.is_null()
    )
    return whole


def _child(group: Any, name: str) -> Any:  # noqa: ANN401  # a StructArray, to the stubs
    """Return a child of a struct, null where the struct is; None if it has no such child."""
    index = group.type.get_field_index(name)
    return None if index < 0 else group.flatten()[index]


def _values(group: Any, metadata: Sequence[bytes | None]) -> _Encoded:  # noqa: ANN401
    """Return the encoded values of groups, None where they are missing."""
    value, typed = _child(group, "value"), _child(group, "typed_value")
    encoded: _Encoded = [None] * len(group) if value is None else value.to_pylist()
    if typed is None:
        return encoded
    if pa.types.is_struct(typed.type):
        typed_values = _objects(typed, metadata, encoded)
    elif pa.types.is_list(typed.type):
        typed_values = _arrays(typed, metadata)
    else:
        typed_values = _scalars(typed)
    pairs = zip(typed_values, encoded, strict=True)
    return [other if own is None else own for own, other in pairs]


def _objects(typed: Any, metadata: Sequence[bytes | None], others: _Encoded) -> _Encoded:  # noqa: ANN401
    names = [typed.type.field(i).name for i in range(typed.type.num_fields)]
    columns = [_values(child, metadata) for child in typed.flatten()]
    objects: _Encoded = []
    for row, valid in enumerate(typed.is_valid().to_pylist()):
        if not valid:
            objects.append(None)
            continue
        ids = _ids(metadata[row] or b"")
        cells = {name: column[row] for name, column in zip(names, columns, strict=True)}
        fields = {name: cell for name, cell in cells.items() if cell is not None}
        fields.update(_fields(others[row], list(ids)))
        objects.append(_object([(name, ids[name], cell) for name, cell in fields.items()]))
    return objects


def _arrays(typed: Any, metadata: Sequence[bytes | None]) -> _Encoded:  # noqa: ANN401
    lengths = [0 if cells is None else cells for cells in typed.value_lengths().to_pylist()]
    parents = np.repeat(np.arange(len(typed)), lengths).tolist()
    elements = _values(typed.flatten(), [metadata[row] for row in parents])
    ends = np.cumsum(lengths)
    arrays: _Encoded = []
    for valid, end, length in zip(typed.is_valid().to_pylist(), ends, lengths, strict=True):
        cells = elements[end - length : end]
        if None in cells:
            raise ValueError("an element is missing")
        arrays.append(_array([cell or b"" for cell in cells]) if valid else None)
    return arrays


def _object(fields: list[tuple[str, int, bytes]]) -> bytes:
    ordered = sorted(fields, key=lambda field: field[0].encode("utf-16-be"))
    id_width = _width(max((number for _, number, _ in ordered), default=0))
    numbers = b"".join(number.to_bytes(id_width, "little") for _, number, _ in ordered)
    count, large = _count(len(ordered))
    width, content = _content([cell for _, _, cell in ordered])
    detail = large << 4 | id_width - 1 << 2 | width - 1
    return bytes([detail << 2 | _OBJECT]) + count + numbers + content


def _array(cells: list[bytes]) -> bytes:
    count, large = _count(len(cells))
    width, content = _content(cells)
    return bytes([(large << 2 | width - 1) << 2 | _ARRAY]) + count + content


def _count(number: int) -> tuple[bytes, int]:
    return number.to_bytes(4 if number > 255 else 1, "little"), int(number > 255)


def _content(cells: list[bytes]) -> tuple[int, bytes]:
    """Return the width of offsets, and the offsets followed by the values."""
    ends = np.cumsum([0, *map(len, cells)]).tolist()
    width = _width(ends[-1])
    return width, b"".join([*(end.to_bytes(width, "little") for end in ends), *cells])


def _width(number: int) -> int:
    return max(1, (number.bit_length() + 7) // 8)


def _number(data: bytes, start: int, width: int) -> int:
    if start + width > len(data):
        raise ValueError("a value ends too early")
    return int.from_bytes(data[start : start + width], "little")


@lru_cache(maxsize=1024)
def _ids(metadata: bytes) -> Mapping[str, int]:
    """Return the numbers of the names in the metadata of a value, in their order."""
    width = (metadata[0] >> 6) + 1
    count = _number(metadata, 1, width)
    text = 1 + (count + 2) * width
    ends = [text + _number(metadata, 1 + (i + 1) * width, width) for i in range(count + 1)]
    return {metadata[ends[i] : ends[i + 1]].decode(): i for i in range(count)}


def _fields(value: bytes | None, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Yield the fields of an encoded object (None: no object) by name, encoded."""
    if value is None:
        return
    if value[0] & 3 != _OBJECT:
        raise ValueError("fields are not in an object")
    detail = value[0] >> 2
    width, id_width = (detail & 3) + 1, (detail >> 2 & 3) + 1
    count_width = 4 if detail >> 4 & 1 else 1
    count = _number(value, 1, count_width)
    ids = 1 + count_width
    offsets = ids + count * id_width
    data = offsets + (count + 1) * width
    starts = [_number(value, offsets + i * width, width) for i in range(count + 1)]
    # Values need not be in the order of their names; each ends where another one begins.
    following = dict(zip(sorted(starts), sorted(starts)[1:], strict=False))
    for i in range(count):
        name = names[_number(value, ids + i * id_width, id_width)]
        yield name, value[data + starts[i] : data + following[starts[i]]]


def _scalars(typed: Any) -> _Encoded:  # noqa: ANN401
    """Return encoded scalars of one type."""
    kind = typed.type
    if pa.types.is_timestamp(kind):
        number = 13 if kind.tz is None else 12
        cells = typed.cast(pa.timestamp("us", kind.tz)).cast(pa.int64()).to_pylist()
        return [None if c is None else _primitive(number, struct.pack("<q", c)) for c in cells]
    if pa.types.is_date32(kind):
        cells = typed.cast(pa.int32()).to_pylist()
        return [None if c is None else _primitive(11, struct.pack("<i", c)) for c in cells]
    encode = next((encode for test, encode in _ENCODERS if test(kind)), None)
    if encode is None:
        raise ValueError(f"type {kind} is not one of a VARIANT")
    return [None if cell is None else encode(cell) for cell in typed.to_pylist()]


def _primitive(number: int, content: bytes = b"") -> bytes:
    return bytes([number << 2]) + content


def _text(text: str) -> bytes:
    data = text.encode()
    if len(data) <= _MOST_SHORT:
        return bytes([len(data) << 2 | 1]) + data
    return _primitive(16, struct.pack("<I", len(data)) + data)


def _integer(number: int) -> bytes:
    for kind, width in ((3, 1), (4, 2), (5, 4)):
        if -(1 << 8 * width - 1) <= number < 1 << 8 * width - 1:
            return _primitive(kind, number.to_bytes(width, "little", signed=True))
    return _primitive(6, number.to_bytes(8, "little", signed=True))


def _decimal(number: Decimal) -> bytes:
    sign, digits, exponent = number.as_tuple()
    unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
    size = max(len(digits), -int(exponent))
    width, kind = next((width, kind) for most, width, kind in _DECIMAL_BYTES if size <= most)
    content = bytes([-int(exponent)]) + unscaled.to_bytes(width, "little", signed=True)
    return _primitive(kind, content)


_ENCODERS: Sequence[tuple[Callable[[pa.DataType], bool], Callable[[Any], bytes]]] = (
    (pa.types.is_boolean, lambda cell: _primitive(1 if cell else 2)),
    (pa.types.is_integer, _integer),
    (pa.types.is_float32, lambda cell: _primitive(14, struct.pack("<f", cell))),
    (pa.types.is_float64, lambda cell: _primitive(7, struct.pack("<d", cell))),
    (pa.types.is_decimal, _decimal),
    (pa.types.is_string, _text),
    (pa.types.is_binary, lambda cell: _primitive(15, struct.pack("<I", len(cell)) + cell)),
)
"""Tests of Arrow types, and the functions that encode the values of such a type."""
