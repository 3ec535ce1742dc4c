"""Aliases in Avro schemas: former names of a record's fields.

An alias is proof of a rename for as long as messages are written with its schema.
"""

from ingestd.cdc.avro.nodes import AvroNode
from ingestd.cdc.base import ChangeBatch, RecordChunk, SchemaChangeEvent

Names = tuple[tuple[str, str], ...]
"""Old and new names of fields."""


def former_names(record: AvroNode) -> Names:
    """Return old and new names of a record's fields.

    An alias that is the name of another field is left out.
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


def alias_events(chunk: RecordChunk, batch: ChangeBatch, names: Names) -> list[SchemaChangeEvent]:
    """Return the renames that apply to the table of a batch: older rows have the old names."""
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
