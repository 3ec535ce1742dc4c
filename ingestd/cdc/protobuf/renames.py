"""Names that fields of a message had in an earlier version of its schema.

A number never changes its meaning, so a field of the same number and type under another name was
renamed. A number that was given to a field of another type is not proof of a rename.

Specification: https://protobuf.dev/programming-guides/proto3/#updating
"""

from collections.abc import Iterable

from ingestd.cdc.avro.aliases import Names
from ingestd.cdc.protobuf.schema import ProtoField


def former_names(older: Iterable[ProtoField], newer: Iterable[ProtoField]) -> Names:
    """Return old and new names; an old name that another field has now is left out."""
    fields = list(newer)
    names = {field.name for field in fields}
    before = {one.number: one for one in older}
    pairs = ((before.get(field.number), field) for field in fields)
    return tuple(
        (old.name, new.name)
        for old, new in pairs
        if old is not None and old.name not in names and _same_type(old, new)
    )


def _same_type(old: ProtoField, new: ProtoField) -> bool:
    return (old.type_name, old.repeated, old.key_type) == (
        new.type_name,
        new.repeated,
        new.key_type,
    )
