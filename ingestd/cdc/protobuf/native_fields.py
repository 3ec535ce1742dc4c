"""Read the simple fields of Protobuf messages with the native extension.

Simple fields are scalars and enums, repeated or not, timestamps, durations and wrappers. Messages
with values that the extension does not accept are decoded in Python, with the same results.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.cdc.columns.arrow_calls import (
    flattened,
    list_lengths,
    make_list,
    take_or_null,
)
from ingestd.cdc.columns.column_reader import Spec
from ingestd.cdc.native_module import native_module, to_arrow
from ingestd.cdc.protobuf.message_columns import ProtoColumn
from ingestd.cdc.protobuf.proto_schema import SCALARS, WELL_KNOWN, ProtoField, ProtoTypes
from ingestd.paimon.spec.arrow import Array, list_offsets, to_arrow_type
from ingestd.paimon.spec.row_selection import Indices

_BIG = pa.decimal128(20, 0)
_STORAGE: Mapping[str, pa.DataType] = {
    **dict.fromkeys(("int32", "sint32", "sfixed32"), pa.int32()),
    "double": pa.float64(),
    "float": pa.float32(),
    "bool": pa.bool_(),
    "string": pa.string(),
    "bytes": pa.binary(),
}
_LARGEST_NUMBER = 2**29 - 1
_UNSIGNED = frozenset({"uint64", "fixed64"})
_PER_SECOND: Mapping[str, tuple[int, int]] = {
    "google.protobuf.Timestamp": (1_000_000, 1000),
    "google.protobuf.Duration": (1_000_000_000, 1),
}
"""Units of the column per second, and nanoseconds per unit."""
_WRAPPERS = frozenset(
    name for name, fields in WELL_KNOWN.items() if [field.name for field in fields] == ["value"]
)


@dataclass(frozen=True, slots=True)
class SimpleFields:
    """The values of simple fields: arrays by field name, parallel to the messages.

    `irregular` are the indices of messages that must be decoded in Python. `residual` has for each
    message a message with the fields that are not simple, or is None if there are no such fields.
    """

    arrays: Mapping[str, Array]
    irregular: Indices
    residual: Sequence[bytes] | None


class NativeFields:
    """A reader of the simple fields of one message type that uses the native extension.

    Simple fields are those that the extension can decode. `columns` are the columns of `fields`, in
    the same order; `types` are the types of the schema.
    """

    def __init__(
        self, fields: Sequence[ProtoField], columns: Sequence[ProtoColumn], types: ProtoTypes
    ) -> None:
        pairs = zip(fields, columns, strict=True)
        simple = [(field, column) for field, column in pairs if _is_simple(field, types)]
        self._simple = sorted(simple, key=lambda pair: pair[0].number)
        self._types = types
        names = {field.name for field, _ in simple}
        oneofs: dict[str | None, int | None] = {None: None}
        for field in fields:
            oneofs.setdefault(field.oneof, len(oneofs) - 1)
        others = [field for field in fields if field.name not in names]
        self._residual = [(field.number, oneofs[field.oneof]) for field in others]
        module = native_module()
        self._reader = None
        if module is not None and all(0 < field.number <= _LARGEST_NUMBER for field in fields):
            specs = [_spec(field, types, oneofs[field.oneof]) for field, _ in self._simple]
            self._reader = module.ProtobufReader(specs, self._residual)

    def read(self, messages: Sequence[bytes], skip: int) -> SimpleFields | None:
        """Read the simple fields of messages, skipping the first `skip` bytes of each.

        Returns None if all messages must be read in Python, for example without the extension.
        """
        result = None if self._reader is None else self._reader.read(messages, skip)
        if result is None:
            return None
        structs, residual, irregular = result
        arrays = {}
        for (field, column), child in zip(self._simple, structs.children, strict=True):
            array = to_arrow(child, _storage(field, self._types))
            try:
                array = _converted(array, field, self._types)
            except pa.ArrowInvalid:  # a timestamp or duration is out of range
                return None
            target = to_arrow_type(column.column.data_type)
            arrays[field.name] = array if array.type == target else array.cast(target)
        return SimpleFields(
            arrays,
            np.flatnonzero(np.frombuffer(irregular, np.uint8)),
            cast("list[bytes]", to_arrow(residual, pa.binary()).to_pylist())
            if self._residual
            else None,
        )


def _is_simple(field: ProtoField, types: ProtoTypes) -> bool:
    kind = field.type_name
    if field.key_type is not None:
        return False
    if kind in SCALARS or kind in types.enums:
        return True
    is_known = kind in _PER_SECOND or kind in _WRAPPERS
    return is_known and kind not in types.messages and not field.repeated


def _spec(field: ProtoField, types: ProtoTypes, oneof: int | None = None) -> Spec:
    kind: object = field.type_name
    presence = field.has_presence
    if kind in types.enums:
        kind = "int32"
    elif kind not in SCALARS:
        kind = [_spec(inner, types) for inner in WELL_KNOWN[field.type_name]]
        presence = True
    return (field.number, kind, field.repeated, presence, oneof)


def _storage(field: ProtoField, types: ProtoTypes) -> pa.DataType:
    kind = field.type_name
    if kind in types.enums:
        data_type: pa.DataType = pa.int32()
    elif kind in SCALARS:
        data_type = _STORAGE.get(kind, pa.int64())
    else:
        inner = [(inner.name, _storage(inner, types)) for inner in WELL_KNOWN[kind]]
        data_type = pa.struct(inner)
    return pa.list_(data_type) if field.repeated else data_type


def _converted(array: Array, field: ProtoField, types: ProtoTypes) -> Array:
    """Convert the stored values of a field to values of its column.

    Raises ArrowInvalid if a timestamp or duration is out of range.
    """
    convert = _conversion(field.type_name, types)
    if convert is None:
        return array
    if field.repeated:
        return make_list(list_offsets(list_lengths(array)), convert(flattened(array)))
    return convert(array)


def _conversion(kind: str, types: ProtoTypes) -> Callable[[Array], Array] | None:
    if kind in types.enums:
        return partial(_names, types.enums[kind])
    if kind in _UNSIGNED:
        return _unsigned
    if kind in _PER_SECOND:
        return partial(_since_epoch, *_PER_SECOND[kind])
    if kind in _WRAPPERS:
        value = WELL_KNOWN[kind][0]
        return lambda array: _converted(flattened(array)[0], value, types)
    return None


def _names(names: Mapping[int, str], array: Array) -> Array:
    """Return the name of each number of an enum; other numbers become text."""
    encoded = array.dictionary_encode()
    numbers = cast("list[int]", encoded.dictionary.to_pylist())
    texts = [names.get(number, str(number)) for number in numbers]
    indices = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return take_or_null(pa.array(texts, pa.string()), indices)


def _unsigned(array: Array) -> Array:
    """Return integers with the same 64 bits, but without a sign."""
    return array.view(pa.uint64()).cast(_BIG)


def _since_epoch(per_second: int, nanos: int, array: Array) -> Array:
    seconds, rest = flattened(array)
    whole = pc.multiply_checked(seconds, pa.scalar(per_second, pa.int64()))
    part = pa.array(rest.fill_null(0).to_numpy().astype(np.int64) // nanos)
    total: Array = pc.add_checked(whole, part)
    return total
