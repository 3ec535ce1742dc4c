"""Data format `canal-json`: flat messages of Canal, with the column types of MySQL.

`data` contains the rows after inserts and updates, and the rows before deletes. `old` contains, for
each row of an update, the old values of the changed columns. All values are strings.
"""

import msgspec

from ingestd.cdc.base import DdlEvent, FormatDescriptor, FormatSettings, JsonObject, SourceTable
from ingestd.cdc.columns.mysql_types import jdbc_column, mysql_column
from ingestd.cdc.columns.type_mapping import JSON_TYPE_MAPPINGS, MYSQL_TYPE_MAPPINGS
from ingestd.cdc.columns.wire_column import WireColumn
from ingestd.cdc.ddl.alter_text import proven_alone
from ingestd.cdc.event_time import EventTime
from ingestd.cdc.json.format_readers import NativeFormat, TableFields
from ingestd.cdc.json.json_changes import JsonChanges
from ingestd.cdc.json.message_head import HeadReader, required
from ingestd.cdc.json.message_layout import (
    FLAG_SPEC,
    ListedRows,
    chosen,
    constant_fields,
    no_log,
    open_object,
    texts_of,
    words_spec,
)
from ingestd.cdc.json.normalized_events import (
    NULL,
    Message,
    NormalizedEvent,
    TableNormalizer,
    TableNormalizers,
    TruncateEvent,
    name_as_json,
)
from ingestd.cdc.json.row_plan import RowPlan
from ingestd.cdc.native_module import native_module
from ingestd.cdc.record_errors import PARSE_ERRORS, record_error
from ingestd.cdc.row_layout import NO_KIND
from ingestd.paimon.spec.data_types import RowKind
from ingestd.wording import counted

_NULL = msgspec.Raw(NULL)
_INSERTS = frozenset({"INSERT", "ROW"})
_CONTROL = frozenset(
    {
        "QUERY",
        "CREATE",
        "ERASE",
        "RENAME",
        "CINDEX",
        "DINDEX",
        "GTID",
        "XACOMMIT",
        "XAROLLBACK",
        "MHEARTBEAT",
        "TIDB_WATERMARK",
    }
)
_WORDS = ("INSERT", "ROW", "UPDATE", "DELETE")
_KINDS = (NO_KIND, RowKind.INSERT, RowKind.INSERT, RowKind.UPDATE_AFTER, RowKind.DELETE)
_CONSTANT = ("database", "table", "pkNames", "mysqlType", "sqlType")
_TABLE_FIELDS = TableFields(
    (("database",), ("table",)), {("type",): texts_of(_WORDS), ("isDdl",): (b"false", NULL)}
)


def new_format(settings: FormatSettings) -> JsonChanges:
    """Return a new `canal-json` decoder with empty caches."""
    canal = CanalDialect(settings.type_mapping, images=settings.images)
    return JsonChanges(
        "canal-json", canal, settings, native_module(), NativeFormat(_layout, _TABLE_FIELDS)
    )


class _Head(msgspec.Struct, rename="camel", gc=False):
    type: str
    database: str | None = None
    table: str | None = None
    is_ddl: bool | None = None
    pk_names: msgspec.Raw = _NULL
    mysql_type: msgspec.Raw = _NULL
    sql_type: msgspec.Raw = _NULL
    data: list[msgspec.Raw] | None = None
    old: list[msgspec.Raw] | None = None
    sql: msgspec.Raw = _NULL


_decode_types = msgspec.json.Decoder(dict[str, str] | None).decode
_decode_text = msgspec.json.Decoder(str | None).decode
_decode_codes = msgspec.json.Decoder(dict[str, int] | None).decode


