"""Decode binary Protobuf messages into Python values, one message at a time.

Fields that are not in the schema are skipped. As the specification requires, the last value is used
if a field that is not repeated, or fields of a oneof, occur several times, and inner messages of
one field are merged. A field of the schema with another wire type is invalid. Every byte of a
message is read once for each level of nesting. Each field of an inner message, present or not, each
list element, and each key and value of a map counts as a cell.
Specification: https://protobuf.dev/programming-guides/encoding/
"""

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ingestd.cdc.cell_budget import CellBudget
from ingestd.cdc.columns.raw_cells import short_single
from ingestd.cdc.protobuf.proto_schema import SCALARS, WELL_KNOWN, ProtoField, ProtoTypes

_VARINT, _FIXED64, _SIZED, _GROUP, _GROUP_END, _FIXED32 = range(6)
_LARGEST_NUMBER = 2**29 - 1
_MAX_DEPTH = 64
_WIRE_OF: Mapping[str, int] = {
    **dict.fromkeys(("double", "fixed64", "sfixed64"), _FIXED64),
    **dict.fromkeys(("float", "fixed32", "sfixed32"), _FIXED32),
    **dict.fromkeys(("string", "bytes"), _SIZED),
}


class WireError(ValueError):
    """The bytes are not a valid message of the expected Protobuf type."""


def _narrow(value: int) -> int:
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _zigzag(value: int) -> int:
    return (value >> 1) ^ -(value & 1)


