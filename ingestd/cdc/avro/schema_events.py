"""Debezium's schema change events in Avro: read whole, as there are few of them."""

import numpy as np

from ingestd.cdc.avro.cursor import AvroCursor
from ingestd.cdc.avro.nodes import AvroNode
from ingestd.cdc.avro.reader import read_fields
from ingestd.cdc.base import RecordChunk, SchemaChangeEvent
from ingestd.cdc.ddl.schema_events import ddl_events_of
from ingestd.cdc.schema_frames import FrameGroup

_FIELDS = ("source", "databaseName", "schemaName", "ddl", "tableChanges")


def statements(chunk: RecordChunk, group: FrameGroup, node: AvroNode) -> list[SchemaChangeEvent]:
    """Return the column changes that control messages prove; none if they are of another kind."""
    if not set(_FIELDS) <= set(node.names):
        return []
    cursor = AvroCursor(group.values, group.value.skip)
    fields = read_fields(cursor, node, dict.fromkeys(_FIELDS))
    cursor.finish()
    cells = {name: fields[name].to_pylist() for name in _FIELDS}
    found: list[SchemaChangeEvent] = []
    for index in np.flatnonzero(~cursor.bad).tolist():
        message = {name: values[index] for name, values in cells.items()}
        found += [event.at(chunk, group.indices[index]) for event in ddl_events_of(message)]
    return found
