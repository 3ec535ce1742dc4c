"""Data format `debezium-flat-json`: rows extracted by Debezium's ExtractNewRecordState transform.

The transform adds fields whose names start with two underscores: the operation, whether the row is
deleted, the table, and the log position. Messages that it does not change (heartbeats, logical
messages, transaction events) are recognised, too.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from ingestd.cdc.base import FormatDescriptor, FormatSettings, JsonObject, SourceTable
from ingestd.cdc.columns.column_reader import BOOLEAN_ENCODING, PlanColumn, Spec
from ingestd.cdc.columns.type_mapping import JSON_TYPE_MAPPINGS
from ingestd.cdc.event_time import EventTime
from ingestd.cdc.formats.plain_json import PAYLOAD, RowValues, topic_table
from ingestd.cdc.json.debezium_event import read_event
from ingestd.cdc.json.format_readers import NativeFormat, no_keys
from ingestd.cdc.json.json_changes import JsonChanges
from ingestd.cdc.json.message_head import HeadReader
from ingestd.cdc.json.message_layout import (
    RUNS_SPEC,
    Log,
    OneRow,
    SourceLog,
    codes,
    constant_field,
    run_lengths,
    run_texts,
    spec_of,
    texts_of,
    words_spec,
)
from ingestd.cdc.json.messages import Envelope, MessageKey, MessageKeys
from ingestd.cdc.json.normalized_events import (
    NULL,
    NormalizedEvent,
    TableNormalizer,
    TableNormalizers,
    TruncateEvent,
)
from ingestd.cdc.json.row_plan import RowPlan
from ingestd.cdc.native_module import Columns, Path, native_module
from ingestd.cdc.operations import ROW_OPERATIONS
from ingestd.cdc.record_errors import PARSE_ERRORS, RecordError, record_error
from ingestd.cdc.row_layout import Kinds
from ingestd.cdc.source_position import is_snapshot
from ingestd.paimon.spec.data_types import RowKind
from ingestd.paimon.spec.row_selection import Mask

_NULL = msgspec.Raw(NULL)
_SOURCE_FIELDS = (
    "version", "connector", "name", "ts_ms", "ts_us", "ts_ns", "snapshot", "db", "sequence",
    "schema", "table", "collection", "txId", "lsn", "xmin", "origin", "origin_lsn", "server_id",
    "gtid", "file", "pos", "row", "thread", "query", "change_lsn", "commit_lsn",
    "event_serial_no", "scn", "commit_scn", "rs_id", "ssn", "redo_thread", "user_name", "ord",
)  # fmt: skip
_ADDED = frozenset(
    {
        "__op",
        "__deleted",
        *(f"__{name}" for name in _SOURCE_FIELDS),
        *(f"__source_{name}" for name in _SOURCE_FIELDS),
        *(f"__transaction_{name}" for name in ("id", "total_order", "data_collection_order")),
    }
)
_OP, _DELETED = "__op", "__deleted"
_WORDS = tuple(ROW_OPERATIONS)
_KINDS = np.array([RowKind.INSERT, *ROW_OPERATIONS.values()], np.int8)
"""Row kinds by the number of the operation; 0 is a row without an operation."""
_READ, _TRUE = 2, 1
"""The numbers of "r" and "true" in their lists of words, starting at 1."""
_NAMES, _NUMBERS, _TEXTS = ("db", "schema", "table"), ("lsn", "pos", "row"), ("snapshot", "file")
_decode_mark = msgspec.json.Decoder(str | None).decode


def new_format(settings: FormatSettings) -> JsonChanges:
    """Return a new `debezium-flat-json` decoder with empty caches."""
    return JsonChanges(
        "debezium-flat-json",
        FlatDialect(),
        settings,
        native_module(),
        NativeFormat(flat_layout, keyless=no_keys),
    )


class _Marks(msgspec.Struct, gc=False):
    """The fields that the transform adds and that are used, as undecoded JSON."""

    op: msgspec.Raw = msgspec.field(name="__op", default=_NULL)
    deleted: msgspec.Raw = msgspec.field(name="__deleted", default=_NULL)
    database: msgspec.Raw = msgspec.field(name="__db", default=_NULL)
    schema: msgspec.Raw = msgspec.field(name="__schema", default=_NULL)
    table: msgspec.Raw = msgspec.field(name="__table", default=_NULL)
    snapshot: msgspec.Raw = msgspec.field(name="__snapshot", default=_NULL)
    lsn: msgspec.Raw = msgspec.field(name="__lsn", default=_NULL)
    file: msgspec.Raw = msgspec.field(name="__file", default=_NULL)
    pos: msgspec.Raw = msgspec.field(name="__pos", default=_NULL)
    row: msgspec.Raw = msgspec.field(name="__row", default=_NULL)
    source_database: msgspec.Raw = msgspec.field(name="__source_db", default=_NULL)
    source_schema: msgspec.Raw = msgspec.field(name="__source_schema", default=_NULL)
    source_table: msgspec.Raw = msgspec.field(name="__source_table", default=_NULL)
    source_snapshot: msgspec.Raw = msgspec.field(name="__source_snapshot", default=_NULL)
    source_lsn: msgspec.Raw = msgspec.field(name="__source_lsn", default=_NULL)
    source_file: msgspec.Raw = msgspec.field(name="__source_file", default=_NULL)
    source_pos: msgspec.Raw = msgspec.field(name="__source_pos", default=_NULL)
    source_row: msgspec.Raw = msgspec.field(name="__source_row", default=_NULL)


_decode_name = msgspec.json.Decoder(str | None).decode
_TRUE_TEXTS = (b"true", b'"true"')


class FlatDialect:
    """A converter of flattened messages to changes."""

    def __init__(self) -> None:
        self._heads = HeadReader(_Marks)
        self._values = RowValues()
        self._keys = MessageKeys()
        self._normalizers = TableNormalizers()
        self._latest: dict[str, TableNormalizer] = {}

    def normalize(
        self, value: bytes, key: bytes | None, topic: str
    ) -> NormalizedEvent | TruncateEvent | None:
        """Return the change or the truncate in a message, or None for another control message.

        If the row is null, returns the delete of the row with the message key, or None without a
        key. Raises RecordError if the message is invalid.
        """
        envelope, row = self._values.open(value)
        if row == NULL:
            return self.normalize_tombstone(key, topic)
        marks = self._heads.read(row)
        op, deleted = bytes(marks.op), bytes(marks.deleted)
        if op == NULL and deleted == NULL and _is_control(row, topic):
            return None
        normalizer = self._normalizer(topic, envelope, marks)
        if op == b'"t"':
            return TruncateEvent(normalizer.source, None)
        if op not in _OPERATIONS:
            raise record_error("decode", "unknown-op", f"__op of the message value is {op[:20]!r}")
        where = _where(marks, op)
        opened = self._keys.open(key)
        if op == b'"d"' or deleted in _TRUE_TEXTS:
            return NormalizedEvent(normalizer, (normalizer.delete(row, where),), opened)
        if op == b'"u"':
            return NormalizedEvent(normalizer, (normalizer.update(row, where=where),), opened)
        return NormalizedEvent(normalizer, (normalizer.insert(row, where),), opened)

    def normalize_tombstone(self, key: bytes | None, topic: str) -> NormalizedEvent | None:
        """Return the delete of the row with the message key, or None if the message has no key.

        Raises RecordError if the key is invalid.
        """
        opened: MessageKey = self._keys.open(key)
        if opened.envelope is None:
            return None
        normalizer = self._latest.get(topic) or TableNormalizer(topic_table(topic), hidden=_ADDED)
        self._latest[topic] = normalizer
        return NormalizedEvent(normalizer, (normalizer.delete(NULL),), opened)

    def _normalizer(self, topic: str, envelope: Envelope, marks: _Marks) -> TableNormalizer:
        names = (
            _either(marks.database, marks.source_database),
            _either(marks.schema, marks.source_schema),
            _either(marks.table, marks.source_table),
        )
        which = (topic, envelope, names)
        normalizer = self._normalizers.get(which)
        if normalizer is None:
            normalizer = TableNormalizer(
                _source(topic, names),
                (),
                envelope.columns,
                _ADDED,
                constants=_names_of(marks),
                envelope=envelope,
            )
            self._normalizers.keep(which, normalizer)
        self._latest[topic] = normalizer
        return normalizer


_OPERATIONS = frozenset({*texts_of(_WORDS), NULL})


def _names_of(marks: _Marks) -> dict[str, bytes]:
    return {
        "__db": bytes(marks.database),
        "__schema": bytes(marks.schema),
        "__table": bytes(marks.table),
        "__source_db": bytes(marks.source_database),
        "__source_schema": bytes(marks.source_schema),
        "__source_table": bytes(marks.source_table),
    }


def _either(first: msgspec.Raw, second: msgspec.Raw) -> bytes:
    """Return the first of two fields that is present, or `NULL`.

    An absent field is the object `_NULL`.
    """
    if first is not _NULL:
        return bytes(first)
    return NULL if second is _NULL else bytes(second)


def _source(topic: str, names: tuple[bytes, ...]) -> SourceTable:
    """Return the source table named by the added fields; missing names are taken from the topic.

    Raises RecordError if a field is not a name.
    """
    try:
        source_names = [_decode_name(name) for name in names]
    except PARSE_ERRORS as error:
        raise record_error(
            "decode", "invalid-source", f"an added field is not a name: {error}"
        ) from error
    named = [
        name or of_topic for name, of_topic in zip(source_names, topic_table(topic), strict=True)
    ]
    return SourceTable(named[0], named[1], named[2] or topic)


def _where(marks: _Marks, op: bytes) -> bytes:
    """Return the log position as JSON fields, preceded by a comma.

    If `__snapshot` is missing, `snapshot` is true for operation r, and false for other operations.
    """
    snapshot = _either(marks.snapshot, marks.source_snapshot)
    if snapshot == NULL:
        snapshot = b'"true"' if op == b'"r"' else b'"false"'
    lsn = _either(marks.lsn, marks.source_lsn)
    if lsn != NULL:
        return b',"snapshot":%s,"lsn":%s' % (snapshot, lsn)
    return b',"snapshot":%s,"file":%s,"pos":%s,"row":%s' % (
        snapshot,
        _either(marks.file, marks.source_file),
        _either(marks.pos, marks.source_pos),
        _either(marks.row, marks.source_row),
    )


class _InvalidError(ValueError):
    """Added fields have a form that only the Python decoder supports."""


@dataclass(frozen=True, slots=True)
class _Added:
    """The columns of the added fields that are read, by field name without its prefix."""

    columns: Mapping[str, PlanColumn]

    def path(self, name: str) -> Path | None:
        """Return the path of a field, or None if the field has never had a value."""
        column = self.columns.get(name)
        return None if column is None or column.reader is None else (column.name,)

    def specs(self, constants: Mapping[str, bytes]) -> dict[str, tuple[bool, Spec]]:
        """Return pairs by column name: whether the field is required, and its plan node.

        Raises _InvalidError if a field is not supported.
        """
        specs: dict[str, tuple[bool, Spec]] = {}
        for short, column in self.columns.items():
            if short in _NAMES:
                _, needed, spec = constant_field(column.name, constants.get(column.name, NULL))
                specs[column.name] = (needed, _constant_spec(column, spec))
            elif column.reader is not None:
                specs[column.name] = (False, _position_spec(short, column))
        return specs


def flat_layout(normalizer: TableNormalizer, plan: RowPlan) -> OneRow | None:
    """Return the native layout of a table's messages, or None if only Python can decode them."""
    by_name = {column.name: column for column in plan.columns}
    if plan.specs is None or PAYLOAD in by_name or not normalizer.hidden.isdisjoint(plan.key_names):
        return None
    try:
        added = _Added(_short_names(by_name))
        specs = added.specs(normalizer.constants) | _operation_specs(by_name)
    except _InvalidError:
        return None
    fields = [
        (column.name, *specs.get(column.name, (False, spec_of(column)))) for column in plan.columns
    ]
    root: Spec = ("object", False, True, fields)
    reader = _Reader(
        (_OP,) if _OP in specs else None, (_DELETED,) if _DELETED in specs else None, added
    )
    return OneRow(root, (), None, reader.kinds, reader.log)


