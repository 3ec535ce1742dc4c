"""Normalize row changes of all JSON formats into the one form that row plans read.

A format determines the table, operation and images of each message; the images keep the bytes of
the message. The same row plans can therefore read the columns of all formats.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import msgspec

from ingestd.cdc.base import SourceTable
from ingestd.cdc.columns.wire_column import WireColumn
from ingestd.cdc.debezium_envelope import BARE, Shape
from ingestd.cdc.message_key import NO_KEY, MessageKey

INSERT, UPDATE, DELETE = b"c", b"u", b"d"
NULL = b"null"
STREAMED, SNAPSHOT = b',"snapshot":"false"', b',"snapshot":"true"'
"""Fields that mark rows of the log and rows of a snapshot."""

_MAX_FORMS = 2000
_encode = msgspec.json.encode


@dataclass(frozen=True, slots=True, eq=False)
class TableNormalizer:
    """Messages of one table whose rows have the same columns.

    `key_names` is the key in the messages, `columns` the columns whose types the messages contain
    (None: no types). `hidden` are fields of rows that are not columns. With `partial` updates omit
    columns that they did not change; with `images` before images are decoded, too. `constants` are
    fields with the JSON text that they have in all messages; a null field may be absent.
    """

    source: SourceTable
    key_names: tuple[str, ...] = ()
    columns: tuple[WireColumn, ...] | None = None
    hidden: frozenset[str] = frozenset()
    partial: bool = False
    images: bool = False
    constants: Mapping[str, bytes] = field(default_factory=dict)
    opening: bytes = field(init=False)
    quoted_keys: tuple[bytes, ...] = field(init=False)

    def __post_init__(self) -> None:
        names = zip((b"db", b"schema", b"table"), self.source, strict=True)
        named = [b'"%s":%s' % (field, _encode(name)) for field, name in names if name is not None]
        object.__setattr__(self, "opening", b'{"source":{' + b",".join(named))
        object.__setattr__(self, "quoted_keys", tuple(map(_encode, self.key_names)))

    def key_of(self, before: bytes) -> bytes:
        """Return the before image of an update; null if it lacks the key, which then is unchanged.

        With `images` it is always the image.
        """
        if self.images or not self.quoted_keys:
            return before
        for name in self.quoted_keys:
            if name in before:
                return before
        return NULL

    def insert(self, after: bytes, where: bytes = STREAMED) -> bytes:
        """Return the event of an insert. `where` are the fields of its log position."""
        return b'%s%s},"op":"c","after":%s}' % (self.opening, where, after)

    def update(self, after: bytes, before: bytes = NULL, where: bytes = STREAMED) -> bytes:
        """Return the event of an update; only the key of `before` is read."""
        return b'%s%s},"op":"u","before":%s,"after":%s}' % (self.opening, where, before, after)

    def delete(self, before: bytes, where: bytes = STREAMED) -> bytes:
        """Return the event of a delete."""
        return b'%s%s},"op":"d","before":%s,"after":null}' % (self.opening, where, before)


class NormalizedEvent(msgspec.Struct, gc=False):
    """The changes of one message, its key if it is the key of the row, and its envelope."""

    form: TableNormalizer
    changes: tuple[bytes, ...]
    key: MessageKey = NO_KEY
    shape: Shape = BARE


class TruncateEvent(NamedTuple):
    """A truncated table; `position` is None if its log position is unknown."""

    source: SourceTable
    position: int | None


class DdlEvent(NamedTuple):
    """Renamed and dropped columns of a table (old name, new name or None).

    `position` is None if the log position of the statement is unknown.
    """

    source: SourceTable
    position: int | None
    columns: tuple[tuple[str, str | None], ...]


class TableNormalizers:
    """Caches normalizers by the fields of a message that determine them."""

    def __init__(self, *, images: bool = False) -> None:
        self._images = images
        self._forms: dict[Hashable, TableNormalizer] = {}

    def get(self, which: Hashable) -> TableNormalizer | None:
        """Return the cached normalizer."""
        return self._forms.get(which)

    def keep(self, which: Hashable, form: TableNormalizer) -> TableNormalizer:
        """Cache a normalizer and return it."""
        if len(self._forms) >= _MAX_FORMS:
            self._forms.clear()
        kept = replace(form, images=True) if self._images else form
        self._forms[which] = kept
        return kept


def text_of(name: str | None) -> bytes:
    """Return a name as JSON."""
    return _encode(name)


def where_in_log(position: int | None, *, snapshot: bool = False) -> bytes:
    """Return the fields of the log position of a change."""
    mark = SNAPSHOT if snapshot else STREAMED
    return mark if position is None or position < 0 else b',"lsn":%d%s' % (position, mark)
