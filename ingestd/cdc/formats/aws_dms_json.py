"""Data format `aws-dms-json`: messages of AWS Database Migration Service.

The row is in `data`. The before image of an update is in `before-image`, or in `BI_*` columns of
`data`. Messages do not contain key columns; the primary key of the target table is used.
"""

import msgspec
import numpy as np

from ingestd.cdc.base import (
    UNKNOWN_POSITION,
    FormatDescriptor,
    FormatSettings,
    JsonObject,
    SourceTable,
)
from ingestd.cdc.columns.type_mapping import JSON_TYPE_MAPPINGS
from ingestd.cdc.json.format_readers import NativeFormat, TableFields
from ingestd.cdc.json.json_changes import JsonChanges
from ingestd.cdc.json.message_head import HeadReader, fields_of, image_of, required
from ingestd.cdc.json.message_layout import (
    Log,
    OneRow,
    chosen,
    codes,
    constant_fields,
    open_object,
    texts_of,
    words_spec,
)
from ingestd.cdc.json.normalized_events import (
    NULL,
    SNAPSHOT,
    STREAMED,
    NormalizedEvent,
    TableNormalizer,
    TableNormalizers,
    TruncateEvent,
    name_as_json,
)
from ingestd.cdc.json.row_plan import RowPlan
from ingestd.cdc.native_module import Columns, native_module
from ingestd.cdc.record_errors import record_error
from ingestd.cdc.row_layout import NO_KIND, Kinds
from ingestd.paimon.spec.data_types import RowKind

_NULL = msgspec.Raw(NULL)
_BEFORE = "BI_"
_BEFORE_MARK = b'"BI_'
_TRUNCATE = "truncate-table"
_METADATA = "metadata"
_OPERATION = (_METADATA, "operation")
_WORDS = ("load", "insert", "update", "delete")
_KINDS = (NO_KIND, RowKind.INSERT, RowKind.INSERT, RowKind.UPDATE_AFTER, RowKind.DELETE)
_LOAD = 1
"""The number of "load" in `_WORDS`, starting at 1."""
_TABLE_FIELDS = TableFields(
    ((_METADATA, "schema-name"), (_METADATA, "table-name")),
    {_OPERATION: texts_of(_WORDS), (_METADATA, "record-type"): (b'"data"', NULL)},
)


def new_format(settings: FormatSettings) -> JsonChanges:
    """Return a new `aws-dms-json` decoder with empty caches."""
    return JsonChanges(
        "aws-dms-json",
        DmsDialect(),
        settings,
        native_module(),
        NativeFormat(_layout, _TABLE_FIELDS),
    )


class _Metadata(msgspec.Struct, rename="kebab", gc=False):
    operation: str
    record_type: str = "data"
    schema_name: str | None = None
    table_name: str | None = None


class _Head(msgspec.Struct, rename="kebab", gc=False):
    metadata: _Metadata
    data: msgspec.Raw = _NULL
    before_image: msgspec.Raw = _NULL


class DmsDialect:
    """A converter of DMS messages to changes."""

    def __init__(self) -> None:
        self._heads = HeadReader(_Head)
        self._normalizers = TableNormalizers()

    def normalize(
        self, value: bytes, key: bytes | None, topic: str
    ) -> NormalizedEvent | TruncateEvent | None:
        """Return the change or the truncate in a message.

        Returns None for a control message that is not a truncate. Raises RecordError if the message
        is invalid.
        """
        head = self._heads.read(value)
        operation = head.metadata.operation
        if head.metadata.record_type == "control":
            if operation != _TRUNCATE:
                return None
            return TruncateEvent(self._normalizer(head.metadata).source, None)
        normalizer = self._normalizer(head.metadata)
        before, after = bytes(head.before_image), required(bytes(head.data), "data")
        if _BEFORE_MARK in after:
            before, after = _images(before, after)
        if operation in ("load", "insert"):
            where = SNAPSHOT if operation == "load" else STREAMED
            return NormalizedEvent(normalizer, (normalizer.insert(after, where),))
        if operation == "update":
            return NormalizedEvent(normalizer, (normalizer.update(after, before),))
        if operation == "delete":
            return NormalizedEvent(normalizer, (normalizer.delete(after),))
        message = f"operation of the message value is {operation[:40]!r}"
        raise record_error("decode", "unknown-op", message)

    def normalize_tombstone(self, key: bytes | None, topic: str) -> None:
        """Return None, because a message without a value is not a change."""
        return

    def _normalizer(self, metadata: _Metadata) -> TableNormalizer:
        which = (metadata.schema_name, metadata.table_name)
        normalizer = self._normalizers.get(which)
        if normalizer is not None:
            return normalizer
        table = required(metadata.table_name, "table-name")
        source = SourceTable(None, metadata.schema_name, table)
        constants = {
            "schema-name": name_as_json(metadata.schema_name),
            "table-name": name_as_json(table),
        }
        return self._normalizers.keep(which, TableNormalizer(source, constants=constants))


def _images(before: bytes, row: bytes) -> tuple[bytes, bytes]:
    """Split a row with `BI_*` columns into the before and the after image of an update.

    If `before` is not null, it is the before image, and the `BI_*` columns are only removed. A
    column with this prefix is one of the source if the row has no column without the prefix.
    """
    fields = fields_of(row)
    names = {n for n in fields if n.startswith(_BEFORE) and n.removeprefix(_BEFORE) in fields}
    old = {name.removeprefix(_BEFORE): value for name, value in fields.items() if name in names}
    new = {name: value for name, value in fields.items() if name not in names}
    return image_of(old) if before == NULL and old else before, image_of(new)


def _layout(normalizer: TableNormalizer, plan: RowPlan) -> OneRow | None:
    """Return the native layout of a table's messages, or None if only Python can decode them."""
    specs = plan.specs
    if specs is None or any(column.name.startswith(_BEFORE) for column in plan.columns):
        return None
    metadata = [
        *constant_fields(normalizer.constants, ("schema-name", "table-name")),
        ("operation", True, words_spec(_WORDS)),
        ("record-type", False, words_spec(("data",))),
    ]
    fields = [
        (_METADATA, True, open_object(metadata)),
        ("data", True, specs.whole),
        ("before-image", False, specs.old),
    ]
    kinds = chosen(_OPERATION, _KINDS)
    return OneRow(open_object(fields), ("data",), ("before-image",), kinds, _log)


def _log(columns: Columns, kinds: Kinds) -> Log:
    snapshot = codes(columns[_OPERATION]) == _LOAD
    return Log(np.full(len(kinds), UNKNOWN_POSITION, np.int64), snapshot)


def _is_dms(message: JsonObject) -> bool:
    metadata = message.get("metadata")
    return isinstance(metadata, dict) and "operation" in metadata


FORMAT = FormatDescriptor(
    name="aws-dms-json",
    description="AWS Database Migration Service",
    new_decoder=new_format,
    recognizes=_is_dms,
    registry="optional",
    type_mapping=JSON_TYPE_MAPPINGS,
    truncates=True,
)
