"""Aliases in Avro schemas: names that fields of a record had before.

A field that is said to be another one renamed proves it for as long as the schema is written with.
"""

from ingestd.cdc.avro.nodes import AvroNode
from ingestd.cdc.base import ChangeBatch, RecordChunk, SchemaChangeEvent

Names = tuple[tuple[str, str], ...]
"""Old and new names of fields."""


def former_names(record: AvroNode) -> Names:
    """Old and new names of a record's fields; a name that another field has now is no old one."""
    fields = record.properties.get("fields")
    found: list[tuple[str, str]] = []
    for field in fields if isinstance(fields, list) else ():
        aliases = field.get("aliases")
        if isinstance(aliases, list):
            found += [
                (one, str(field["name"]))
                for one in aliases
                if isinstance(one, str) and one not in record.names
            ]
    return tuple(found)


def alias_events(chunk: RecordChunk, batch: ChangeBatch, names: Names) -> list[SchemaChangeEvent]:
    """What old names prove of the table of a batch: rows before it have them."""
    if not names:
        return []
    known = batch.position[batch.position > 0]
    event = SchemaChangeEvent(
        source=batch.source,
        partition=chunk.partition,
        offset=int(batch.offset[0]),
        position=int(known.min()) - 1 if len(known) else 0,
        columns=names,
        is_standing=True,
    )
    return [event]