def _short_names(by_name: Mapping[str, PlanColumn]) -> dict[str, PlanColumn]:
    short_names: dict[str, PlanColumn] = {}
    for short in (*_NAMES, *_NUMBERS, *_TEXTS):
        names = [name for name in (f"__{short}", f"__source_{short}") if name in by_name]
        if len(names) > 1:
            raise _InvalidError(short)
        if names:
            short_names[short] = by_name[names[0]]
    return short_names


def _constant_spec(column: PlanColumn, spec: Spec) -> Spec:
    if spec[0] == "literal" and not (_is_text(column) and spec[1].startswith(b'"')):
        raise _InvalidError(column.name)
    return spec


def _position_spec(short: str, column: PlanColumn) -> Spec:
    if short in _TEXTS and _is_text(column):
        return RUNS_SPEC
    spec = column.encoding.spec
    if short in _NUMBERS and spec[0] == "integer" and spec[2] == 1:
        return ("integer", 64, *spec[2:])
    raise _InvalidError(column.name)


def _operation_specs(by_name: Mapping[str, PlanColumn]) -> dict[str, tuple[bool, Spec]]:
    op, deleted = by_name.get(_OP), by_name.get(_DELETED)
    specs: dict[str, tuple[bool, Spec]] = {}
    if op is not None:
        if not _is_text(op):
            raise _InvalidError(_OP)
        specs[_OP] = (True, words_spec(_WORDS))
    if deleted is not None and deleted.reader is not None:
        if _is_text(deleted):
            specs[_DELETED] = (op is None, words_spec(("true", "false")))
        elif deleted.encoding is BOOLEAN_ENCODING:
            specs[_DELETED] = (op is None, ("choice", (b"true", b"false")))
        else:
            raise _InvalidError(_DELETED)
    if not specs:
        raise _InvalidError(_OP)
    return specs