class CanalDialect:
    """A converter of Canal messages to changes.

    `type_mapping` are options such as `to-string`. If `images`, the before images of updates are
    kept.
    """

    def __init__(self, type_mapping: frozenset[str], *, images: bool = False) -> None:
        self._type_mapping = type_mapping
        self._heads = HeadReader(_Head)
        self._normalizers = TableNormalizers(images=images)

    def normalize(self, value: bytes, key: bytes | None, topic: str) -> Message | None:
        """Return the changes, the truncate or the DDL events in a message.

        Returns None for other messages without rows, such as a CREATE TABLE. Raises RecordError if
        the message is invalid.
        """
        head = self._heads.read(value)
        if head.type == "TRUNCATE":
            return TruncateEvent(_source(head), None)
        if head.type == "ALTER":
            return _ddl_events(head)
        if head.is_ddl or head.type in _CONTROL:
            return None
        normalizer = self._normalizer(head)
        if head.type in _INSERTS:
            return NormalizedEvent(
                normalizer, tuple(normalizer.insert(row) for row in _rows(head.data))
            )
        if head.type == "DELETE":
            return NormalizedEvent(
                normalizer, tuple(normalizer.delete(row) for row in _rows(head.data or head.old))
            )
        if head.type == "UPDATE":
            return NormalizedEvent(normalizer, _updates(normalizer, head))
        raise record_error(
            "decode", "unknown-op", f"type of the message value is {head.type[:40]!r}"
        )

    def normalize_tombstone(self, key: bytes | None, topic: str) -> None:
        """Return None, because a message without a value is not a change."""
        return

    def _normalizer(self, head: _Head) -> TableNormalizer:
        types = bytes(head.mysql_type), bytes(head.sql_type)
        which = (head.database, head.table, bytes(head.pk_names), types)
        normalizer = self._normalizers.get(which)
        if normalizer is not None:
            return normalizer
        keys = self._heads.names(head.pk_names, "pkNames")
        columns = self._columns(*types)
        constants = {
            "database": name_as_json(head.database),
            "table": name_as_json(head.table),
            "pkNames": bytes(head.pk_names),
            "mysqlType": types[0],
            "sqlType": types[1],
        }
        normalizer = TableNormalizer(_source(head), keys, columns, constants=constants)
        return self._normalizers.keep(which, normalizer)

    def _columns(self, mysql_types: bytes, codes: bytes) -> tuple[WireColumn, ...] | None:
        try:
            named = _decode_types(mysql_types)
            if named:
                mapping = self._type_mapping
                return tuple(mysql_column(name, text, mapping) for name, text in named.items())
            numbered = _decode_codes(codes)
        except PARSE_ERRORS as error:
            message = f"mysqlType or sqlType of the message value cannot be read: {error}"
            raise record_error("decode", "invalid-schema", message) from error
        return tuple(jdbc_column(*item) for item in numbered.items()) if numbered else None


def _ddl_events(head: _Head) -> list[DdlEvent]:
    """Return the event with the column renames and drops that a DDL statement proves, if any.

    Its log position is unknown. Raises RecordError if the statement is not text.
    """
    try:
        statement = _decode_text(head.sql)
    except PARSE_ERRORS as error:
        raise record_error("decode", "invalid-ddl", f"sql of the message value: {error}") from error
    columns = proven_alone(statement or "")
    return [DdlEvent(_source(head), None, columns)] if columns else []


def _source(head: _Head) -> SourceTable:
    return SourceTable(head.database, None, required(head.table, "table"))


def _rows(rows: list[msgspec.Raw] | None) -> list[bytes]:
    if not rows:
        raise record_error("decode", "missing-data", "the message value has no data")
    return [bytes(row) for row in rows]


def _updates(normalizer: TableNormalizer, head: _Head) -> tuple[bytes, ...]:
    rows = _rows(head.data)
    old = [bytes(row) for row in head.old or ()] or [NULL] * len(rows)
    if len(old) != len(rows):
        message = f"the message value has {counted(len(rows), 'row')} in data and {len(old)} in old"
        raise record_error("decode", "unpaired-rows", message)
    return tuple(
        normalizer.update(row, normalizer.needed_before(before))
        for row, before in zip(rows, old, strict=True)
    )


def _layout(normalizer: TableNormalizer, plan: RowPlan) -> ListedRows | None:
    """Return the native layout of a table's messages, or None if only Python can decode them."""
    specs = plan.specs
    if specs is None:
        return None
    fields = [
        *constant_fields(normalizer.constants, _CONSTANT),
        ("type", True, words_spec(_WORDS)),
        ("isDdl", False, FLAG_SPEC),
        ("data", True, ("rows", specs.whole)),
        ("old", False, ("rows", specs.old)),
    ]
    kinds = chosen(("type",), _KINDS)
    return ListedRows(open_object(fields), ("data",), ("old",), kinds, no_log)


def _is_canal(message: JsonObject) -> bool:
    return "isDdl" in message or (isinstance(message.get("data"), list) and "type" in message)


FORMAT = FormatDescriptor(
    name="canal-json",
    description="Canal, TiCDC",
    new_decoder=new_format,
    recognizes=_is_canal,
    registry="optional",
    event_time=EventTime((("es",),)),
    type_mapping=JSON_TYPE_MAPPINGS | MYSQL_TYPE_MAPPINGS,
    truncates=True,
    schema_changes=True,
)
