"""The common type of a column in several discoveries."""

from ingestd.errors import SchemaConflictError
from ingestd.ingest.schemas.discovery import Discovery
from ingestd.ingest.settings.evolution_policy import EvolutionPolicy
from ingestd.ingest.values.type_merge import merge_types
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.type_casts import can_cast

_TEXT = DataType("STRING")


def together(
    known: DataType | None,
    found: DataType,
    where: Discovery,
    name: str,
    policy: EvolutionPolicy,
) -> DataType:
    """Return a type that holds the known and the discovered type of a column.

    If no type holds both, return the known one when the policy handles the other's values, else
    raise SchemaConflictError.
    """
    if known is None:
        return found.as_nullable()
    merged = merge_types(known, found, fresh=where.fresh)
    if merged is not None:
        return merged
    if policy.on_refused == "string" and can_cast(known, _TEXT):
        return _TEXT
    if not policy.fails:
        return known.as_nullable()
    raise SchemaConflictError(
        f"table {where.table}: column '{name}' is {known.as_nullable()}, and {where} brings "
        f"{found.as_nullable()}; no type holds both: fix the type in the table's "
        "schema.column-types, route the source table to another target, or choose what happens to "
        "such records (schema.on-incompatible-schema)"
    )
