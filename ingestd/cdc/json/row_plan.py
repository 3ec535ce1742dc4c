"""Decode the messages of one source table into structs: the columns, and the fields of the key.

A row plan decodes the bytes of many messages in one call. It rejects columns that it does not have,
and skips fields that are not needed: it reads only the key of a `before` image, unless before
images are requested. msgspec does not accept field names that must be escaped in JSON, because they
contain quotes, backslashes or control characters. A plan has an escaped name for such a column, and
messages that Python decodes are first rewritten to contain this name. Only such tables need a
second pass over their messages.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Literal

import msgspec

from ingestd.cdc.base import SourceTable
from ingestd.cdc.columns.column_reader import PlanColumn
from ingestd.cdc.columns.json_columns import choose_reader
from ingestd.cdc.columns.json_inference import JsonKinds, default_kinds
from ingestd.cdc.columns.wire_column import WireColumn
from ingestd.cdc.json.message_layout import (
    NativeReader,
    RowSpecs,
    native_reader_of_events,
    row_specs,
)
from ingestd.cdc.native_module import NativeModule
from ingestd.cdc.source_position import SourcePosition

Row = Any
"""A struct with one attribute for each column, which is UNSET if the message lacks the field."""
_FIRST, _LAST = itemgetter(0), itemgetter(-1)
_Normalize = Callable[[bytes], bytes]
_MARK = "\x7f"
_ESCAPED = re.compile(r'["\\\x00-\x1f\x7f]')
_ESCAPE = re.compile(r"\x7f([0-9a-f]{2})")

_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode_fields = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Decoders:
    """The msgspec decoders of one message type: for a single message, and for joined lines.

    `lines` is None if messages can be decoded only one by one.
    """

    single: Callable[[bytes], Any]
    lines: Callable[[bytes], list[Any]] | None

    def many(self, messages: Sequence[bytes]) -> list[Any]:
        """Decode messages, each of which must be one JSON object.

        Raises MsgspecError, UnicodeDecodeError or RecursionError if one is not. The messages are
        joined by newlines and decoded in one call. If all of them start and end with braces, and
        the number of objects equals the number of messages, each message is one object; otherwise
        the messages are decoded one by one.
        """
        if self.lines is not None and _all_braced(messages):
            decoded = self.lines(b"\n".join(messages))
            if len(decoded) == len(messages):
                return decoded
        single = self.single
        return [single(message) for message in messages]


def _all_braced(messages: Sequence[bytes]) -> bool:
    try:
        return set(map(_FIRST, messages)) == {0x7B} and set(map(_LAST, messages)) == {0x7D}
    except IndexError:  # an empty message
        return False


@dataclass(frozen=True, slots=True)
class RowWants:
    """Options for the conversion of messages to rows.

    `partial` states that updates omit unchanged columns, `images` that before images are requested,
    and `presence` that rows without a column are marked. `hidden` are fields of rows that are not
    columns.
    """

    partial: bool = False
    images: bool = False
    presence: bool = False
    hidden: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class RowPlan:
    """The decoders of one table's messages, and the readers of its columns.

    `changes` decodes normalized events, and `keys` message keys. A column has the same struct
    attribute in keys, in the keys of `before` images and in rows. `before` images are decoded as
    whole rows if the table has no key or before images are requested, else as keys. If messages
    have no key although the table has one, the key is in the images. `empty_row` is a row of nulls.
    `specs` is None if only Python can decode the rows, and `native` is None if only Python can
    decode normalized events.
    """

    source: SourceTable
    columns: tuple[PlanColumn, ...]
    key_names: tuple[str, ...]
    changes: Decoders
    keys: Decoders
    empty_row: Row
    specs: RowSpecs | None
    native: NativeReader | None
    wants: RowWants


def make_plan(
    source: SourceTable,
    columns: Mapping[str, WireColumn | None],
    kinds: Mapping[str, JsonKinds],
    key_names: tuple[str, ...],
    module: NativeModule | None = None,
    *,
    wants: RowWants = RowWants(),
) -> RowPlan:
    """Return the plan for rows with these columns, given the kinds of values of each column.

    A column is None as long as all its values have been null. Key columns must be among the
    columns. If `module` is given, the plan has native readers where possible. Raises
    UnsupportedError if JSON values cannot be read as the type of a column.
    """
    plan_columns = tuple(
        _plan_column(number, name, column, kinds.get(name))
        for number, (name, column) in enumerate(columns.items())
    )
    by_name = {column.name: column for column in plan_columns}
    key_columns = tuple(by_name[name] for name in key_names)
    row = _struct("Row", plan_columns, forbid_unknown_fields=True)
    before = row if wants.images or not key_names else _struct("BeforeKey", key_columns)
    key = _struct("Key", key_columns, required=True, forbid_unknown_fields=True)
    plain, change = all(map(has_plain_name, columns)), _change_struct(source, row, before)
    changes = _decoders(change, None if plain else escape_image_names)
    keys = _decoders(key, None if plain else escape_field_names)
    specs = row_specs(plan_columns, key_columns, images=wants.images) if module else None
    native = native_reader_of_events(module, source, specs) if module and specs else None
    return RowPlan(
        source=source,
        columns=plan_columns,
        key_names=key_names,
        changes=changes,
        keys=keys,
        empty_row=row(**dict.fromkeys((c.attribute for c in plan_columns), None)),
        specs=specs,
        native=native,
        wants=wants,
    )


def _decoders(struct: type[msgspec.Struct], normalize: _Normalize | None) -> Decoders:
    decoder = msgspec.json.Decoder(struct)
    if normalize is None:
        return Decoders(decoder.decode, decoder.decode_lines)
    return Decoders(with_own_names(lambda message: decoder.decode(normalize(message))), None)


def _plan_column(
    number: int, name: str, column: WireColumn | None, kinds: JsonKinds | None
) -> PlanColumn:
    if column is None:
        return PlanColumn(name, None, None, f"c{number}")
    reader = choose_reader(column, kinds or default_kinds(column))
    return PlanColumn(name, column, reader, f"c{number}")


def _struct(
    title: str,
    columns: Sequence[PlanColumn],
    *,
    required: bool = False,
    forbid_unknown_fields: bool = False,
) -> type[msgspec.Struct]:
    fields: list[Any] = []
    for column in columns:
        wire = column.wire
        if required:
            fields.append((column.attribute, wire))
        else:
            fields.append((column.attribute, wire, column.default))
    return msgspec.defstruct(
        title,
        fields,
        rename={column.attribute: escaped_name(column.name) for column in columns},
        forbid_unknown_fields=forbid_unknown_fields,
        eq=False,
        gc=False,
    )


def _change_struct(
    source: SourceTable, row: type[msgspec.Struct], before: type[msgspec.Struct]
) -> type[msgspec.Struct]:
    """Return the struct of a change, which accepts only messages of this source table."""
    names: list[Any] = [("table", Literal[source.table])]
    for field, name in (("db", source.database), ("schema", source.schema)):
        names.append((field, None, None) if name is None else (field, Literal[name]))
    # Fields without a default come first.
    names.sort(key=len)
    position = msgspec.defstruct("Source", names, bases=(SourcePosition,), kw_only=True, gc=False)
    fields: list[Any] = [
        ("op", str),
        ("source", position),
        ("before", before | None, None),
        ("after", row | None, None),
    ]
    return msgspec.defstruct("Change", fields, eq=False, gc=False)


def has_plain_name(name: str) -> bool:
    """Return whether msgspec accepts a field name without escaping."""
    return _ESCAPED.search(name) is None


def escaped_name(name: str) -> str:
    """Escape a field name so that msgspec accepts it; different names remain different."""
    return _ESCAPED.sub(lambda match: f"{_MARK}{ord(match[0]):02x}", name)


def escape_field_names(message: bytes) -> bytes:
    """Escape the field names of a JSON object for msgspec, without changing its values.

    Raises MsgspecError, UnicodeDecodeError or RecursionError if a name may need escaping and the
    object is invalid.
    """
    if b"\\" not in message and b"\x7f" not in message:
        return message  # no name in it needs escaping
    return _renamed(message)


def escape_image_names(message: bytes) -> bytes:
    """Escape the field names in the row images of a normalized event for msgspec.

    Raises MsgspecError, UnicodeDecodeError or RecursionError if a name may need escaping and the
    event is invalid.
    """
    if b"\\" not in message and b"\x7f" not in message:
        return message
    fields = _decode_fields(message)
    for image in ("before", "after"):
        text = bytes(fields.get(image, b""))
        if text.startswith(b"{"):
            fields[image] = msgspec.Raw(_renamed(text))
    return _encode_fields(fields)


def _renamed(text: bytes) -> bytes:
    return _encode_fields(
        {escaped_name(name): value for name, value in _decode_fields(text).items()}
    )


def with_own_names(decode: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    """Wrap the decoder `decode` so that its errors contain the unescaped field names."""

    def decode_named(message: bytes) -> Any:  # noqa: ANN401  # the decoder's result
        try:
            return decode(message)
        except msgspec.ValidationError as error:
            raise msgspec.ValidationError(_own_names(str(error))) from error

    return decode_named


def _own_names(text: str) -> str:
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), text)
