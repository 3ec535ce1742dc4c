"""Aliases and comments in Avro schemas: former names and `doc` of the fields of a record.

An alias proves that the field was renamed.
"""

from ingestd.cdc.avro.nodes import AvroNode
from ingestd.cdc.base import (
    ChangeBatch,
    Comments,
    RecordChunk,
    SchemaChangeEvent,
    comment_events,
)

Names = tuple[tuple[str, str], ...]
"""Pairs of the old and the new name of a field."""


def former_names(record: AvroNode) -> Names:
    """Return (alias, name) for each alias of a field of the record, in the order of the fields.

    An alias that is the name of a field is omitted.
    """
    fields = record.properties.get("fields")
    renames: list[tuple[str, str]] = []
    for field in fields if isinstance(fields, list) else ():
        aliases = field.get("aliases")
        if isinstance(aliases, list):
            renames += [
                (alias, str(field["name"]))
                for alias in aliases
                if isinstance(alias, str) and alias not in record.names
            ]
    return tuple(renames)


def record_comments(record: AvroNode) -> Comments:
    """Return the `doc` of a record and of its fields, as comments of a table and its columns.

    Where `doc` is missing, the `connect.doc` of the type, which Connect's converter writes, is
    used.
    """
    properties = record.properties
    fields = zip(properties["fields"], record.names, record.children, strict=True)
    columns = (
        (name, field.get("doc") or child.present.properties.get("connect.doc"))
        for field, name, child in fields
    )
    return Comments.of(properties.get("doc") or properties.get("connect.doc"), columns)


def schema_events(
    chunk: RecordChunk, batch: ChangeBatch, record: AvroNode
) -> list[SchemaChangeEvent]:
    """Return the schema change events for the aliases and `doc` attributes of a record type.

    `batch` has the rows of this type, decoded from `chunk`. The list is empty if the type has
    neither.
    """
    renames = alias_events(chunk, batch, former_names(record))
    return renames + comment_events(chunk, batch, record_comments(record))


def alias_events(chunk: RecordChunk, batch: ChangeBatch, names: Names) -> list[SchemaChangeEvent]:
    """Return a list with one event that renames columns, which applies to the rows of a batch.

    `names` are the (old, new) names in the schema of the batch, whose rows were decoded from
    `chunk`. Without names the list is empty. The log position of the event is just before the
    smallest log position of the batch, or 0 if none is known.
    """
    if not names:
        return []
    known = batch.position[batch.position > 0]
    event = SchemaChangeEvent(
        source=batch.source,
        partition=chunk.partition,
        offset=int(batch.offset[0]),
        position=int(known.min()) - 1 if len(known) else 0,
        columns=names,
        is_repeated=True,
    )
    return [event]
