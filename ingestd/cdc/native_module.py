"""The interface to the native extension, which reads messages into columns.

For messages, only this module checks whether the extension is installed. If it is not, they are
decoded in Python, with the same results.
"""

import importlib
import logging
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Literal, Protocol, cast

import pyarrow as pa

from ingestd.cdc.columns.column_reader import Spec
from ingestd.paimon.spec.arrow import Array

_LOG = logging.getLogger(__name__)
_NAME = "ingestd_native"
_FORMAT = 7
"""The required version of the interface of the extension: readers, columns and Kafka records."""

Path = tuple[str, ...]
"""The names of nested fields, from the outermost to the innermost."""


class NativeColumn(Protocol):
    """A column of the messages as Arrow buffers, as the native extension returns it.

    `validity`, `offsets` and `data` are the buffers of an Arrow array with `nulls` nulls. A buffer
    that the encoding of the column does not use is None.
    """

    seen: int
    """The number of messages that contain the field, null or not."""
    nulls: int
    validity: Any
    offsets: Any
    data: Any
    left_out: Any
    """Indices (unsigned 32-bit integers) of rows whose value is a placeholder for an omitted one.
    """
    lacking: Any
    """Ranges of rows that lack the field.

    Pairs (start, end) of unsigned 32-bit integers; the end is exclusive.
    """
    runs: list[tuple[int, bytes | None]] | None
    """The first row and the JSON text of each run of equal values."""


Columns = Mapping[Path, NativeColumn]


class NativePlan(Protocol):
    """A native plan: the fields to read, and the structure that each message must have."""

    def read(self, texts: Sequence[bytes], prefix: bytes, suffix: bytes) -> Columns | None:
        """Read messages into columns by path, or return None if a message does not match the plan.

        Each message is preceded by `prefix` and followed by `suffix`. `texts` is a list, or a
        sequence of the extension's Kafka reader.
        """
        ...


class ArrowArray(Protocol):
    """An Arrow array of the native extension: length, null count, buffers and children."""

    length: int
    nulls: int
    buffers: Sequence[Any]
    children: "Sequence[ArrowArray]"


class NativeAvro(Protocol):
    """A native reader of Avro messages with one writer schema."""

    def read(
        self, texts: Sequence[bytes], skip: int, least: int, per_byte: int
    ) -> tuple[ArrowArray, Any] | None:
        """Return the records as structs, and a status byte for each message.

        The byte is 0 for a valid message, 1 for one that does not match the schema, and 2 for one
        that has more than `least` cells plus `per_byte` cells for each byte. `skip` bytes precede
        each record. `texts` is a list, or a sequence of the extension's Kafka reader. Returns None
        if the arrays are too large.
        """
        ...


class NativeProtobuf(Protocol):
    """A native reader of the simple fields of Protobuf messages of one type."""

    def read(self, texts: Sequence[bytes], skip: int) -> tuple[ArrowArray, ArrowArray, Any] | None:
        """Return structs with the fields in the order of their numbers, and the residual messages.

        A residual message has the fields that this reader does not decode. The third value has a
        byte for each message: 0, or 1 if the message must be decoded in Python. `skip` bytes
        precede each message. Returns None if the arrays are too large.
        """
        ...


class NativeModule(Protocol):
    """The functions and classes of the native extension for decoding messages."""

    def Plan(self, spec: Spec) -> NativePlan:  # noqa: N802 - a class of the extension
        """Create a plan from a specification. Raises ValueError if the specification is invalid."""
        ...

    def AvroReader(self, spec: Spec) -> NativeAvro:  # noqa: N802 - a class of the extension
        """Create a reader of Avro messages from the specification of their writer schema.

        Raises ValueError if the specification is invalid.
        """
        ...

    def ProtobufReader(  # noqa: N802 - a class of the extension
        self, fields: Sequence[Spec], residual: Sequence[tuple[int, int | None]]
    ) -> NativeProtobuf:
        """Create a reader of `fields`; it returns the other fields of a message as a residual.

        `residual` has, for each other field, its number and the number of its oneof (None: no
        oneof).
        """
        ...


def to_arrow(native: ArrowArray, data_type: pa.DataType) -> Array:
    """Convert an array of the native extension to an Arrow array of a type, without copying."""
    if pa.types.is_map(data_type):
        inner: list[pa.DataType] = [pa.struct([data_type.key_field, data_type.item_field])]
    else:
        inner = [data_type.field(index).type for index in range(data_type.num_fields)]
    children = [to_arrow(*pair) for pair in zip(native.children, inner, strict=True)]
    buffers = [None if data is None else pa.py_buffer(data) for data in native.buffers]
    array: Array = pa.Array.from_buffers(
        data_type, native.length, buffers, native.nulls, children=children or None
    )
    return array


@cache
def native_module() -> NativeModule | None:
    """Return the extension, or None if it is not installed or has another version."""
    try:
        module = importlib.import_module(_NAME)
    except ImportError as error:
        _LOG.info("json_decoder", extra={"ctx": {"decoder": "python", "reason": str(error)}})
        return None
    if module.FORMAT != _FORMAT:
        fields = {"decoder": "python", "reason": f"{_NAME} is of another version"}
        _LOG.warning("json_decoder", extra={"ctx": fields})
        return None
    _LOG.info("json_decoder", extra={"ctx": {"decoder": "native"}})
    return cast("NativeModule", module)


def decoder_name() -> Literal["native", "python"]:
    """Return which JSON decoder this process uses: the native extension or Python."""
    return "python" if native_module() is None else "native"
