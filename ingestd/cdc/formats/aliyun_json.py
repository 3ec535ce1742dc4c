"""Data format `aliyun-json`: messages of Alibaba Cloud DataWorks.

Messages contain DataWorks column types. The before and after image of an update are in one message
or in two messages.
"""

from collections.abc import Mapping
from dataclasses import replace

import msgspec
import numpy as np

from ingestd.cdc.base import (
    UNKNOWN_POSITION,
    FormatDescriptor,
    FormatSettings,
    JsonObject,
    SourceTable,
)
from ingestd.cdc.columns.column_reader import Spec
from ingestd.cdc.columns.type_mapping import JSON_TYPE_MAPPINGS
from ingestd.cdc.columns.wire_column import BIGINT, STRING, Meaning, WireColumn
from ingestd.cdc.json.format_readers import NativeFormat, TableFields
from ingestd.cdc.json.json_changes import JsonChanges
from ingestd.cdc.json.message_head import HeadReader, required
from ingestd.cdc.json.message_layout import (
    Log,
    TwoImages,
    chosen,
    constant_fields,
    numbers,
    open_object,
    texts_of,
    words_spec,
)
from ingestd.cdc.json.normalized_events import (
    NULL,
    NormalizedEvent,
    TableNormalizer,
    TableNormalizers,
    TruncateEvent,
    where_in_log,
)
from ingestd.cdc.json.row_plan import RowPlan
from ingestd.cdc.native_module import Columns, native_module
from ingestd.cdc.record_errors import PARSE_ERRORS, record_error
from ingestd.cdc.row_layout import NO_KIND, Kinds
from ingestd.paimon.spec.data_types import DataType, RowKind

_NULL = msgspec.Raw(NULL)
_CONTROL = ("TRANSACTION", "XA", "GTID", "HEARTBEAT", "MHEARTBEAT", "QUERY")
_STATEMENTS = ("CREATE", "ALTER", "ERASE", "RENAME", "CINDEX", "DINDEX")
_NO_DDL = (NULL, b"false", b'""')
_TYPES: Mapping[str, WireColumn] = {
    "LONG": WireColumn("", BIGINT, Meaning.SOURCE_TEXT),
    "DOUBLE": WireColumn("", DataType("DOUBLE"), Meaning.SOURCE_TEXT),
    "BOOLEAN": WireColumn("", DataType("BOOLEAN"), Meaning.SOURCE_TEXT),
    "DATE": WireColumn("", DataType("TIMESTAMP", precision=3)),
    "BYTES": WireColumn("", DataType("BYTES")),
    "STRING": WireColumn("", STRING),
}
_PAYLOAD, _ROW = "payload", "dataColumn"
_SEQUENCE = (_PAYLOAD, "sequenceId")
_WORDS = ("INSERT", "UPDATE_AFTER", "UPDATE_BEFORE", "DELETE")
_KINDS = (NO_KIND, RowKind.INSERT, RowKind.UPDATE_AFTER, RowKind.DELETE, RowKind.DELETE)
_NO_DDL_SPEC: Spec = ("choice", _NO_DDL)
_DIGITS = 19
_TABLE_FIELDS = TableFields(
    tuple(("schema", "source", name) for name in ("dbName", "schemaName", "tableName")),
    {(_PAYLOAD, "op"): texts_of(_WORDS), (_PAYLOAD, "ddl"): _NO_DDL, ("ddl",): _NO_DDL},
)


def new_format(settings: FormatSettings) -> JsonChanges:
    """Return a new `aliyun-json` decoder with empty caches."""
    dialect = AliyunDialect(images=settings.images)
    return JsonChanges(
        "aliyun-json", dialect, settings, native_module(), NativeFormat(_layout, _TABLE_FIELDS)
    )


class _Image(msgspec.Struct, rename="camel", gc=False):
    data_column: msgspec.Raw = _NULL


class _Payload(msgspec.Struct, rename="camel", gc=False):
    op: str
    before: _Image | None = None
    after: _Image | None = None
    sequence_id: str | int | None = None
    ddl: msgspec.Raw = _NULL


class _Head(msgspec.Struct, gc=False):
    payload: _Payload
    schema: msgspec.Raw = _NULL
    ddl: msgspec.Raw = _NULL


class _Source(msgspec.Struct, rename="camel", gc=False):
    db_name: str | None = None
    schema_name: str | None = None
    table_name: str | None = None


class _Column(msgspec.Struct, gc=False):
    name: str
    type: str


class _Schema(msgspec.Struct, rename="camel", gc=False):
    source: _Source
    data_column: list[_Column] | None = None
    primary_key: list[str] | None = None


_decode_schema = msgspec.json.Decoder(_Schema).decode