_VARINTS: Mapping[str, Callable[[int], Any]] = {
    "int32": _narrow,
    "int64": _signed,
    "uint32": lambda value: value & 0xFFFFFFFF,
    "uint64": lambda value: value,
    "sint32": lambda value: _zigzag(value & 0xFFFFFFFF),
    "sint64": _zigzag,
    "bool": bool,
}
_FIXED: Mapping[str, struct.Struct] = {
    "double": struct.Struct("<d"),
    "fixed64": struct.Struct("<Q"),
    "sfixed64": struct.Struct("<q"),
    "float": struct.Struct("<f"),
    "fixed32": struct.Struct("<I"),
    "sfixed32": struct.Struct("<i"),
}
_DEFAULTS: Mapping[str, Any] = {
    **dict.fromkeys(SCALARS, 0),
    **dict.fromkeys(("double", "float"), 0.0),
    "bool": False,
    "string": "",
    "bytes": b"",
}


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the unsigned 64-bit integer at the offset `at`, and the offset after it.

    Raises WireError if the integer is truncated or too long.
    """
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise WireError("a number is truncated or too long")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7


class MessageReader:
    """A decoder of Protobuf messages whose types are declared in one schema."""

    def __init__(self, types: ProtoTypes) -> None:
        self._types = types
        self._fields: dict[str, dict[int, ProtoField]] = {}

    def fields_of(self, message: str) -> Mapping[int, ProtoField]:
        """Return the fields of a message type by number.

        `message` is the full name of a type that the schema declares, or of a well-known type. The
        result is empty for any other type.
        """
        by_number = self._fields.get(message)
        if by_number is None:
            declared = self._types.messages.get(message) or WELL_KNOWN.get(message, ())
            by_number = self._fields[message] = {field.number: field for field in declared}
        return by_number

    def read(
        self, message: str, data: bytes, at: int = 0, *, size: int | None = None
    ) -> dict[str, Any]:
        """Return the values of a message by field name.

        An absent field is None or the default of its type; an absent list or map is empty. The
        message starts at the offset `at` of `data`. Its cell budget is the budget of a message of
        `size` bytes (None: the size of `data`). Raises WireError if the message is invalid, and
        CellBudgetError if it exceeds its budget.
        """
        budget = CellBudget(len(data) if size is None else size)
        return _Reading(self._types, self.fields_of, budget).message(message, data, at, 0)


class _Reading:
    """The state of decoding one message, including its inner messages."""

    def __init__(
        self,
        types: ProtoTypes,
        fields_of: Callable[[str], Mapping[int, ProtoField]],
        budget: CellBudget,
    ) -> None:
        self._types = types
        self._fields_of = fields_of
        self._budget = budget

    def message(
        self,
        message: str,
        data: bytes,
        at: int,
        depth: int,
        earlier: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Return the values of a message by field name.

        If `earlier` has the values of an earlier message of the same field, they are updated and
        returned. Raises the errors of `MessageReader.read`.
        """
        if depth > _MAX_DEPTH:
            raise WireError("the message is nested too deeply")
        fields = self._fields_of(message)
        if depth:
            self._budget.spend(1 + len(fields))
        values = earlier
        if values is None:
            values = {field.name: self._absent(field) for field in fields.values()}
        for number, wire, raw in _fields(data, at):
            declaration = fields.get(number)
            if declaration is not None:
                for other in _others_of_oneof(declaration, fields):
                    values[other.name] = None
                self._put(values, declaration, wire, raw, depth)
        return values

    def _absent(self, field: ProtoField) -> Any:  # noqa: ANN401  (any value)
        if field.key_type is not None:
            return {}
        if field.repeated:
            return []
        if field.has_presence or field.type_name in self._types.messages or self._is_known(field):
            return None
        if field.type_name in self._types.enums:
            return self._enum(field.type_name, 0)
        return _DEFAULTS[field.type_name]

    def _is_known(self, field: ProtoField) -> bool:
        return field.type_name not in SCALARS and field.type_name not in self._types.enums

    def _put(
        self,
        values: dict[str, Any],
        field: ProtoField,
        wire: int,
        raw: Any,  # noqa: ANN401
        depth: int,
    ) -> None:
        kind = field.type_name
        if field.key_type is not None:
            self._put_entry(values[field.name], field, raw, depth)
        elif field.repeated:
            self._budget.spend(1)
            expected = _WIRE_OF.get(kind, _VARINT if self._is_number(kind) else _SIZED)
            if wire == _SIZED and expected != _SIZED:
                values[field.name].extend(self._packed(kind, expected, raw))
            else:
                values[field.name].append(self._value(kind, wire, raw, depth))
        else:
            values[field.name] = self._value(kind, wire, raw, depth, values[field.name])

    def _put_entry(
        self,
        entries: dict[Any, Any],
        field: ProtoField,
        raw: Any,  # noqa: ANN401
        depth: int,
    ) -> None:
        if not isinstance(raw, bytes):
            raise WireError(f"field {field.name} is not a map entry")
        self._budget.spend(2)
        key_type = field.key_type or "string"
        key, value = _DEFAULTS.get(key_type, 0), None
        for number, wire, inner in _fields(raw, 0):
            if number == 1:
                key = self._value(key_type, wire, inner, depth)
            elif number == 2:
                value = self._value(field.type_name, wire, inner, depth, value)
        if key_type == "bool" and (depth or self._is_json(field.type_name)):
            key = "true" if key else "false"
        entries[key] = self._default(field.type_name, depth) if value is None else value

    def _default(self, kind: str, depth: int) -> Any:  # noqa: ANN401
        """Return the value of a map entry without a value: a default or an empty message."""
        absent = ProtoField("value", 2, kind, has_presence=False)
        value = self._absent(absent)
        return self.message(kind, b"", 0, depth + 1) if value is None else value

    def _is_json(self, kind: str) -> bool:
        """Return whether values of a type become JSON text, in which all keys are texts."""
        return not (kind in SCALARS or kind in self._types.enums or kind in WELL_KNOWN)

    def _is_number(self, kind: str) -> bool:
        return kind in _VARINTS or kind in self._types.enums

    def _packed(self, kind: str, wire: int, raw: bytes) -> list[Any]:
        numbers, at = [], 0
        while at < len(raw):
            self._budget.spend(1)
            number, at = _raw(raw, at, wire)
            numbers.append(self._value(kind, wire, number, 0))
        return numbers

    def _value(
        self,
        kind: str,
        wire: int,
        raw: Any,  # noqa: ANN401
        depth: int,
        earlier: Any = None,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        """Convert a raw value with the wire type `wire` to a value of the type `kind`.

        An inner message is merged into the `earlier` value. Raises WireError if the value is
        invalid.
        """
        expected = _WIRE_OF.get(kind, _VARINT if self._is_number(kind) else _SIZED)
        if wire != expected:
            raise WireError(f"a {kind} has the wire type {wire}")
        if kind in _VARINTS:
            return _VARINTS[kind](raw)
        if kind == "float":
            return short_single(_FIXED[kind].unpack(raw)[0])
        if kind in _FIXED:
            return _FIXED[kind].unpack(raw)[0]
        if kind == "bytes":
            return raw
        if kind == "string":
            return _text(raw)
        if kind in self._types.enums:
            return self._enum(kind, _narrow(raw))
        return self.message(kind, raw, 0, depth + 1, earlier)

    def _enum(self, kind: str, number: int) -> str:
        return self._types.enums[kind].get(number, str(number))


def _others_of_oneof(field: ProtoField, fields: Mapping[int, ProtoField]) -> Iterable[ProtoField]:
    if field.oneof is None:
        return ()
    return (other for other in fields.values() if other.oneof == field.oneof and other != field)


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise WireError(f"a text is not UTF-8: {error}") from error


def _fields(data: bytes, at: int) -> Iterator[tuple[int, int, Any]]:
    """Yield the number, the wire type and the raw value of each field; a group has the value None.

    Raises WireError if the message is invalid.
    """
    while at < len(data):
        number, wire, at = _tag(data, at)
        if wire == _GROUP:
            raw, at = None, _after_group(data, at, number)
        else:
            raw, at = _raw(data, at, wire)
        yield number, wire, raw


def _tag(data: bytes, at: int) -> tuple[int, int, int]:
    tag, at = read_varint(data, at)
    if not 0 < tag >> 3 <= _LARGEST_NUMBER:
        raise WireError(f"field number {tag >> 3} is invalid")
    return tag >> 3, tag & 7, at


def _after_group(data: bytes, at: int, number: int) -> int:
    """Return the offset after the group with the field number `number`.

    The offset `at` is just after the tag that starts the group. Raises WireError if the group is
    invalid.
    """
    started = [number]
    while started:
        number, wire, at = _tag(data, at)
        if wire == _GROUP:
            started.append(number)
        elif wire != _GROUP_END:
            _, at = _raw(data, at, wire)
        elif started.pop() != number:
            raise WireError(f"group {number} ends without a start")
    return at


def _raw(data: bytes, at: int, wire: int) -> tuple[Any, int]:
    """Return the raw value at the offset `at`, and the offset after it.

    Raises WireError if the value is truncated, or the wire type is not supported.
    """
    if wire == _VARINT:
        return read_varint(data, at)
    if wire == _SIZED:
        size, at = read_varint(data, at)
    elif wire in (_FIXED32, _FIXED64):
        size = 4 if wire == _FIXED32 else 8
    else:
        raise WireError(f"wire type {wire} is not supported")
    if size > len(data) - at:
        raise WireError("the message is truncated")
    return data[at : at + size], at + size
