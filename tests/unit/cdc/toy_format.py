"""A whole data format in one file, registered by one line: `{"toy": ..., "at": ..., "row": ...}`.

Messages name a table and an operation, state the time of the change in seconds, and have one row,
which a delete has too.
"""

import msgspec

from ingestd.cdc.base import FormatDescriptor, FormatSettings, JsonObject, SourceTable
from ingestd.cdc.columns.type_mapping import JSON_TYPE_MAPPINGS
from ingestd.cdc.event_time import EventTime
from ingestd.cdc.json.format_readers import NativeFormat, TableFields
from ingestd.cdc.json.json_changes import JsonChanges
from ingestd.cdc.json.message_head import HeadReader, required
from ingestd.cdc.json.message_layout import (
    OneRow,
    chosen,
    constant_fields,
    no_log,
    open_object,
    texts_of,
    words_spec,
)
from ingestd.cdc.json.normalized_events import (
    NULL,
    NormalizedEvent,
    TableNormalizer,
    TableNormalizers,
)
from ingestd.cdc.json.row_plan import RowPlan
from ingestd.cdc.native_module import native_module
from ingestd.cdc.record_errors import record_error
from ingestd.cdc.row_layout import NO_KIND
from ingestd.paimon.spec.data_types import RowKind

_WORDS = ("put", "drop")
_KINDS = (NO_KIND, RowKind.INSERT, RowKind.DELETE)
_TABLE_FIELDS = TableFields((("toy",),), {("do",): texts_of(_WORDS)})


class _Head(msgspec.Struct, gc=False):
    toy: str
    do: str
    row: msgspec.Raw = msgspec.Raw(NULL)


class ToyDialect:
    """Maps a message to one change of one table."""

    def __init__(self) -> None:
        self._heads = HeadReader(_Head)
        self._tables = TableNormalizers()

    def normalize(self, value: bytes, key: bytes | None, topic: str) -> NormalizedEvent:
        """Return the change of a message. Raises RecordError."""
        head = self._heads.read(value)
        table = self._tables.get(head.toy) or self._tables.keep(
            head.toy,
            TableNormalizer(
                SourceTable(None, None, head.toy),
                constants={"toy": msgspec.json.encode(head.toy)},
            ),
        )
        row = required(bytes(head.row), "row")
        if head.do not in _WORDS:
            raise record_error("decode", "unknown-op", f"do of the message value is {head.do!r}")
        return NormalizedEvent(
            table, (table.insert(row) if head.do == "put" else table.delete(row),)
        )

    def normalize_tombstone(self, key: bytes | None, topic: str) -> None:
        """Return None: a message without a value is no change."""


def _layout(table: TableNormalizer, plan: RowPlan) -> OneRow | None:
    if plan.specs is None:
        return None
    fields = [
        *constant_fields(table.constants, ("toy",)),
        ("do", True, words_spec(_WORDS)),
        ("row", True, plan.specs.whole),
    ]
    return OneRow(open_object(fields), ("row",), None, chosen(("do",), _KINDS), no_log)


def _new_decoder(settings: FormatSettings) -> JsonChanges:
    return JsonChanges(
        "toy", ToyDialect(), settings, native_module(), NativeFormat(_layout, _TABLE_FIELDS)
    )


def _is_toy(message: JsonObject) -> bool:
    return "toy" in message


FORMAT = FormatDescriptor(
    name="toy",
    description="Toys",
    new_decoder=_new_decoder,
    recognizes=_is_toy,
    registry="optional",
    event_time=EventTime((("at",),), unit=1000),
    type_mapping=JSON_TYPE_MAPPINGS,
)
