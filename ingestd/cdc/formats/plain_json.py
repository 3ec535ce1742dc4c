"""Data format `json`: each message value is a row of the table after which the topic is named.

The fields of the message key are the primary key. A message with a key and without a value deletes
the row. Values may have the schema envelope of Connect's JSON converter, which then determines the
types.
"""

import msgspec
import numpy as np

from ingestd.cdc.base import FormatDescriptor, FormatSettings, SourceTable
from ingestd.cdc.columns.type_mapping import JSON_TYPE_MAPPINGS
from ingestd.cdc.json.format_readers import NativeFormat, no_objects
from ingestd.cdc.json.json_changes import JsonChanges
from ingestd.cdc.json.message_head import HeadReader
from ingestd.cdc.json.message_layout import OneRow, no_log
from ingestd.cdc.json.messages import NO_ENVELOPE, Envelope, Envelopes, MessageKeys
from ingestd.cdc.json.normalized_events import (
    NULL,
    NormalizedEvent,
    TableNormalizer,
    TableNormalizers,
)
from ingestd.cdc.json.row_plan import RowPlan
from ingestd.cdc.native_module import Columns, native_module
from ingestd.cdc.row_layout import Kinds
from ingestd.paimon.spec.data_types import RowKind

_WRAPPED = b'"payload"'
PAYLOAD = "payload"
"""A column name; a row with this column may be a Connect envelope that contains the row."""


def new_format(settings: FormatSettings) -> JsonChanges:
    """Return a new `json` decoder with empty caches."""
    return JsonChanges(
        "json",
        PlainDialect(),
        settings,
        native_module(),
        NativeFormat(_layout, keyless=no_objects),
    )


class _Row(msgspec.Struct, gc=False):
    """Any JSON object."""


class RowValues:
    """Splits message values into a row and an optional Connect schema envelope."""

    def __init__(self) -> None:
        self._envelopes = Envelopes(is_key=False, is_row=True)

    def open(self, value: bytes) -> tuple[Envelope, bytes]:
        """Split a message value into its Connect schema envelope and its row.

        A value without an envelope has the empty envelope `NO_ENVELOPE`. Raises RecordError if the
        envelope is invalid.
        """
        return self._envelopes.open(value) if _WRAPPED in value else (NO_ENVELOPE, value)


class PlainDialect:
    """A converter of rows to inserts, and of tombstones to deletes."""

    def __init__(self) -> None:
        self._heads = HeadReader(_Row)
        self._values = RowValues()
        self._keys = MessageKeys(lenient=True)
        self._normalizers = TableNormalizers()
        self._latest: dict[str, TableNormalizer] = {}

    def normalize(self, value: bytes, key: bytes | None, topic: str) -> NormalizedEvent | None:
        """Return the insert of a row, or a delete by the message key if the row is null.

        Returns None if the row is null and the message has no key. Raises RecordError if the value
        is not a JSON object, or has an invalid envelope.
        """
        envelope, row = self._values.open(value)
        if row == NULL:
            return self.normalize_tombstone(key, topic)
        self._heads.read(row)
        normalizer = self._normalizer(topic, envelope)
        return NormalizedEvent(normalizer, (normalizer.insert(row),), self._keys.open(key))

    def normalize_tombstone(self, key: bytes | None, topic: str) -> NormalizedEvent | None:
        """Return the delete of the row with the message key, or None if the message has no key.

        Raises RecordError if the key is invalid.
        """
        opened = self._keys.open(key)
        if opened.envelope is None:
            return None
        normalizer = self._latest.get(topic) or self._normalizer(topic, NO_ENVELOPE)
        return NormalizedEvent(normalizer, (normalizer.delete(NULL),), opened)

    def _normalizer(self, topic: str, envelope: Envelope) -> TableNormalizer:
        which = (topic, envelope)
        normalizer = self._normalizers.get(which)
        if normalizer is None:
            normalizer = self._normalizers.keep(
                which, TableNormalizer(topic_table(topic), (), envelope.columns, envelope=envelope)
            )
        self._latest[topic] = normalizer
        return normalizer


def topic_table(topic: str) -> SourceTable:
    """Return the source table after which a topic is named, as in `prefix.schema.table`.

    The last part of the name is the table, the part before it the schema, and the rest the
    database; parts that are missing or empty are None. If the last part is empty, the table is the
    whole name.
    """
    *qualifiers, table = topic.split(".")
    schema = qualifiers[-1] if qualifiers else None
    return SourceTable(".".join(qualifiers[:-1]) or None, schema or None, table or topic)


def _layout(normalizer: TableNormalizer, plan: RowPlan) -> OneRow | None:
    """Return the native layout of a topic's messages, or None if only Python can decode them."""
    specs = plan.specs
    if specs is None or any(column.name == PAYLOAD for column in plan.columns):
        return None
    return OneRow(specs.whole, (), None, _inserts, no_log)


def _inserts(columns: Columns) -> Kinds:
    return np.full(columns[()].seen, RowKind.INSERT, np.int8)


FORMAT = FormatDescriptor(
    name="json",
    description="Rows in JSON",
    new_decoder=new_format,
    fallback="object",
    registry="optional",
    type_mapping=JSON_TYPE_MAPPINGS,
)
