"""Read Avro values in Python, one by one.

Specification: https://avro.apache.org/docs/1.12.0/specification/#binary-encoding
"""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from ingestd.cdc.avro.arrow_types import json_value
from ingestd.cdc.avro.nodes import AvroNode
from ingestd.cdc.cell_budget import CellBudget

_DOUBLE, _FLOAT = struct.Struct("<d"), struct.Struct("<f")
_VARINT_BYTES = 10
ValueAndEnd = tuple[Any, int]
"""A value, and the offset after it."""


class BrokenValueError(ValueError):
    """The bytes of an Avro message do not match its schema."""


@dataclass(frozen=True, slots=True)
class MessageBytes:
    """The bytes of one Avro message, and the remaining budget of cells for its values."""

    data: bytes
    budget: CellBudget


def read_value(data: MessageBytes, at: int, node: AvroNode) -> ValueAndEnd:
    """Decode the value that starts at the offset `at`; return the value and the offset after it.

    The value has the Python type from which Arrow builds an array of the node's storage type.
    Raises BrokenValueError if the bytes do not match the schema, and CellBudgetError if items of
    arrays and maps exceed the budget.
    """
    return _READ[node.kind](data, at, node)


def _varint(data: MessageBytes, at: int) -> tuple[int, int]:
    value = shift = 0
    for byte in data.data[at : at + _VARINT_BYTES]:
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> 64:
                break
            return (value >> 1) ^ -(value & 1), at
        shift += 7
    raise BrokenValueError("a number is truncated or too long")


def _cut(data: MessageBytes, at: int, size: int) -> tuple[bytes, int]:
    if not 0 <= size <= len(data.data) - at:
        raise BrokenValueError("a value is truncated")
    return data.data[at : at + size], at + size


def _null(data: MessageBytes, at: int, node: AvroNode) -> ValueAndEnd:
    return None, at


def _boolean(data: MessageBytes, at: int, node: AvroNode) -> ValueAndEnd:
    raw, at = _cut(data, at, 1)
    if raw[0] > 1:
        raise BrokenValueError("neither true nor false")
    return raw[0] == 1, at


def _int(data: MessageBytes, at: int, node: AvroNode) -> ValueAndEnd:
    value, at = _varint(data, at)
    if not -(2**31) <= value < 2**31:
        raise BrokenValueError("out of range of an int")
    return value, at


def _long(data: MessageBytes, at: int, node: AvroNode) -> ValueAndEnd:
    return _varint(data, at)


def _float(data: MessageBytes, at: int, node: AvroNode) -> ValueAndEnd:
    raw, at = _cut(data, at, 4)
    return _FLOAT.unpack(raw)[0], at


def _double(data: MessageBytes, at: int, node: AvroNode) -> ValueAndEnd:
    raw, at = _cut(data, at, 8)
    return _DOUBLE.unpack(raw)[0], at


def _bytes(data: MessageBytes, at: int, node: AvroNode) -> ValueAndEnd:
    size, at = _varint(data, at)
    return _cut(data, at, size)


def _string(data: MessageBytes, at: int, node: AvroNode) -> ValueAndEnd:
    raw, at = _bytes(data, at, node)
    try:
        return raw.decode(), at
    except UnicodeDecodeError as error:
        raise BrokenValueError(f"a text is not UTF-8: {error}") from error


def _fixed(data: MessageBytes, at: int, node: AvroNode) -> ValueAndEnd:
    return _cut(data, at, node.size)


def _choice(data: MessageBytes, at: int, count: int) -> tuple[int, int]:
    number, at = _varint(data, at)
    if not 0 <= number < count:
        raise BrokenValueError(f"{number} is not the index of a symbol or branch")
    return number, at


def _enum(data: MessageBytes, at: int, node: AvroNode) -> ValueAndEnd:
    number, at = _choice(data, at, len(node.names))
    return node.names[number], at


def _record(data: MessageBytes, at: int, node: AvroNode) -> ValueAndEnd:
    fields = {}
    for name, child in zip(node.names, node.children, strict=True):
        fields[name], at = read_value(data, at, child)
    return fields, at


def _nullable(data: MessageBytes, at: int, node: AvroNode) -> ValueAndEnd:
    number, at = _choice(data, at, len(node.children))
    return read_value(data, at, node.children[number])


def _union(data: MessageBytes, at: int, node: AvroNode) -> ValueAndEnd:
    number, at = _choice(data, at, len(node.children))
    child = node.children[number]
    value, at = read_value(data, at, child)
    if child.kind == "union" or value is None:
        return value, at
    return msgspec.json.encode(json_value(value, child)).decode(), at


def _array(data: MessageBytes, at: int, node: AvroNode) -> ValueAndEnd:
    elements: list[Any] = []
    while True:
        count, at = _next_block(data, at, node)
        if not count:
            return elements, at
        for _ in range(count):
            item, at = read_value(data, at, node.item)
            elements.append(item)


def _map(data: MessageBytes, at: int, node: AvroNode) -> ValueAndEnd:
    entries: list[tuple[str, Any]] = []
    while True:
        count, at = _next_block(data, at, node)
        if not count:
            return entries, at
        for _ in range(count):
            key, at = _string(data, at, node)
            value, at = read_value(data, at, node.item)
            entries.append((key, value))


def _next_block(data: MessageBytes, at: int, node: AvroNode) -> tuple[int, int]:
    """Return the number of items in the next block (0 at the end), and the offset after its header.

    Raises BrokenValueError if a block has more items than bytes (unless items take no bytes), and
    CellBudgetError if the items exceed the budget.
    """
    count, at = _varint(data, at)
    if count < 0:
        _, at = _varint(data, at)
        count = -count
    if count > len(data.data) - at and not (node.kind == "array" and node.item.has_no_bytes):
        raise BrokenValueError("a block is longer than the message")
    data.budget.spend(count * cells_per_item(node))
    return count, at


def cells_per_item(node: AvroNode) -> int:
    """Return the number of cells that an item of an array, or an entry of a map, takes.

    `node` is the type of the array or map.
    """
    return node.item.cells + (node.kind == "map")


_READ: Mapping[str, Callable[[MessageBytes, int, AvroNode], ValueAndEnd]] = {
    "null": _null,
    "boolean": _boolean,
    "int": _int,
    "long": _long,
    "float": _float,
    "double": _double,
    "bytes": _bytes,
    "string": _string,
    "fixed": _fixed,
    "enum": _enum,
    "record": _record,
    "nullable": _nullable,
    "union": _union,
    "array": _array,
    "map": _map,
}
