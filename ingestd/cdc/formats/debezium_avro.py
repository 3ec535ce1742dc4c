"""Data format `debezium-avro`: Debezium change events in Avro, with schemas from a registry.

Messages with the same schema are read together into Arrow arrays. Rows, keys and positions are the
same as with `debezium-json`.
"""

import json
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ingestd.cdc.avro.aliases import schema_events
from ingestd.cdc.avro.envelope import (
    Changes,
    SortedEnvelopes,
    is_control,
    row_node,
    sort_messages,
    source_positions,
)
from ingestd.cdc.avro.nodes import AvroNode
from ingestd.cdc.avro.reader import AvroReader, rejections
from ingestd.cdc.avro.rows import AvroChanges, AvroColumn, change_batch
from ingestd.cdc.avro.writers import AvroRecord, AvroWriters
from ingestd.cdc.base import (
    UNKNOWN_POSITION,
    ChangeBatch,
    ColumnTypes,
    Decoded,
    FormatDescriptor,
    FormatSettings,
    KnownColumns,
    RecordChunk,
    SchemaChangeEvent,
    SourceTable,
    Truncate,
)
from ingestd.cdc.columns.arrow_calls import keep_rows
from ingestd.cdc.ddl.schema_events import ddl_events_of
from ingestd.cdc.record_errors import Reasons, RecordError, record_error, rejected
from ingestd.cdc.schema_frames import FrameGroup, grouped
from ingestd.cdc.schema_lookup import Framing, RegisteredSchema, SchemaLookup, lookup_of
from ingestd.paimon.spec.row_selection import Indices

_STATEMENT_FIELDS = ("source", "databaseName", "schemaName", "ddl", "tableChanges")


def new_format(settings: FormatSettings) -> "DebeziumAvro":
    """Return a new `debezium-avro` decoder. Raises ConfigError without a schema registry."""
    schemas = lookup_of(settings.schemas, "debezium-avro")
    return DebeziumAvro(schemas, settings.framing, images=settings.images)


class DebeziumAvro:
    """A decoder of Debezium change events in Avro.

    `framing` states how messages refer to their schemas, which `schemas` looks up. Schemas are
    cached, so one decoder should be used for many chunks. If `images`, the before images of changes
    are decoded, too.
    """

    name = "debezium-avro"

    def __init__(self, schemas: SchemaLookup, framing: Framing, *, images: bool = False) -> None:
        self._images = images
        self._writers = AvroWriters(schemas)
        self._reader = AvroReader()
        self._framing = framing

    def decode(self, chunk: RecordChunk, known: KnownColumns, declared: KnownColumns) -> Decoded:
        """Decode a chunk; invalid records are returned as rejected records.

        `declared` are the columns whose types are configured; `known` is not used. Raises
        SourceError if the registry does not respond; ConfigError if it rejects the credentials, or
        if the messages are too large to be read together; UnsupportedError if a declared type has
        no Arrow type.
        """
        decoded = Decoded([], [], [], chunk.values.count(None))
        control = decoded.control
        for group in grouped(chunk, self._framing):
            refused: Reasons = {}
            tables: dict[int, SourceTable] = {}
            control += self._decode_group(chunk, group, declared, decoded, refused, tables)
            decoded.rejected.extend(
                rejected(chunk, int(group.indices[index]), reason, tables.get(index))
                for index, reason in refused.items()
            )
        decoded.rejected.sort(key=lambda record: record.offset)
        return replace(decoded, control=control)

    def _decode_group(
        self,
        chunk: RecordChunk,
        group: FrameGroup,
        declared: KnownColumns,
        decoded: Decoded,
        refused: Reasons,
        tables: dict[int, SourceTable],
    ) -> int:
        """Add a group to `decoded`, `refused`, `tables`; return its number of control messages."""
        try:
            envelope = self._writers.node(group.value, "decode")
            if is_control(envelope, chunk.topic):
                decoded.schema_changes.extend(_statements(self._reader, chunk, group, envelope))
                return len(group.indices)
            key_record, row = self._key_record(group), row_node(envelope)
            sorted_changes = self._sorted(envelope, group, key_record)
            if sorted_changes.changes and row is None:
                message = "the rows of the event are not records"
                raise record_error("schema", "unsupported-envelope", message)
            row_record = None if row is None else self._writers.record(row)
        except RecordError as error:
            refused.update(dict.fromkeys(range(len(group.indices)), error.reason))
            return 0
        refused.update(sorted_changes.refused)
        for truncate in sorted_changes.truncates:
            decoded.truncates.extend(_truncates(chunk, group.indices, truncate))
        if row_record is not None and sorted_changes.changes:
            keys = None if key_record is None else self._keys(key_record, group, refused)
            offsets = chunk.offsets[group.indices]
            for changes in sorted_changes.changes:
                types = declared.get(changes.table, {})
                table = self._table_changes(changes, row_record, keys, types, offsets)
                batch = _valid_batch(table, refused, tables)
                if batch is not None:
                    decoded.batches.append(batch)
                    decoded.schema_changes.extend(schema_events(chunk, batch, row_record.node))
        return sorted_changes.control

    def _table_changes(
        self,
        changes: Changes,
        row: AvroRecord,
        keys: Mapping[str, AvroColumn] | None,
        declared: ColumnTypes,
        offsets: npt.NDArray[np.int64],
    ) -> AvroChanges:
        """Return the changes of a table; `keys` and `offsets` are those of the whole group."""
        indices = changes.indices
        keys = keys and {
            name: replace(key, array=keep_rows(key.array, indices)) for name, key in keys.items()
        }
        return AvroChanges.of(
            changes, row.columns, row.nodes, keys, declared, offsets[indices], images=self._images
        )

    def _sorted(
        self, envelope: AvroNode, group: FrameGroup, key: AvroRecord | None
    ) -> SortedEnvelopes:
        whole = self._images or key is None
        names = None if whole or key is None else key.node.names
        return sort_messages(self._reader, envelope, group.values, group.value.skip, names)

    def _key_record(self, group: FrameGroup) -> AvroRecord | None:
        """Return the record type of the keys of a group, or None if messages have no key fields.

        Raises RecordError if the keys are not records.
        """
        if group.key is None:
            return None
        node = self._writers.node(group.key, "key")
        if node.kind != "record":
            raise record_error("key", "not-an-object", "the message key is not an Avro record")
        return self._writers.record(node) if node.names else None

    def _keys(
        self, record: AvroRecord, group: FrameGroup, refused: Reasons
    ) -> dict[str, AvroColumn]:
        """Read the key fields of a group by name; add the reasons of invalid keys to `refused`."""
        skip = 0 if group.key is None else group.key.skip
        fields = self._reader.read(group.keys, skip, record.node)
        for index, reason in rejections(fields, "key").items():
            refused.setdefault(index, reason)
        return {
            name: AvroColumn(record.columns[name], node, fields.arrays[name])
            for name, node in record.nodes.items()
        }


