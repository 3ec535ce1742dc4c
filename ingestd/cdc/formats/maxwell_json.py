"""Data format `maxwell-json`: messages of the Maxwell daemon.

`data` is the complete row after an insert or update, or before a delete. `old` contains the old
values of the columns that an update changed. Rows of a bootstrap are snapshot rows.
"""

import re

import msgspec
import numpy as np

from ingestd.cdc.base import (
    UNKNOWN_POSITION,
    DdlEvent,
    FormatDescriptor,
    FormatSettings,
    JsonObject,
    SourceTable,
)
from ingestd.cdc.columns.column_reader import INT64_ENCODING
from ingestd.cdc.columns.type_mapping import JSON_TYPE_MAPPINGS
from ingestd.cdc.ddl.alter_text import proven_by_columns, renames_and_drops
from ingestd.cdc.event_time import EventTime
from ingestd.cdc.json.format_readers import NativeFormat, TableFields
from ingestd.cdc.json.json_changes import JsonChanges
from ingestd.cdc.json.message_head import HeadReader, required
from ingestd.cdc.json.message_layout import (
    Log,
    OneRow,
    chosen,
    codes,
    constant_fields,
    numbers,
    open_object,
    run_lengths,
    texts_of,
    words_spec,
)
from ingestd.cdc.json.normalized_events import (
    NULL,
    Message,
    NormalizedEvent,
    TableNormalizer,
    TableNormalizers,
    name_as_json,
    where_in_log,
)
from ingestd.cdc.json.row_plan import RowPlan
from ingestd.cdc.native_module import Columns, native_module
from ingestd.cdc.record_errors import PARSE_ERRORS, record_error
from ingestd.cdc.row_layout import NO_KIND, Kinds
from ingestd.cdc.source_position import LAST_ROW, file_number, packed_positions
from ingestd.paimon.spec.data_types import RowKind

_NULL = msgspec.Raw(NULL)
_CONTROL = re.compile(r"bootstrap-(start|complete)|(table|database)-\w+|heartbeat")
_ALTERED = "table-alter"
_DIGITS = 19
_MESSAGE_TYPE = re.compile(r"insert|update|delete|(bootstrap|table|database)-\w+")
_WORDS = ("insert", "update", "delete", "bootstrap-insert")
_KINDS = (NO_KIND, RowKind.INSERT, RowKind.UPDATE_AFTER, RowKind.DELETE, RowKind.INSERT)
_SNAPSHOT, _COMMITS = 4, 1
"""The numbers of "bootstrap-insert" and "true" in their lists of words, starting at 1."""
_TABLE_FIELDS = TableFields((("database",), ("table",)), {("type",): texts_of(_WORDS)})


def new_format(settings: FormatSettings) -> JsonChanges:
    """Return a new `maxwell-json` decoder with empty caches."""
    dialect = MaxwellDialect(images=settings.images)
    return JsonChanges(
        "maxwell-json", dialect, settings, native_module(), NativeFormat(_layout, _TABLE_FIELDS)
    )


class _Column(msgspec.Struct, gc=False):
    name: str


class _Definition(msgspec.Struct, gc=False):
    columns: list[_Column] = []


class _Statement(msgspec.Struct, gc=False):
    """The fields of a `table-alter` message; `definition` is the resulting table definition."""

    sql: str | None = None
    definition: _Definition | None = msgspec.field(name="def", default=None)


_decode_statement = msgspec.json.Decoder(_Statement).decode


class _Head(msgspec.Struct, gc=False):
    type: str
    database: str | None = None
    table: str | None = None
    data: msgspec.Raw = _NULL
    old: msgspec.Raw = _NULL
    primary_key_columns: msgspec.Raw = _NULL
    position: str | None = None
    xoffset: int | None = None
    commit: bool | None = None


