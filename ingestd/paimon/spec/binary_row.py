"""Encode and decode BinaryRow, the byte layout of partitions, keys, column bounds and bucket keys.

Values in Python: int for integers, DATE (days), TIME (milliseconds of the day) and timestamps (in
the unit of their Arrow type: ms up to precision 3, us up to 6, ns above), Decimal, str, bytes,
bool, float; a list for ARRAY, pairs for MAP and MULTISET, a tuple for ROW, (value, metadata) for
VARIANT. Whole columns are hashed in `bucket`.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/manifest/#binaryrow
"""

import math
import struct
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from ingestd.errors import FormatError
from ingestd.paimon.spec.data_types import (
    BINARY_ROOTS,
    CHARACTER_ROOTS,
    TIMESTAMP_ROOTS,
    DataType,
    RowKind,
)
from ingestd.paimon.spec.decimal_digits import minimal_bytes, unscaled

Key = tuple[object, ...]
_Cell = Any

EMPTY_ROW = bytes(12)
"""A serialized row without fields."""

COMPACT_DECIMAL_PRECISION = 18
COMPACT_TIMESTAMP_PRECISION = 3
INLINE_BYTES = 7
"""Strings and bytes up to this length are stored in the slot itself."""
DECIMAL_RESERVED = 16

FIXED_FORMATS: Mapping[str, str] = {
    "BOOLEAN": "<?", "TINYINT": "<b", "SMALLINT": "<h", "INT": "<i", "DATE": "<i",
    "TIME": "<i", "BIGINT": "<q", "FLOAT": "<f", "DOUBLE": "<d",
}  # fmt: skip
_LONG = struct.Struct("<q")
_SLOT = struct.Struct("<Q")
_INT = struct.Struct("<i")
_COUNT = DataType("INT", nullable=False)
"""Type of the count that a MULTISET maps each element to."""
_ARITY = struct.Struct(">i")
_HEADER_BITS = 8


def null_area_size(arity: int) -> int:
    """Return the size in bytes of the row kind and the null bits of a row of `arity` fields.

    It is 8 for up to 56 fields.
    """
    return (arity + 63 + _HEADER_BITS) // 64 * 8


def is_compact(t: DataType) -> bool:
    """Return whether a type is compact.

    All types are, except a DECIMAL of more than 18 digits and a timestamp of more than 3 digits.
    Values of these types are always stored in the variable-length part, where even a null takes
    space.
    """
    if t.root == "DECIMAL":
        return (t.precision or 0) <= COMPACT_DECIMAL_PRECISION
    return t.root not in TIMESTAMP_ROOTS or (t.precision or 0) <= COMPACT_TIMESTAMP_PRECISION


def ticks_per_milli(t: DataType) -> int:
    """Return the number of Arrow units in a millisecond for a timestamp of more than 3 digits.

    It is 1,000 (microseconds) for up to 6 digits, and 1,000,000 (nanoseconds) for more.
    """
    return 1000 if (t.precision or 0) <= 6 else 1_000_000