def _valid_batch(
    table: AvroChanges, refused: Reasons, tables: dict[int, SourceTable]
) -> ChangeBatch | None:
    """Return a batch of the changes that are valid; add the others to `refused`.

    If any message of the group is refused, the table of these changes is added to `tables`.
    """
    changes = table.changes
    if refused:
        table = table.take(np.flatnonzero(~np.isin(changes.indices, list(refused))))
    batch = change_batch(table, refused)
    if refused:
        tables.update(dict.fromkeys(changes.indices.tolist(), changes.table))
    return batch


def _truncates(chunk: RecordChunk, indices: Indices, changes: Changes) -> list[Truncate]:
    source: SourceTable = changes.table
    positions = source_positions(changes.source, len(changes.indices)).tolist()
    return [
        Truncate(
            source,
            chunk.partition,
            int(chunk.offsets[indices[index]]),
            None if position == UNKNOWN_POSITION else position,
        )
        for index, position in zip(changes.indices.tolist(), positions, strict=True)
    ]


def _statements(
    reader: AvroReader, chunk: RecordChunk, group: FrameGroup, node: AvroNode
) -> list[SchemaChangeEvent]:
    """Return the column changes and comments in the schema change events of a group.

    The list is empty for other control messages.
    """
    if not set(_STATEMENT_FIELDS) <= set(node.names):
        return []
    fields = reader.read(group.values, group.value.skip, node, dict.fromkeys(_STATEMENT_FIELDS))
    cells = {name: fields.arrays[name].to_pylist() for name in _STATEMENT_FIELDS}
    events: list[SchemaChangeEvent] = []
    for index in np.flatnonzero(~fields.bad).tolist():
        message = {name: values[index] for name, values in cells.items()}
        events += [event.at(chunk, int(group.indices[index])) for event in ddl_events_of(message)]
    return events


def _is_envelope(schema: RegisteredSchema) -> bool:
    if schema.kind != "AVRO":
        return False
    record = json.loads(schema.text)
    fields = record.get("fields", ()) if isinstance(record, dict) else ()
    return {"op", "source"} <= {field.get("name") for field in fields}


FORMAT = FormatDescriptor(
    name="debezium-avro",
    description="Debezium, Avro converter",
    new_decoder=new_format,
    recognizes_schema=_is_envelope,
    registry="required",
    source_position=True,
    truncates=True,
    schema_changes=True,
)