class MaxwellDialect:
    """A converter of Maxwell messages to changes.

    If `images`, the before images of updates are kept.
    """

    def __init__(self, *, images: bool = False) -> None:
        self._heads = HeadReader(_Head)
        self._normalizers = TableNormalizers(images=images)
        self._log = _BinaryLog()

    def normalize(self, value: bytes, key: bytes | None, topic: str) -> Message | None:
        """Return the change or the DDL events in a message.

        Returns None for other messages without rows. Raises RecordError if the message is invalid.
        """
        head = self._heads.read(value)
        kind = head.type
        if kind not in _ROW_TYPES:
            if kind == _ALTERED:
                return self._ddl_events(head, value)
            if _CONTROL.fullmatch(kind):
                return None
            raise record_error(
                "decode", "unknown-op", f"type of the message value is {kind[:40]!r}"
            )
        normalizer = self._normalizer(head)
        data = required(bytes(head.data), "data")
        where = where_in_log(self._log.position(head), snapshot=kind == "bootstrap-insert")
        if kind == "delete":
            return NormalizedEvent(normalizer, (normalizer.delete(data, where),))
        if kind == "update":
            return NormalizedEvent(
                normalizer,
                (normalizer.update(data, normalizer.needed_before(bytes(head.old)), where),),
            )
        return NormalizedEvent(normalizer, (normalizer.insert(data, where),))

    def _ddl_events(self, head: _Head, value: bytes) -> list[DdlEvent]:
        try:
            statement = _decode_statement(value)
        except PARSE_ERRORS as error:
            message = f"the message about a statement cannot be read: {error}"
            raise record_error("decode", "invalid-ddl", message) from error
        names = (
            [column.name for column in statement.definition.columns] if statement.definition else []
        )
        columns = proven_by_columns(renames_and_drops(statement.sql or ""), names)
        if not columns or head.table is None:
            return []
        position = self._log.position(msgspec.structs.replace(head, commit=True))
        source = SourceTable(head.database, None, head.table)
        return [DdlEvent(source, None if position < 0 else position, columns)]

    def normalize_tombstone(self, key: bytes | None, topic: str) -> None:
        """Return None, because a message without a value is not a change."""
        return

    def _normalizer(self, head: _Head) -> TableNormalizer:
        which = (head.database, head.table, bytes(head.primary_key_columns))
        normalizer = self._normalizers.get(which)
        if normalizer is not None:
            return normalizer
        source = SourceTable(head.database, None, required(head.table, "table"))
        keys = self._heads.names(head.primary_key_columns, "primary_key_columns")
        constants = {
            "database": name_as_json(head.database),
            "table": name_as_json(head.table),
            "primary_key_columns": bytes(head.primary_key_columns),
        }
        return self._normalizers.keep(which, TableNormalizer(source, keys, constants=constants))


_ROW_TYPES: frozenset[str] = frozenset({"insert", "update", "delete", "bootstrap-insert"})


class _BinaryLog:
    """A converter of Maxwell's positions to packed positions in the binary log.

    It caches the number of the latest file, because consecutive changes usually are in one file.
    """

    def __init__(self) -> None:
        self._name = ""
        self._number = UNKNOWN_POSITION

    def position(self, head: _Head) -> int:
        """Return the position of a row in the binary log, or `UNKNOWN_POSITION`.

        File number, position of the transaction and row number are packed into one number. The
        position is unknown if one of these is unknown or too large.
        """
        if head.position is None:
            return UNKNOWN_POSITION
        # The last row of a transaction does not contain its row number.
        row = LAST_ROW if head.commit else head.xoffset
        file, _, pos = head.position.rpartition(":")
        if row is None or not 0 <= row <= LAST_ROW or not pos.isdecimal() or len(pos) > _DIGITS:
            return UNKNOWN_POSITION
        if file != self._name:
            self._name, self._number = file, file_number(file)
        position = int(pos)
        if self._number < 0 or position >> 32 or (row == LAST_ROW and not head.commit):
            return UNKNOWN_POSITION
        return (self._number << 32 | position) << 12 | row


def _layout(normalizer: TableNormalizer, plan: RowPlan) -> OneRow | None:
    """Return the native layout of a table's messages, or None if only Python can decode them."""
    specs = plan.specs
    if specs is None:
        return None
    fields = [
        *constant_fields(normalizer.constants, ("database", "table", "primary_key_columns")),
        ("type", True, words_spec(_WORDS)),
        ("data", True, specs.whole),
        ("old", False, specs.old),
        ("position", False, ("numbered", ":", _DIGITS)),
        ("xoffset", False, INT64_ENCODING.spec),
        ("commit", False, ("choice", (b"true", b"false", NULL))),
    ]
    return OneRow(open_object(fields), ("data",), ("old",), chosen(("type",), _KINDS), _log)


def _log(columns: Columns, kinds: Kinds) -> Log:
    size = len(kinds)
    pos, has_pos = numbers(columns, ("position",), size)
    logged = columns[("position",)]
    heads = ["" if head is None else head.decode() for _, head in logged.runs or ()]
    files = np.array([file_number(head) for head in heads], np.int64)
    xoffset, has_row = numbers(columns, ("xoffset",), size)
    commits = codes(columns[("commit",)]) == _COMMITS
    row = np.where(commits, LAST_ROW, xoffset)
    known = has_pos & (commits | has_row & (row >= 0) & (row < LAST_ROW))
    position = packed_positions(np.repeat(files, run_lengths(logged, size)), pos, row)
    position[~known] = UNKNOWN_POSITION
    return Log(position, codes(columns[("type",)]) == _SNAPSHOT)


def _is_maxwell(message: JsonObject) -> bool:
    named = message.keys() >= {"database", "table", "type"}
    return named and _MESSAGE_TYPE.fullmatch(str(message["type"])) is not None


FORMAT = FormatDescriptor(
    name="maxwell-json",
    description="Maxwell",
    new_decoder=new_format,
    recognizes=_is_maxwell,
    registry="optional",
    event_time=EventTime((("ts",),), unit=1000),
    type_mapping=JSON_TYPE_MAPPINGS,
    source_position=True,
    schema_changes=True,
)
