"""Data format `protobuf`: rows as Protobuf messages, with schemas from a registry.

The message indexes after the schema id select a message type in the file; serializers of Apicurio
write its name instead, in a message `Ref` that is preceded by its length. The native extension
reads simple fields, if it is installed; all others are decoded in Python, message by message.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from ingestd.cdc.avro.aliases import Names
from ingestd.cdc.avro.rows import AvroColumn
from ingestd.cdc.avro.writers import registered_schema
from ingestd.cdc.base import NO_COMMENTS, Comments, FormatDescriptor, FormatSettings
from ingestd.cdc.cell_budget import CellBudgetError
from ingestd.cdc.columns.arrow_calls import if_else
from ingestd.cdc.formats.plain_records import Fields, PlainRecords
from ingestd.cdc.protobuf.message_columns import ProtoColumn, proto_column
from ingestd.cdc.protobuf.native_fields import NativeFields, SimpleFields
from ingestd.cdc.protobuf.proto_schema import (
    ProtobufSchemaError,
    ProtoTypes,
    former_names,
    parse_protobuf,
)
from ingestd.cdc.protobuf.wire import MessageReader, WireError, read_varint
from ingestd.cdc.record_errors import (
    BUILD_ERRORS,
    Reason,
    Reasons,
    cell_budget_reason,
    explain_cell,
    record_error,
)
from ingestd.cdc.schema_frames import SchemaFrame
from ingestd.cdc.schema_lookup import RegisteredSchema, SchemaLookup, lookup_of

_MAX_SCHEMAS = 5000
_MAX_INDEXES = 64
"""Maximum number of message indexes, which is the nesting depth of the message type."""
_NAME_TAG = b"\n"
_Selector: TypeAlias = str | tuple[int, ...]
"""The name or the message indexes by which a message type in a file is selected."""


def new_format(settings: FormatSettings) -> PlainRecords:
    """Return a new `protobuf` decoder. Raises ConfigError without a schema registry."""
    schemas = lookup_of(settings.schemas, "protobuf")
    has_names = settings.framing.is_apicurio
    fields = ProtobufFields(schemas, renames=settings.renames, has_names=has_names)
    return PlainRecords("protobuf", fields, settings.framing)


@dataclass(frozen=True, slots=True)
class _Message:
    """A message type of a schema, with its comments.

    `former` are pairs of the old and new name of renamed fields.
    """

    name: str
    reader: MessageReader
    native: NativeFields
    columns: tuple[ProtoColumn, ...]
    former: Names = ()
    comments: Comments = NO_COMMENTS


class ProtobufFields:
    """A reader of Protobuf messages into columns, with a cache of their schemas.

    If `renames`, old names of fields are read from earlier versions of each schema in the registry.
    If `has_names`, names of message types may precede the messages, as Apicurio writes them.
    """

    def __init__(
        self, schemas: SchemaLookup, *, renames: bool = False, has_names: bool = False
    ) -> None:
        self._schemas = schemas
        self._renames = renames
        self._has_names = has_names
        self._messages: dict[tuple[bytes, _Selector], _Message] = {}

    def refine(self, frame: SchemaFrame, message: bytes) -> SchemaFrame:
        """Return the frame with the message type of a message added.

        The type is given by its name (`type_name`), or else by the message indexes (`detail`). A
        frame that already has a message type keeps it. If the indexes are invalid, the frame is
        returned unchanged.
        """
        if self._has_names:
            name, at = _type_name(message, frame.skip)
            if name and frame.type_name in ("", name):
                return frame._replace(skip=at, type_name=name)
        if frame.detail or frame.type_name:
            return frame
        try:
            _, at = _indexes(message, frame.skip)
        except WireError:
            return frame
        return SchemaFrame(frame.mark, at, message[frame.skip : at])

    def former(self, frame: SchemaFrame) -> Names:
        """Return pairs of the old and new name of fields renamed since earlier schema versions.

        The messages of the frame must have been read before.
        """
        known = self._messages.get((frame.mark, _selector(frame)))
        return () if known is None else known.former

    def comments(self, frame: SchemaFrame) -> Comments:
        """Return the comments in the `.proto` file, of the message type and of its fields.

        The messages of the frame must have been read before.
        """
        known = self._messages.get((frame.mark, _selector(frame)))
        return NO_COMMENTS if known is None else known.comments

    def read(
        self, frame: SchemaFrame, messages: Sequence[bytes], stage: str, refused: Reasons
    ) -> Fields:
        """Read messages of one type into columns; add reasons of rejected messages to `refused`.

        `refused` is by index, and `stage` is the stage that errors and reasons state, such as
        "decode". Raises RecordError if the schema does not exist or is invalid, SourceError if the
        registry does not respond, and ConfigError if it rejects the credentials.
        """
        document = "message key" if stage == "key" else "message value"
        try:
            selector = _selector(frame)
        except WireError as error:
            raise record_error(stage, "invalid-protobuf", f"the {document}: {error}") from error
        rows = _Rows(self._message(frame, selector, stage), stage, document, refused)
        return rows.read(messages, frame.skip)

    def _message(self, frame: SchemaFrame, selector: _Selector, stage: str) -> _Message:
        known = self._messages.get((frame.mark, selector))
        if known is None:
            if len(self._messages) >= _MAX_SCHEMAS:
                self._messages.clear()
            registered = registered_schema(self._schemas, frame, stage, "PROTOBUF")
            try:
                texts = [reference.text for reference in registered.references]
                types = parse_protobuf(registered.text, texts)
                name = _selected(types, selector)
            except ProtobufSchemaError as error:
                raise record_error(stage, "invalid-schema", str(error)) from error
            columns = tuple(proto_column(field, types) for field in types.messages[name])
            former = self._former(frame, types, name)
            fields = ((field.name, field.comment) for field in types.messages[name])
            comments = Comments.of(types.comments.get(name), fields)
            native = NativeFields(types.messages[name], columns, types)
            known = _Message(name, MessageReader(types), native, columns, former, comments)
            self._messages[frame.mark, selector] = known
        return known

    def _former(self, frame: SchemaFrame, types: ProtoTypes, name: str) -> Names:
        """Return pairs of the old and new name of fields renamed since earlier schema versions.

        Invalid versions are skipped.
        """
        if not self._renames:
            return ()
        renames: list[tuple[str, str]] = []
        for version in self._schemas.earlier(frame.schema_id("decode")):
            try:
                texts = [reference.text for reference in version.references]
                older = parse_protobuf(version.text, texts)
            except ProtobufSchemaError:
                continue
            renames += former_names(older.messages.get(name, ()), types.messages[name])
        return tuple(dict.fromkeys(renames))


def _selector(frame: SchemaFrame) -> _Selector:
    """Return the message type that a frame selects. Raises WireError for invalid indexes."""
    return frame.type_name or _indexes(frame.detail, 0)[0]


def _selected(types: ProtoTypes, selector: _Selector) -> str:
    """Return the full name of a message type. Raises ProtobufSchemaError if it does not exist."""
    if isinstance(selector, str):
        return types.message_named(selector)
    return types.message_at(selector)


def _type_name(data: bytes, at: int) -> tuple[str, int]:
    """Return the name in the message `Ref` at the offset `at`, and the offset after the message.

    If there is no such message, the name is empty and the offset unchanged.
    """
    try:
        size, start = read_varint(data, at)
        length, first = read_varint(data, start + 1)
    except WireError:
        return "", at
    end = first + length
    if data[start : start + 1] != _NAME_TAG or end != start + size or end > len(data):
        return "", at
    return data[first:end].decode(errors="replace"), end


def _indexes(data: bytes, at: int) -> tuple[tuple[int, ...], int]:
    """Return the message indexes at the offset `at`, and the offset after them.

    Raises WireError if they are invalid.
    """
    count, at = _zigzag(data, at)
    if count == 0:
        return (0,), at
    if not 0 < count <= _MAX_INDEXES:
        raise WireError(f"{count} message indexes")
    indexes = []
    for _ in range(count):
        index, at = _zigzag(data, at)
        indexes.append(index)
    return tuple(indexes), at


def _zigzag(data: bytes, at: int) -> tuple[int, int]:
    value, at = read_varint(data, at)
    return (value >> 1) ^ -(value & 1), at


@dataclass(frozen=True, slots=True)
class _Rows:
    """The messages of one type that are read together; `refused` are their rejection reasons."""

    kind: _Message
    stage: str
    document: str
    refused: Reasons

    def read(self, messages: Sequence[bytes], skip: int) -> Fields:
        """Read messages into columns; add the reasons of rejected messages to `refused`."""
        simple = self.kind.native.read(messages, skip)
        if simple is None:
            rows = [self._row(index, data, skip) for index, data in enumerate(messages)]
            return {column.column.name: self._column(column, rows) for column in self.kind.columns}
        rows = [None] * len(messages)
        if simple.residual is not None:
            absent = self.kind.reader.read(self.kind.name, b"")
            rows = [
                self._row(index, data, 0, size=len(messages[index])) if data else absent
                for index, data in enumerate(simple.residual)
            ]
        for index in simple.irregular.tolist():
            rows[index] = self._row(index, messages[index], skip)
        return {
            column.column.name: self._merged(column, rows, simple) for column in self.kind.columns
        }

    def _row(
        self, index: int, data: bytes, skip: int, *, size: int | None = None
    ) -> dict[str, object] | None:
        """Decode one message in Python; None if it is rejected."""
        try:
            return self.kind.reader.read(self.kind.name, data, skip, size=size)
        except WireError as error:
            message = f"the {self.document} is not a valid message of this type: {error}"
            self.refused.setdefault(index, Reason(self.stage, "invalid-protobuf", message))
        except CellBudgetError as error:
            reason = cell_budget_reason(error, self.stage, f"the {self.document}")
            self.refused.setdefault(index, reason)
        return None

    def _merged(
        self, column: ProtoColumn, rows: Sequence[dict[str, object] | None], simple: SimpleFields
    ) -> AvroColumn:
        """Return a column of the native arrays, with the values of irregular messages in `rows`.

        If the field is not simple, all values are those in `rows`.
        """
        array = simple.arrays.get(column.column.name)
        if array is None:
            return self._column(column, rows)
        if not len(simple.irregular):
            return AvroColumn(column.column, None, array)
        irregular = np.zeros(len(rows), np.bool_)
        irregular[simple.irregular] = True
        own = [row if is_own else None for row, is_own in zip(rows, irregular, strict=True)]
        return AvroColumn(
            column.column,
            None,
            if_else(pa.array(irregular), self._column(column, own).array, array),
        )

    def _column(self, column: ProtoColumn, rows: Sequence[dict[str, object] | None]) -> AvroColumn:
        """Return a column of decoded rows.

        Values that do not fit become null, and their reasons are added to `refused`.
        """
        name = column.column.name
        values = [None if row is None else row[name] for row in rows]
        try:
            array = column.build(values)
        except BUILD_ERRORS:
            for index, value in enumerate(values):
                try:
                    column.build([value])
                except BUILD_ERRORS as error:
                    why = explain_cell(error, name, value, column.column.data_type)
                    self.refused.setdefault(index, why)
                    values[index] = None
            array = column.build(values)
        return AvroColumn(column.column, None, array)


def _is_protobuf(schema: RegisteredSchema) -> bool:
    return schema.kind == "PROTOBUF"


FORMAT = FormatDescriptor(
    name="protobuf",
    description="Rows in Protobuf",
    new_decoder=new_format,
    recognizes_schema=_is_protobuf,
    registry="required",
    schema_changes=True,
)
