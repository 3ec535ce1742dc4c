"""The column limit of a table, `schema.max-columns`, for first schemas and for added columns.

If `policy.fails`, columns beyond the limit stop the pipeline. Otherwise columns are added up to the
limit, and values of other columns are handled row by row.
"""

from collections.abc import Collection, Mapping

from ingestd.errors import SchemaConflictError
from ingestd.ingest.schemas.discovery import Discovery
from ingestd.ingest.settings.context import TableSettings
from ingestd.ingest.settings.evolution_policy import EvolutionPolicy
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.merge_rules import columns_named
from ingestd.wording import counted

_Types = Mapping[str, DataType]


def new_columns(
    table: str,
    requested: _Types,
    current: _Types,
    policy: EvolutionPolicy,
    discoveries: list[Discovery],
) -> frozenset[str]:
    """Return the names of the requested columns that are added to a table with columns `current`.

    If `policy.mode` is "none", no column is added. Otherwise columns are added in the given order,
    up to the limit. Raises SchemaConflictError if they exceed the limit and `policy.fails`.
    `discoveries` identify the records that need the columns, for the message.
    """
    new = [name for name in requested if name not in current]
    room = max(0, policy.column_limit - len(current))
    if len(new) > room and policy.fails and policy.mode != "none":
        has = f"table {table} has {counted(len(current), 'column')}"
        raise _too_many(has, new, room, policy, discoveries)
    return frozenset(new[:room] if policy.mode != "none" else ())


def first_columns(
    table: str,
    columns: _Types,
    keys: Collection[str],
    settings: TableSettings,
    discoveries: list[Discovery],
) -> dict[str, DataType]:
    """Return the columns of a new table, limited to the maximum number of columns.

    Columns in `keys` and columns named in the configuration take precedence. Raises
    SchemaConflictError if these columns alone exceed the limit, or if all columns exceed it and the
    policy fails. `discoveries` identify the records that need the columns, for the message.
    """
    limit, policy = settings.evolution.column_limit, settings.evolution
    if len(columns) <= limit:
        return dict(columns)
    shape = settings.shape
    named = {*keys, *columns_named(settings.options), *shape.needed(), *settings.column_types}
    named |= shape.added()
    first = [name for name in columns if name in named]
    rest = [name for name in columns if name not in named]
    room = limit - len(first)
    if policy.fails or room < 0:
        has = f"table {table} cannot be created: it would have {counted(len(columns), 'column')}"
        raise _too_many(has, [*first, *rest], limit, policy, discoveries)
    taken = {*first, *rest[:room]}
    return {name: data_type for name, data_type in columns.items() if name in taken}


def _too_many(
    has: str, new: list[str], room: int, policy: EvolutionPolicy, discoveries: list[Discovery]
) -> SchemaConflictError:
    beyond = new[room]
    source = next(
        (discovery for discovery in discoveries if beyond in discovery.columns), discoveries[0]
    )
    return SchemaConflictError(
        f"{has}, and {source} brings {len(new)} new ones, such as '{beyond}': more than "
        f"schema.max-columns, {policy.column_limit}; raise it if the table is meant to have them, "
        "exclude columns by select.include or select.exclude, or choose what happens to records "
        "that have more (schema.on-incompatible-schema: dead-letter or ignore)"
    )
