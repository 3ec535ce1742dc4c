"""Data format `ogg-json`: Oracle GoldenGate's JSON with one operation per message.

Compressed updates contain the key and the changed columns; other columns keep their values. Columns
marked by `COLUMN_isMissing` are also omitted.
"""

import re

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
    name_as_json,
    where_in_log,
)
from ingestd.cdc.json.row_plan import RowPlan
from ingestd.cdc.native_module import Columns, native_module
from ingestd.cdc.record_errors import record_error
from ingestd.cdc.row_layout import NO_KIND, Kinds
from ingestd.paimon.spec.data_types import RowKind

_NULL = msgspec.Raw(NULL)
_MISSING = "_isMissing"
_MISSING_MARK = b'_isMissing"'
_MARKS = frozenset({b"true", b"false", b'"true"', b'"false"', NULL})
_POSITION = re.compile(r"\d{1,20}")
_KINDS = (NO_KIND, RowKind.INSERT, RowKind.UPDATE_AFTER, RowKind.DELETE)
_DIGITS = 20
_WORDS = ("I", "U", "D")
_TABLE_FIELDS = TableFields((("table",), ("primary_keys",)), {("op_type",): texts_of(_WORDS)})


def new_format(settings: FormatSettings) -> JsonChanges:
    """Return a new `ogg-json` decoder with empty caches."""
    dialect = OggDialect(images=settings.images)
    return JsonChanges(
        "ogg-json", dialect, settings, native_module(), NativeFormat(_layout, _TABLE_FIELDS)
    )


class _Head(msgspec.Struct, gc=False):
    table: str
    op_type: str
    pos: str | None = None
    primary_keys: msgspec.Raw = _NULL
    before: msgspec.Raw = _NULL
    after: msgspec.Raw = _NULL


class OggDialect:
    """A converter of GoldenGate messages to changes.

    If `images`, the before images of updates are kept.
    """

    def __init__(self, *, images: bool = False) -> None:
        self._heads = HeadReader(_Head)
        self._normalizers = TableNormalizers(images=images)

    def normalize(
        self, value: bytes, key: bytes | None, topic: str
    ) -> NormalizedEvent | TruncateEvent:
        """Return the change or truncate of a message.

        Raises RecordError if the message is invalid.
        """
        head = self._heads.read(value)
        normalizer = self._normalizer(head)
        position = _position(head)
        if head.op_type == "T":
            return TruncateEvent(normalizer.source, position)
        where = where_in_log(position)
        before, after = _present(bytes(head.before)), _present(bytes(head.after))
        if head.op_type == "I":
            return NormalizedEvent(
                normalizer, (normalizer.insert(required(after, "after"), where),)
            )
        if head.op_type == "D":
            return NormalizedEvent(
                normalizer, (normalizer.delete(required(before, "before"), where),)
            )
        if head.op_type != "U":
            message = f"op_type of the message value is {head.op_type[:20]!r}, not I, U, D or T"
            raise record_error("decode", "unknown-op", message)
        required(after, "after")
        return NormalizedEvent(
            normalizer, (normalizer.update(after, normalizer.needed_before(before), where),)
        )

    def normalize_tombstone(self, key: bytes | None, topic: str) -> None:
        """Return None, because a message without a value is not a change."""
        return

    def _normalizer(self, head: _Head) -> TableNormalizer:
        which = (head.table, bytes(head.primary_keys))
        normalizer = self._normalizers.get(which)
        if normalizer is not None:
            return normalizer
        *qualifiers, table = required(head.table, "table").split(".")
        schema = qualifiers[-1] if qualifiers else None
        database = ".".join(qualifiers[:-1]) or None
        source = SourceTable(database, schema, required(table, "table"))
        keys = self._heads.names(head.primary_keys, "primary_keys")
        constants = {"table": name_as_json(head.table), "primary_keys": bytes(head.primary_keys)}
        normalizer = TableNormalizer(source, keys, partial=True, constants=constants)
        return self._normalizers.keep(which, normalizer)


def _position(head: _Head) -> int | None:
    """Return the position in the trail, or None if it is missing, invalid or exceeds 63 bits."""
    if head.pos is None or not _POSITION.fullmatch(head.pos):
        return None
    number = int(head.pos)
    return number if number < 2**63 else None


def _present(image: bytes) -> bytes:
    """Return a row image without the columns that are marked as missing, and without the marks.

    A field is a mark if its value is a boolean, a boolean as a string, or null; only true means
    missing. A field with another value is a column with the name of a mark.
    """
    if _MISSING_MARK not in image or image == NULL:
        return image
    fields = fields_of(image)
    marks = [
        name for name, value in fields.items() if name.endswith(_MISSING) and bytes(value) in _MARKS
    ]
    # All marks are removed first, because a mark may be named like the column of another mark.
    missing = [mark for mark in marks if bytes(fields.pop(mark)) == b"true"]
    for mark in missing:
        fields.pop(mark.removesuffix(_MISSING), None)
    return image_of(fields)


def _layout(normalizer: TableNormalizer, plan: RowPlan) -> TwoImages | None:
    """Return the native layout of a table's messages, or None if only Python can decode them."""
    specs = plan.specs
    if specs is None or any(column.name.endswith(_MISSING) for column in plan.columns):
        return None
    fields = [
        *constant_fields(normalizer.constants, ("table", "primary_keys")),
        ("op_type", True, words_spec(_WORDS)),
        ("pos", False, ("numbered", "", _DIGITS)),
        ("before", False, specs.old),
        ("after", False, specs.row),
    ]
    kinds = chosen(("op_type",), _KINDS)
    return TwoImages(open_object(fields), ("before",), ("after",), kinds, _log)


def _log(columns: Columns, kinds: Kinds) -> Log:
    size = len(kinds)
    pos, has_pos = numbers(columns, ("pos",), size)
    return Log(np.where(has_pos, pos, UNKNOWN_POSITION), np.zeros(size, np.bool_))


def _is_ogg(message: JsonObject) -> bool:
    return "op_type" in message


FORMAT = FormatDescriptor(
    name="ogg-json",
    description="Oracle GoldenGate",
    new_decoder=new_format,
    recognizes=_is_ogg,
    registry="optional",
    type_mapping=JSON_TYPE_MAPPINGS,
    source_position=True,
    truncates=True,
)
