"""Thrift's compact protocol, as far as footers of Parquet files need it: structures as lists.

A structure is a list of [field id, type, value]; lists are (element type, values).
"""

from typing import Any

Struct = list[list[Any]]

_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_DEEPEST = 64
_MOST_BITS = 64


class ThriftReader:
    """Reads one structure from bytes; IndexError or ValueError if they are none."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def struct(self, depth: int = 0) -> Struct:
        """The structure that begins here."""
        if depth > _DEEPEST:
            raise ValueError("nested too deep")
        fields: Struct = []
        last = 0
        while True:
            head = self._byte()
            if head == 0:
                return fields
            kind, delta = head & 15, head >> 4
            last = last + delta if delta else _unzigzag(self._varint())
            is_flag = kind in (_TRUE, _FALSE)
            fields.append([last, kind, kind == _TRUE if is_flag else self._value(kind, depth)])

    def _value(self, kind: int, depth: int) -> object:
        if kind in (_I16, _I32, _I64):
            return _unzigzag(self._varint())
        if kind == _STRUCT:
            return self.struct(depth + 1)
        if kind == _BINARY:
            return self._take(self._varint())
        if kind in (_LIST, _SET):
            return self._list(depth + 1)
        if kind in (_TRUE, _FALSE, _BYTE):
            return self._byte()
        if kind == _DOUBLE:
            return self._take(8)
        raise ValueError(f"type {kind} is not used in footers")

    def _list(self, depth: int) -> tuple[int, list[object]]:
        if depth > _DEEPEST:
            raise ValueError("nested too deep")
        head = self._byte()
        kind, count = head & 15, head >> 4
        count = self._varint() if count == 15 else count
        if count > len(self._data):
            raise ValueError(f"{count} elements do not fit")
        return kind, [self._value(kind, depth) for _ in range(count)]

    def _byte(self) -> int:
        self._at += 1
        return self._data[self._at - 1]

    def _take(self, size: int) -> bytes:
        self._at += size
        if self._at > len(self._data):
            raise ValueError(f"{size} bytes do not fit")
        return self._data[self._at - size : self._at]

    def _varint(self) -> int:
        number, shift = 0, 0
        while True:
            byte = self._byte()
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
            shift += 7
            if shift > _MOST_BITS:
                raise ValueError(f"a number of more than {_MOST_BITS} bits")


def encode_struct(fields: Struct) -> bytes:
    """The bytes of a structure as `ThriftReader` gives it."""
    out, last = bytearray(), 0
    for number, kind, value in fields:
        is_flag = kind in (_TRUE, _FALSE)
        kind = (_TRUE if value else _FALSE) if is_flag else kind
        delta = number - last
        if 0 < delta < 16:
            out.append(delta << 4 | kind)
        else:
            out.append(kind)
            out += _varint(_zigzag(number))
        last = number
        if not is_flag:
            out += _encoded(kind, value)
    out.append(0)
    return bytes(out)


def _encoded(kind: int, value: Any) -> bytes:  # noqa: ANN401  # whatever the type says
    if kind in (_I16, _I32, _I64):
        return _varint(_zigzag(value))
    if kind == _STRUCT:
        return encode_struct(value)
    if kind == _BINARY:
        return _varint(len(value)) + bytes(value)
    if kind in (_LIST, _SET):
        element, items = value
        count = len(items)
        head = bytes([count << 4 | element]) if count < 15 else bytes([0xF0 | element])
        size = b"" if count < 15 else _varint(count)
        return head + size + b"".join(_encoded(element, item) for item in items)
    return bytes(value) if kind == _DOUBLE else bytes([value])


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _zigzag(number: int) -> int:
    return number << 1 if number >= 0 else (-number << 1) - 1


def _unzigzag(number: int) -> int:
    return number >> 1 if number & 1 == 0 else -(number >> 1) - 1
