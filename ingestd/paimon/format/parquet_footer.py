"""Validate Parquet footers before the library reads their statistics.

The library ends the process if a column chunk in a footer has another type than its column in the
schema of the same footer. Footers have no checksum, so a damaged footer can be in that state.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/fileformat/#parquet
"""

from typing import Any

import pyarrow as pa

_TAIL = 8
_SCHEMA, _ROW_GROUPS = 2, 4
_TYPE, _CHILDREN = 1, 5
_COLUMNS, _META = 1, 3
Struct = list[list[Any]]
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_DEEPEST = 64
_MOST_BITS = 64


def read_footer(source: pa.NativeFile) -> Struct:
    """Return the footer of an open file. Raises IndexError or ValueError if it is invalid."""
    size = source.size()
    source.seek(size - _TAIL)
    length = int.from_bytes(source.read(4), "little")
    if length > size - _TAIL:
        raise ValueError("the footer is longer than the file")
    source.seek(size - _TAIL - length)
    return ThriftReader(bytes(source.read(length))).struct()


def check_chunk_types(source: pa.NativeFile) -> None:
    """Raise ValueError if a column chunk has another type than its column.

    Raises IndexError or ValueError if the footer is invalid.
    """
    footer = read_footer(source)
    types = [
        element_type
        for element in structs(member(footer, _SCHEMA))
        if (element_type := member(element, _TYPE)) != [] and not member(element, _CHILDREN)
    ]
    for group in structs(member(footer, _ROW_GROUPS)):
        chunks = structs(member(group, _COLUMNS))
        if [member(member(chunk, _META), _TYPE) for chunk in chunks] != types:
            raise ValueError("a column chunk has another type than its column")


def member(struct: Struct, number: int) -> Any:  # noqa: ANN401  # whatever the field holds
    """Return the value of the field `number`, or [] if the structure has no such field.

    Raises ValueError if the argument is not a structure.
    """
    if not isinstance(struct, list):
        raise ValueError("a value in the footer is not a structure")
    return next((value for field, _, value in struct if field == number), [])


def structs(value: Any) -> list[Struct]:  # noqa: ANN401  # a list as it is read
    """Return the elements of a list of structures.

    Raises ValueError if the argument is not such a list.
    """
    if value == []:
        return []
    if not isinstance(value, tuple):
        raise ValueError("a value in the footer is not a list")
    return list(value[1])


class ThriftReader:
    """Decoder of one Thrift structure. Raises IndexError or ValueError if its bytes are invalid."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def struct(self, depth: int = 0) -> Struct:
        """Decode the structure at the current position into lists [field number, type, value].

        `depth` is the number of structures around it.
        """
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
    """Encode a structure that `ThriftReader` decoded."""
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
