"""The binary protocol of Thrift: values with their types, calls and replies.

Specification: https://github.com/apache/thrift/blob/master/doc/specs/thrift-binary-protocol.md

A structure maps field ids to values. Values are transmitted with their types, so that a structure
is decoded without its definition, and sent back with all fields that a newer server has added.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, BinaryIO, TypeAlias

_VERSION = 0x80010000
_CALL, _REPLY, _EXCEPTION = 1, 2, 3
_STOP = 0
_MAX_BYTES = 1 << 30


class Kind(IntEnum):
    """The types of Thrift values, by their codes in the binary protocol."""

    BOOL = 2
    BYTE = 3
    DOUBLE = 4
    I16 = 6
    I32 = 8
    I64 = 10
    TEXT = 11
    STRUCT = 12
    MAP = 13
    SET = 14
    LIST = 15


_NUMBERS: Mapping[Kind, struct.Struct] = {
    Kind.BOOL: struct.Struct(">?"),
    Kind.BYTE: struct.Struct(">b"),
    Kind.DOUBLE: struct.Struct(">d"),
    Kind.I16: struct.Struct(">h"),
    Kind.I32: struct.Struct(">i"),
    Kind.I64: struct.Struct(">q"),
}


class ThriftError(Exception):
    """A message is incomplete, is not of this protocol, or reports that the call is invalid."""


@dataclass(frozen=True, slots=True)
class Items:
    """The content of a Thrift list or set: contents of one kind."""

    kind: Kind
    contents: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Entries:
    """The content of a Thrift map: keys and values, each of one kind."""

    key_kind: Kind
    value_kind: Kind
    contents: Mapping[Any, Any]


@dataclass(frozen=True, slots=True)
class Value:
    """A Thrift value with its kind.

    The content is a bool, an int, a float, a str (bytes that are not UTF-8 are surrogates), a
    `Struct`, `Items` or `Entries`.
    """

    kind: Kind
    content: Any


Struct: TypeAlias = Mapping[int, Value]
"""The set fields of a structure by id."""


def boolean(content: bool) -> Value:
    """Build a Thrift boolean."""
    return Value(Kind.BOOL, content)


def i32(content: int) -> Value:
    """Build a Thrift number of 32 bits, which may also be the value of an enumeration."""
    return Value(Kind.I32, content)


def i64(content: int) -> Value:
    """Build a Thrift number of 64 bits."""
    return Value(Kind.I64, content)


def text(content: str) -> Value:
    """Build a Thrift text."""
    return Value(Kind.TEXT, content)


def structure(content: Struct) -> Value:
    """Build a Thrift structure."""
    return Value(Kind.STRUCT, content)


def texts(*contents: str) -> Value:
    """Build a Thrift list of texts."""
    return Value(Kind.LIST, Items(Kind.TEXT, contents))


def structures(*contents: Struct) -> Value:
    """Build a Thrift list of structures."""
    return Value(Kind.LIST, Items(Kind.STRUCT, contents))


def text_map(contents: Mapping[str, str]) -> Value:
    """Build a Thrift map of texts to texts."""
    return Value(Kind.MAP, Entries(Kind.TEXT, Kind.TEXT, contents))


def encode_call(method: str, arguments: Struct) -> bytes:
    """Encode the Thrift message that calls a method; `arguments` is the argument structure."""
    message = bytearray(struct.pack(">I", _VERSION | _CALL))
    _write(message, Kind.TEXT, method)
    _write(message, Kind.I32, 0)
    _write(message, Kind.STRUCT, arguments)
    return bytes(message)


def read_reply(stream: BinaryIO) -> Struct:
    """Read the reply to a call, and return its structure.

    Field 0 has the result, another field a declared exception. Raises ThriftError if the reply is
    invalid or incomplete, or if the server does not know the method.
    """
    (header,) = struct.unpack(">I", _exactly(stream, 4))
    if header & 0xFFFF0000 != _VERSION:
        raise ThriftError("the server does not answer in the binary protocol without frames")
    _read(stream, Kind.TEXT)
    _read(stream, Kind.I32)
    result: Struct = _read(stream, Kind.STRUCT)
    if header & 0xFF == _EXCEPTION:
        reason = result.get(1, text("the server reports no reason")).content
        raise ThriftError(reason)
    if header & 0xFF != _REPLY:
        raise ThriftError(f"the message of type {header & 0xFF} is not a reply")
    return result


def _write(out: bytearray, kind: Kind, content: Any) -> None:  # noqa: ANN401  (by kind)
    if kind in _NUMBERS:
        out += _NUMBERS[kind].pack(content)
    elif kind is Kind.TEXT:
        data = content.encode("utf-8", "surrogateescape")
        out += struct.pack(">i", len(data)) + data
    elif kind is Kind.STRUCT:
        for field_id, value in content.items():
            out += struct.pack(">bh", value.kind, field_id)
            _write(out, value.kind, value.content)
        out.append(_STOP)
    elif kind is Kind.MAP:
        out += struct.pack(">bbi", content.key_kind, content.value_kind, len(content.contents))
        for key, value in content.contents.items():
            _write(out, content.key_kind, key)
            _write(out, content.value_kind, value)
    else:
        out += struct.pack(">bi", content.kind, len(content.contents))
        for item in content.contents:
            _write(out, content.kind, item)


def _read(stream: BinaryIO, kind: Kind) -> Any:  # noqa: ANN401  (by kind)
    if kind in _NUMBERS:
        number = _NUMBERS[kind]
        return number.unpack(_exactly(stream, number.size))[0]
    if kind is Kind.TEXT:
        return _exactly(stream, _size(stream)).decode("utf-8", "surrogateescape")
    if kind is Kind.STRUCT:
        return _read_struct(stream)
    if kind is Kind.MAP:
        key_code, value_code = _exactly(stream, 2)
        size = _size(stream)
        if not size:  # whose kinds are not significant
            return Entries(Kind.TEXT, Kind.TEXT, {})
        kinds = _kind(key_code), _kind(value_code)
        contents = {_read(stream, kinds[0]): _read(stream, kinds[1]) for _ in range(size)}
        return Entries(*kinds, contents)
    item_kind = _kind(_exactly(stream, 1)[0])
    size = _size(stream)
    return Items(item_kind, tuple(_read(stream, item_kind) for _ in range(size)))


def _read_struct(stream: BinaryIO) -> Struct:
    fields: dict[int, Value] = {}
    while (code := _exactly(stream, 1)[0]) != _STOP:
        kind = _kind(code)
        (field_id,) = struct.unpack(">h", _exactly(stream, 2))
        fields[field_id] = Value(kind, _read(stream, kind))
    return fields


def _kind(code: int) -> Kind:
    try:
        return Kind(code)
    except ValueError as error:
        raise ThriftError(f"the message contains the unknown type {code}") from error


def _size(stream: BinaryIO) -> int:
    (size,) = struct.unpack(">i", _exactly(stream, 4))
    if not 0 <= size <= _MAX_BYTES:
        raise ThriftError(f"the message contains a value of {size} bytes")
    return int(size)


def _exactly(stream: BinaryIO, size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise ThriftError("the server closed the connection")
    return data