def _is_text(column: PlanColumn) -> bool:
    return bool(column.encoding.spec[0] == "text")


@dataclass(frozen=True, slots=True)
class _Reader:
    op: Path | None
    deleted: Path | None
    added: _Added

    def kinds(self, columns: Columns) -> Kinds:
        """Return the row kind of each row.

        A row without an operation is an insert, unless it is marked as deleted.
        """
        size = columns[()].seen
        row_kinds = _KINDS[np.zeros(size, np.uint8) if self.op is None else codes(columns[self.op])]
        if self.deleted is not None:
            row_kinds[codes(columns[self.deleted]) == _TRUE] = RowKind.DELETE
        return row_kinds

    def log(self, columns: Columns, kinds: Kinds) -> Log:
        """Return the log position of each row, and whether it is a snapshot row.

        Without a value in the snapshot field, rows with operation r are snapshot rows.
        """
        snapshot = np.zeros(len(kinds), np.bool_)
        if self.op is not None:
            snapshot = codes(columns[self.op]) == _READ
        path = self.added.path("snapshot")
        if path is not None:
            runs = columns[path]
            texts = run_texts(runs)
            lengths = run_lengths(runs, len(kinds))
            marked = np.repeat(_marks(texts, lambda text: text != NULL), lengths)
            true = np.repeat(_marks(texts, lambda text: is_snapshot(_decode_mark(text))), lengths)
            snapshot = np.where(marked, true, snapshot)
        where = SourceLog(None, *map(self.added.path, ("lsn", "file", "pos", "row")))
        return Log(where.read(columns, kinds).position, snapshot)


def _marks(texts: Sequence[bytes], predicate: Callable[[bytes], bool]) -> Mask:
    return np.array([predicate(text) for text in texts], np.bool_)


def _is_control(row: bytes, topic: str) -> bool:
    """Return whether a message without added fields is a control message.

    The transform does not change control messages. Raises RecordError if the message is a change
    event with its envelope.
    """
    try:
        event = read_event(row, topic)
    except RecordError:
        return False
    if event is not None:
        message = "the message value is an event with its envelope; its format is debezium-json"
        raise record_error("decode", "not-flattened", message)
    return True


def _is_flattened(message: JsonObject) -> bool:
    return bool(message.keys() & {"__op", "__deleted", "__table", "__source_ts_ms"})


FORMAT = FormatDescriptor(
    name="debezium-flat-json",
    description="Debezium with ExtractNewRecordState, JSON converter",
    new_decoder=new_format,
    recognizes=_is_flattened,
    registry="optional",
    event_time=EventTime((("payload", "__source_ts_ms"), ("__source_ts_ms",))),
    type_mapping=JSON_TYPE_MAPPINGS,
    source_position=True,
    truncates=True,
)