class AliyunDialect:
    """A converter of DataWorks messages to changes.

    If `images`, the before images of updates are kept.
    """

    def __init__(self, *, images: bool = False) -> None:
        self._heads = HeadReader(_Head)
        self._normalizers = TableNormalizers(images=images)

    def normalize(
        self, value: bytes, key: bytes | None, topic: str
    ) -> NormalizedEvent | TruncateEvent | None:
        """Return the change or the truncate in a message.

        Returns None for a DDL statement, heartbeat or other message without rows. Raises
        RecordError if the message is invalid.
        """
        head = self._heads.read(value)
        payload = head.payload
        if payload.op == "TRUNCATE":
            source = self._normalizer(bytes(head.schema)).source
            return TruncateEvent(source, _position(payload))
        is_ddl = any(bytes(mark) not in _NO_DDL for mark in (head.ddl, payload.ddl))
        if is_ddl or payload.op.startswith(_CONTROL + _STATEMENTS):
            return None
        normalizer = self._normalizer(bytes(head.schema))
        where = where_in_log(_position(payload))
        if payload.op in ("DELETE", "UPDATE_BEFORE"):
            before = required(_row(payload.before), "before")
            return NormalizedEvent(normalizer, (normalizer.delete(before, where),))
        after = required(_row(payload.after), "after")
        if payload.op == "INSERT":
            return NormalizedEvent(normalizer, (normalizer.insert(after, where),))
        if payload.op == "UPDATE_AFTER":
            before = normalizer.needed_before(_row(payload.before))
            return NormalizedEvent(normalizer, (normalizer.update(after, before, where),))
        raise record_error(
            "decode", "unknown-op", f"op of the message value is {payload.op[:40]!r}"
        )

    def normalize_tombstone(self, key: bytes | None, topic: str) -> None:
        """Return None, because a message without a value is not a change."""
        return

    def _normalizer(self, schema: bytes) -> TableNormalizer:
        normalizer = self._normalizers.get(schema)
        if normalizer is not None:
            return normalizer
        try:
            table_schema = _decode_schema(schema)
        except PARSE_ERRORS as error:
            message = f"schema of the message value cannot be read: {error}"
            raise record_error("decode", "invalid-schema", message) from error
        named = table_schema.source
        source = SourceTable(
            named.db_name, named.schema_name or None, required(named.table_name, "tableName")
        )
        columns = None
        if table_schema.data_column:
            columns = tuple(_column(field.name, field.type) for field in table_schema.data_column)
        keys = tuple(dict.fromkeys(table_schema.primary_key or ()))
        normalizer = TableNormalizer(source, keys, columns, constants={"schema": schema})
        return self._normalizers.keep(schema, normalizer)


def _row(image: _Image | None) -> bytes:
    return NULL if image is None else bytes(image.data_column)


def _column(name: str, type_name: str) -> WireColumn:
    column = _TYPES.get(type_name.upper(), _TYPES["STRING"])
    return replace(column, name=name)


def _position(payload: _Payload) -> int | None:
    number = payload.sequence_id
    if isinstance(number, str):
        number = int(number) if number.isdecimal() and len(number) < 20 else None
    return number if number is not None and number < 2**63 else None


def _layout(normalizer: TableNormalizer, plan: RowPlan) -> TwoImages | None:
    """Return the native layout of a table's messages, or None if only Python can decode them."""
    specs = plan.specs
    if specs is None:
        return None
    payload = [
        ("op", True, words_spec(_WORDS)),
        ("before", False, open_object([(_ROW, False, specs.old)], nullable=True)),
        ("after", False, open_object([(_ROW, False, specs.row)], nullable=True)),
        ("sequenceId", False, ("numbered", "", _DIGITS)),
        ("ddl", False, _NO_DDL_SPEC),
    ]
    fields = [
        *constant_fields(normalizer.constants, ("schema",)),
        (_PAYLOAD, True, open_object(payload)),
        ("ddl", False, _NO_DDL_SPEC),
    ]
    before, after = (_PAYLOAD, "before", _ROW), (_PAYLOAD, "after", _ROW)
    kinds = chosen((_PAYLOAD, "op"), _KINDS)
    return TwoImages(open_object(fields), before, after, kinds, _log)


def _log(columns: Columns, kinds: Kinds) -> Log:
    size = len(kinds)
    number, known = numbers(columns, _SEQUENCE, size)
    return Log(np.where(known, number, UNKNOWN_POSITION), np.zeros(size, np.bool_))


def _is_aliyun(payload: JsonObject) -> bool:
    images = (payload.get("before"), payload.get("after"))
    return any(isinstance(image, dict) and "dataColumn" in image for image in images)


FORMAT = FormatDescriptor(
    name="aliyun-json",
    description="Alibaba Cloud DataWorks",
    new_decoder=new_format,
    recognizes=_is_aliyun,
    registry="optional",
    type_mapping=JSON_TYPE_MAPPINGS,
    source_position=True,
    truncates=True,
)