class _Buffer:
    """A row being encoded: slots of fixed size, and a variable-length part that grows."""

    __slots__ = ("slots", "tail")

    def __init__(self, size: int) -> None:
        self.slots = bytearray(size)
        self.tail = bytearray()

    def put(self, offset: int, data: bytes) -> None:
        self.slots[offset : offset + len(data)] = data

    def refer(self, offset: int, low: int, data: bytes, reserve: int = 0) -> None:
        """Append data to the variable-length part, and store its position and `low` in the slot.

        `low` is usually the length. The data takes at least `reserve` bytes.
        """
        position = len(self.slots) + len(self.tail)
        self.put(offset, _SLOT.pack(position << 32 | low))
        size = max(reserve, (len(data) + 7) // 8 * 8)
        self.tail += data.ljust(size, b"\0")

    def bytes(self) -> bytes:
        return bytes(self.slots + self.tail)


def encode_row(types: Sequence[DataType], values: Sequence[object]) -> bytes:
    """Return the encoded row, with the row kind +I, without its arity: the form that is hashed.

    Raises ValueError if a value does not match its type.
    """
    arity, start = len(types), null_area_size(len(types))
    buffer = _Buffer(start + 8 * arity)
    buffer.slots[0] = RowKind.INSERT
    try:
        for i, (t, value) in enumerate(zip(types, values, strict=True)):
            if value is None:
                bit = i + _HEADER_BITS
                buffer.slots[bit // 8] |= 1 << (bit % 8)
                _write_null(buffer, start + 8 * i, t)
            else:
                _write_value(buffer, start + 8 * i, t, value)
    except (struct.error, TypeError, OverflowError, AttributeError) as error:
        raise ValueError(f"{values!r} are no values of {[str(t) for t in types]}") from error
    return buffer.bytes()


def serialize_row(types: Sequence[DataType], values: Sequence[object]) -> bytes:
    """Return the row as stored in manifests: the number of fields (big-endian), then the row.

    Raises ValueError if a value does not match its type.
    """
    return _ARITY.pack(len(types)) + encode_row(types, values)


def _write_null(buffer: _Buffer, offset: int, t: DataType) -> None:
    if not is_compact(t):
        buffer.refer(offset, 0, b"", DECIMAL_RESERVED if t.root == "DECIMAL" else 8)


def _write_value(buffer: _Buffer, offset: int, t: DataType, value: _Cell) -> None:
    if t.root in FIXED_FORMATS:
        canonical = float("nan") if value != value else value
        buffer.put(offset, struct.pack(FIXED_FORMATS[t.root], canonical))
    elif t.root in CHARACTER_ROOTS:
        _write_bytes(buffer, offset, value.encode())
    elif t.root in BINARY_ROOTS:
        _write_bytes(buffer, offset, bytes(value))
    elif t.root == "DECIMAL":
        _write_decimal(buffer, offset, t, value)
    elif t.root in TIMESTAMP_ROOTS:
        _write_timestamp(buffer, offset, t, value)
    else:
        nested = _encode_nested(t, value)
        buffer.refer(offset, len(nested), nested)


def _write_bytes(buffer: _Buffer, offset: int, data: bytes) -> None:
    if len(data) <= INLINE_BYTES:
        buffer.put(offset, data.ljust(7, b"\0") + bytes([0x80 | len(data)]))
    else:
        buffer.refer(offset, len(data), data)


def _write_decimal(buffer: _Buffer, offset: int, t: DataType, value: Decimal) -> None:
    number = unscaled(value, t.scale or 0)
    if abs(number) >= 10 ** (t.precision or 0):
        raise ValueError(f"{value} does not fit {t}")
    if is_compact(t):
        buffer.put(offset, _LONG.pack(number))
        return
    data = minimal_bytes(number)
    buffer.refer(offset, len(data), data, DECIMAL_RESERVED)


def _write_timestamp(buffer: _Buffer, offset: int, t: DataType, value: int) -> None:
    if is_compact(t):
        buffer.put(offset, _LONG.pack(value))
        return
    ticks = ticks_per_milli(t)
    millis, rest = divmod(value, ticks)
    buffer.refer(offset, rest * (1_000_000 // ticks), _LONG.pack(millis))


def _encode_nested(t: DataType, value: _Cell) -> bytes:
    if t.root == "ROW":
        names = [field.name for field in t.fields]
        cells = [value.get(name) for name in names] if isinstance(value, Mapping) else value
        return encode_row([field.type for field in t.fields], cells)
    if t.root == "VARIANT":
        parts = value.values() if isinstance(value, Mapping) else value
        content, metadata = map(bytes, parts)
        return _INT.pack(len(content)) + content + metadata
    if t.root == "ARRAY" and t.element:
        return encode_array(t.element, value)
    key, item = t.key or t.element, t.value or _COUNT
    if t.root in ("MAP", "MULTISET") and key:
        pairs = list(value.items() if isinstance(value, Mapping) else value)
        keys = encode_array(key, [map_key for map_key, _ in pairs])
        return (
            _INT.pack(len(keys)) + keys + encode_array(item, [map_value for _, map_value in pairs])
        )
    raise ValueError(f"{t} has no binary form here")


def element_size(t: DataType) -> int:
    """Return the size in bytes of an array element: 8 for variable-length types."""
    return struct.calcsize(FIXED_FORMATS.get(t.root, "<q"))


def encode_array(element: DataType, values: Sequence[object]) -> bytes:
    """Return a BinaryArray: int32 count, null bits in 4-byte words, elements, variable part.

    Raises ValueError, TypeError, AttributeError or struct.error if a value does not match the type.
    """
    header, size = 4 + (len(values) + 31) // 32 * 4, element_size(element)
    buffer = _Buffer((header + size * len(values) + 7) // 8 * 8)
    buffer.put(0, _INT.pack(len(values)))
    for i, value in enumerate(values):
        if value is None:
            buffer.slots[4 + i // 8] |= 1 << (i % 8)
        else:
            _write_value(buffer, header + size * i, element, value)
    return buffer.bytes()


def deserialize_row(types: Sequence[DataType], data: bytes) -> tuple[object, ...]:
    """Return the values of a serialized row.

    Raises FormatError if the bytes are not a row of these types.
    """
    try:
        (arity,) = _ARITY.unpack_from(data)
        if arity != len(types):
            raise ValueError(f"arity {arity} instead of {len(types)}")
        return decode_row(types, data[4:])
    except (struct.error, ValueError, IndexError) as error:
        names = ", ".join(map(str, types))
        raise FormatError(f"{len(data)} bytes are no serialized row ({names}): {error}") from error


def comparable_key(types: Sequence[DataType], key: bytes) -> Key:
    """Return a serialized key as a tuple of values that Python orders as Paimon orders keys.

    `types` are the types of the key columns. Raises FormatError if the bytes are not a row of these
    types.
    """
    return tuple(map(comparable_value, deserialize_row(types, key)))


def comparable_value(value: object) -> object:
    """Return a non-null value of a key column in a form that Python orders as Paimon does.

    Strings become their UTF-8 bytes. NaN is greater than all other numbers, and -0.0 is equal to
    0.0.
    """
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, float):
        return math.isnan(value), 0.0 if math.isnan(value) else value
    return value


def decode_row(types: Sequence[DataType], data: bytes) -> tuple[object, ...]:
    """Return the values of a row that is encoded as by `encode_row`.

    Raises ValueError or struct.error if it is invalid.
    """
    start = null_area_size(len(types))
    if len(data) < start + 8 * len(types):
        raise ValueError("too short")
    bits = int.from_bytes(data[:start], "little") >> _HEADER_BITS
    return tuple(
        None if bits >> i & 1 else _read_value(data, start + 8 * i, t) for i, t in enumerate(types)
    )


def _read_value(data: bytes, offset: int, t: DataType) -> object:
    if t.root in FIXED_FORMATS:
        value: object = struct.unpack_from(FIXED_FORMATS[t.root], data, offset)[0]
        return value
    if t.root in CHARACTER_ROOTS:
        return _read_bytes(data, offset).decode()
    if t.root in BINARY_ROOTS:
        return _read_bytes(data, offset)
    if t.root == "DECIMAL":
        return _read_decimal(data, offset, t)
    if t.root in TIMESTAMP_ROOTS:
        return _read_timestamp(data, offset, t)
    return _decode_nested(t, _referred(data, offset))


def _referred(data: bytes, offset: int) -> bytes:
    (word,) = _SLOT.unpack_from(data, offset)
    position, length = word >> 32, word & 0xFFFFFFFF
    if position + length > len(data):
        raise ValueError(f"{length} bytes at {position} are outside the row")
    return data[position : position + length]


def _read_bytes(data: bytes, offset: int) -> bytes:
    mark = data[offset + 7]
    return data[offset : offset + (mark & 0x7F)] if mark & 0x80 else _referred(data, offset)


def _read_decimal(data: bytes, offset: int, t: DataType) -> Decimal:
    if is_compact(t):
        (number,) = _LONG.unpack_from(data, offset)
    else:
        number = int.from_bytes(_referred(data, offset), "big", signed=True)
    digits = tuple(map(int, str(abs(number))))
    return Decimal((int(number < 0), digits, -(t.scale or 0)))


def _read_timestamp(data: bytes, offset: int, t: DataType) -> int:
    (word,) = _SLOT.unpack_from(data, offset)
    (millis,) = _LONG.unpack_from(data, offset if is_compact(t) else word >> 32)
    if is_compact(t):
        return int(millis)
    ticks = ticks_per_milli(t)
    rest: int = (word & 0xFFFFFFFF) // (1_000_000 // ticks)
    return int(millis) * ticks + rest


def _decode_nested(t: DataType, data: bytes) -> object:
    if t.root == "ROW":
        return decode_row([field.type for field in t.fields], data)
    if t.root == "ARRAY" and t.element:
        return decode_array(t.element, data)
    end = 4 + int(_INT.unpack_from(data)[0])
    if t.root == "VARIANT":
        return data[4:end], data[end:]
    key, item = t.key or t.element, t.value or _COUNT
    if t.root in ("MAP", "MULTISET") and key:
        keys, values = decode_array(key, data[4:end]), decode_array(item, data[end:])
        return list(zip(keys, values, strict=True))
    raise ValueError(f"{t} has no binary form here")


def decode_array(element: DataType, data: bytes) -> list[object]:
    """Return the elements of a BinaryArray. Raises ValueError or struct.error if it is invalid."""
    (count,) = _INT.unpack_from(data)
    header, size = 4 + (count + 31) // 32 * 4, element_size(element)
    if count < 0 or len(data) < header + size * count:
        raise ValueError("array too short")
    bits = int.from_bytes(data[4:header], "little")
    return [
        None if bits >> i & 1 else _read_value(data, header + size * i, element)
        for i in range(count)
    ]
