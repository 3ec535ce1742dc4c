"""Read the items of a few Avro arrays and maps one by one.

Reading many messages in parallel is slow if only a few messages have items left. In this case,
reading item by item is faster.
"""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from ingestd.cdc.avro.arrow_types import with_objects
from ingestd.cdc.avro.nodes import AvroNode
from ingestd.cdc.cell_budget import CellBudget

_DOUBLE, _FLOAT = struct.Struct("<d"), struct.Struct("<f")
_VARINT_BYTES = 10
KEY = AvroNode("string")
"""The node of map keys."""
Found = tuple[Any, int]


class BrokenItemError(ValueError):
    """The bytes do not match the schema."""


@dataclass(frozen=True, slots=True)
class ItemBytes:
    """The unread bytes of one message, and its remaining cell budget."""

    data: memoryview
    budget: CellBudget


def read_item(data: ItemBytes, at: int, node: AvroNode) -> Found:
    """Return the value at the offset `at`, and the offset after it.

    The Python type is that from which an array of `cdc.avro.arrow_types.storage_type` is built.
    Raises BrokenItemError if the bytes do not match the schema, and CellBudgetError if nested items
    exceed the budget.
    """
    return _READ[node.kind](data, at, node)


def _varint(data: ItemBytes, at: int) -> tuple[int, int]:
    value = shift = 0
    for byte in bytes(data.data[at : at + _VARINT_BYTES]):
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> 64:
                break
            return (value >> 1) ^ -(value & 1), at
        shift += 7
    raise BrokenItemError("a number is truncated or too long")


def _cut(data: ItemBytes, at: int, size: int) -> tuple[bytes, int]:
    if not 0 <= size <= len(data.data) - at:
        raise BrokenItemError("a value is truncated")
    return bytes(data.data[at : at + size]), at + size


def _null(data: ItemBytes, at: int, node: AvroNode) -> Found:
    return None, at


def _boolean(data: ItemBytes, at: int, node: AvroNode) -> Found:
    raw, at = _cut(data, at, 1)
    if raw[0] > 1:
        raise BrokenItemError("neither true nor false")
    return raw[0] == 1, at


def _int(data: ItemBytes, at: int, node: AvroNode) -> Found:
    value, at = _varint(data, at)
    if not -(2**31) <= value < 2**31:
        raise BrokenItemError("out of range of an int")
    return value, at


def _long(data: ItemBytes, at: int, node: AvroNode) -> Found:
    return _varint(data, at)


def _float(data: ItemBytes, at: int, node: AvroNode) -> Found:
    raw, at = _cut(data, at, 4)
    return _FLOAT.unpack(raw)[0], at


def _double(data: ItemBytes, at: int, node: AvroNode) -> Found:
    raw, at = _cut(data, at, 8)
    return _DOUBLE.unpack(raw)[0], at


def _bytes(data: ItemBytes, at: int, node: AvroNode) -> Found:
    size, at = _varint(data, at)
    return _cut(data, at, size)


def _string(data: ItemBytes, at: int, node: AvroNode) -> Found:
    raw, at = _bytes(data, at, node)
    try:
        return raw.decode(), at
    except UnicodeDecodeError as error:
        raise BrokenItemError(f"a text is not UTF-8: {error}") from error


def _fixed(data: ItemBytes, at: int, node: AvroNode) -> Found:
    return _cut(data, at, node.size)


def _choice(data: ItemBytes, at: int, count: int) -> tuple[int, int]:
    number, at = _varint(data, at)
    if not 0 <= number < count:
        raise BrokenItemError(f"{number} is not the index of a symbol or branch")
    return number, at


def _enum(data: ItemBytes, at: int, node: AvroNode) -> Found:
    number, at = _choice(data, at, len(node.names))
    return node.names[number], at


def _record(data: ItemBytes, at: int, node: AvroNode) -> Found:
    fields = {}
    for name, child in zip(node.names, node.children, strict=True):
        fields[name], at = read_item(data, at, child)
    return fields, at


def _nullable(data: ItemBytes, at: int, node: AvroNode) -> Found:
    number, at = _choice(data, at, len(node.children))
    return read_item(data, at, node.children[number])


def _union(data: ItemBytes, at: int, node: AvroNode) -> Found:
    number, at = _choice(data, at, len(node.children))
    child = node.children[number]
    value, at = read_item(data, at, child)
    if child.kind == "union" or value is None:
        return value, at
    return msgspec.json.encode(with_objects(value, child)).decode(), at


def _array(data: ItemBytes, at: int, node: AvroNode) -> Found:
    elements: list[Any] = []
    while True:
        count, at = next_block(data, at, node.children)
        if not count:
            return elements, at
        for _ in range(count):
            item, at = read_item(data, at, node.children[0])
            elements.append(item)


def _map(data: ItemBytes, at: int, node: AvroNode) -> Found:
    entries: list[tuple[str, Any]] = []
    while True:
        count, at = next_block(data, at, (KEY, *node.children))
        if not count:
            return entries, at
        for _ in range(count):
            key, at = _string(data, at, node)
            value, at = read_item(data, at, node.children[0])
            entries.append((key, value))


def next_block(data: ItemBytes, at: int, parts: tuple[AvroNode, ...]) -> tuple[int, int]:
    """Return the number of items in the next block (0 at the end), and the offset after its header.

    `parts` are the nodes of an item: the element of an array, or key and value of a map. Raises
    BrokenItemError if a block has more items than bytes (unless items take no bytes), and
    CellBudgetError if the items exceed the budget.
    """
    count, at = _varint(data, at)
    if count < 0:
        _, at = _varint(data, at)
        count = -count
    if count > len(data.data) - at and not without_bytes(parts):
        raise BrokenItemError("a block is longer than the message")
    data.budget.spend(count * cells_of(parts))
    return count, at


def without_bytes(parts: tuple[AvroNode, ...]) -> bool:
    """Return whether items with these parts take no bytes in a message."""
    return all(child.has_no_bytes for child in parts)


def cells_of(parts: tuple[AvroNode, ...]) -> int:
    """Return the number of cells of an item with these parts."""
    return sum(child.cells for child in parts)


_READ: Mapping[str, Callable[[ItemBytes, int, AvroNode], Found]] = {
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
