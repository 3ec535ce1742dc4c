"""Decode messages that are rows with registered schemas, without an envelope or an operation.

Each message inserts a row into the table after which its topic is named. If message keys have a
schema, their fields are the primary key, and a message without a value deletes the row with its
key. Keys of a topic are ignored if none of the first keys has a schema; else a key without a schema
rejects its record.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Protocol

import numpy as np

from ingestd.cdc.avro.aliases import Names, alias_events
from ingestd.cdc.avro.envelope import Changes
from ingestd.cdc.avro.rows import AvroChanges, AvroColumn, change_batch
from ingestd.cdc.base import (
    ColumnTypes,
    Comments,
    Decoded,
    KnownColumns,
    RecordChunk,
    comment_events,
)
from ingestd.cdc.columns.arrow_calls import struct_of
from ingestd.cdc.formats.plain_json import topic_table
from ingestd.cdc.record_errors import Reasons, RecordError, rejected
from ingestd.cdc.schema_frames import FrameGroup, Refine, SchemaFrame, frame_of, grouped, tombstones
from ingestd.cdc.schema_lookup import Framing

_FIRST_KEYS = 100
"""The number of keys of a chunk that are read to find out whether keys have a schema."""
Fields = Mapping[str, AvroColumn]
"""The columns of messages, by name."""


class FieldReader(Protocol):
    """A reader of messages with registered schemas into columns, for Avro or Protobuf."""

    @property
    def refine(self) -> Refine | None:
        """A function that adds the message type to a schema frame; None if not needed."""
        ...

    def read(
        self, frame: SchemaFrame, messages: Sequence[bytes], stage: str, refused: Reasons
    ) -> Fields:
        """Read messages into columns; add the reasons of rejected messages to `refused`, by index.

        `stage` is the stage that errors and reasons state, such as "decode". Raises RecordError if
        the schema cannot be used, SourceError if the registry does not respond, and ConfigError if
        it rejects the credentials.
        """
        ...

    def former(self, frame: SchemaFrame) -> Names:
        """Return (old name, new name) of each field that was renamed in the registered schemas."""
        ...

    def comments(self, frame: SchemaFrame) -> Comments:
        """Return the comments of the table and its columns in the registered schema."""
        ...


class PlainRecords:
    """A decoder of rows with registered schemas, for the format `name`.

    `framing` states how messages refer to their schemas, and `reader` decodes the messages of each
    schema. For each topic, it is cached whether message keys have a schema.
    """

    def __init__(self, name: str, reader: FieldReader, framing: Framing) -> None:
        self.name = name
        self._reader = reader
        self._framing = framing
        self._keyed: dict[str, bool] = {}

    def decode(self, chunk: RecordChunk, known: KnownColumns, declared: KnownColumns) -> Decoded:
        """Decode a chunk; invalid records are returned as rejected records.

        `declared` are the columns whose types are configured; `known` is not used. Raises
        SourceError if the registry does not respond; ConfigError if it rejects the credentials, or
        if the messages are too large to be read together; UnsupportedError if a declared type has
        no Arrow type.
        """
        keyed = self._has_keys(chunk)
        types = declared.get(topic_table(chunk.topic), {})
        groups = grouped(chunk, self._framing, with_keys=keyed, refine=self._reader.refine)
        deletes = []
        if keyed:
            deletes = tombstones(chunk, lambda index, key: self._key_frame(chunk, index, key))
        decoded = Decoded([], [], [], 0)
        for group in groups:
            self._add(chunk, group, types, decoded)
        for group in deletes:
            self._add(chunk, group, types, decoded)
        decoded.rejected.sort(key=lambda record: record.offset)
        used = sum(len(group.indices) for group in (*groups, *deletes))
        return replace(decoded, control=len(chunk.values) - used)

    def _has_keys(self, chunk: RecordChunk) -> bool:
        keyed = self._keyed.get(chunk.topic)
        if keyed is not None:
            return keyed
        present = ((index, key) for index, key in enumerate(chunk.keys) if key is not None)
        keys = list(islice(present, _FIRST_KEYS))
        keyed = any(self._is_readable(chunk, index, key) for index, key in keys)
        # A few unreadable keys do not prove that the other keys of the topic are unreadable, too.
        if keyed or len(keys) == _FIRST_KEYS:
            self._keyed[chunk.topic] = keyed
        return keyed

    def _is_readable(self, chunk: RecordChunk, index: int, key: bytes) -> bool:
        refused: Reasons = {}
        try:
            self._reader.read(self._key_frame(chunk, index, key), [key], "key", refused)
        except RecordError:
            return False
        return not refused

    def _key_frame(self, chunk: RecordChunk, index: int, key: bytes) -> SchemaFrame:
        headers = None if chunk.headers is None else chunk.headers[index]
        frame, refine = frame_of(self._framing, key, headers, is_key=True), self._reader.refine
        return frame if refine is None else refine(frame, key)

    def _add(
        self, chunk: RecordChunk, group: FrameGroup, declared: ColumnTypes, decoded: Decoded
    ) -> None:
        refused: Reasons = {}
        try:
            keys = None
            if group.key is not None:
                keys = self._reader.read(group.key, group.keys, "key", refused)
            rows: Fields = {}
            if len(group.values):
                rows = self._reader.read(group.value, group.values, "decode", refused)
        except RecordError as error:
            refused = dict.fromkeys(range(len(group.indices)), error.reason)
        else:
            table = _table(chunk, group, rows, keys, declared)
            valid = np.delete(np.arange(len(group.indices)), list(refused))
            batch = change_batch(table.take(valid), refused)
            if batch is not None:
                decoded.batches.append(batch)
            if batch is not None and len(group.values):
                names = self._reader.former(group.value)
                decoded.schema_changes.extend(alias_events(chunk, batch, names))
                comments = self._reader.comments(group.value)
                decoded.schema_changes.extend(comment_events(chunk, batch, comments))
        decoded.rejected.extend(
            rejected(chunk, int(group.indices[index]), reason, topic_table(chunk.topic))
            for index, reason in refused.items()
        )


def _table(
    chunk: RecordChunk, group: FrameGroup, rows: Fields, keys: Fields | None, declared: ColumnTypes
) -> AvroChanges:
    size = len(group.indices)
    after = struct_of({name: record_field.array for name, record_field in rows.items()}, size)
    changes = Changes(
        table=topic_table(chunk.topic),
        indices=np.arange(size),
        operations=np.full(size, "c" if len(group.values) else "d"),
        before=None,
        after=after if len(group.values) else None,
        source={},
    )
    columns = {name: record_field.column for name, record_field in rows.items()}
    nodes = {name: record_field.node for name, record_field in rows.items()}
    return AvroChanges.of(changes, columns, nodes, keys, declared, chunk.offsets[group.indices])
