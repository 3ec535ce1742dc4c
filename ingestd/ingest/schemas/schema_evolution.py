"""Plan the schema changes that a batch needs, from the discoveries of all tasks.

Columns are added, and types are only widened, to the narrowest type that holds old and new values.
Columns are renamed or dropped only if the configuration declares it or DDL of the source proves it.
A table gets at most one new schema version per plan. The evolution policy of a table limits which
changes of its source are applied.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from ingestd.errors import ConfigError, SchemaConflictError, UnsupportedError
from ingestd.ingest.schemas.column_history import (
    COLUMN_HISTORY_OPTION,
    ProvenChange,
    column_history_text,
    followed_types,
    read_column_history,
)
from ingestd.ingest.schemas.column_limit import new_columns
from ingestd.ingest.schemas.discovery import Discovery, in_order
from ingestd.ingest.schemas.new_tables import first_schema, together
from ingestd.ingest.settings.context import BatchContext, TableSettings
from ingestd.ingest.settings.evolution_policy import EvolutionPolicy, rejection_reason
from ingestd.ingest.settings.rejection import SourceRejection
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.schema_apply import apply_changes
from ingestd.paimon.spec.schema_change import (
    AddColumn,
    DropColumn,
    RenameColumn,
    SchemaChange,
    SetOption,
    UpdateColumnType,
)
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.paimon.spec.type_casts import can_cast


@dataclass(frozen=True, slots=True)
class Evolution:
    """Planned schema changes: first schemas of new tables, and changes to existing tables.

    `refused` maps each table that cannot be created to the reason.
    """

    creates: Mapping[str, TableSchema]
    changes: Mapping[str, tuple[SchemaChange, ...]]
    refused: Mapping[str, SourceRejection] = field(default_factory=dict)


def plan(context: BatchContext, discoveries: Iterable[Discovery], now_ms: int) -> Evolution:
    """Plan one schema version for each table with discoveries.

    Tables that are not in the context are created. Raises SchemaConflictError, which names the
    column, the discovery and the solution, if a change is not possible or not allowed; raises
    ConfigError or UnsupportedError if table options are invalid. If the evolution policy does not
    fail, a table that cannot be created is in `refused` instead.
    """
    by_table: dict[str, list[Discovery]] = {}
    for found in in_order(discoveries):
        by_table.setdefault(found.table, []).append(found)
    creates: dict[str, TableSchema] = {}
    changes: dict[str, tuple[SchemaChange, ...]] = {}
    refused: dict[str, SourceRejection] = {}
    for table, found_there in sorted(by_table.items()):
        known = context.tables.get(table)
        if all(one.is_idle for one in found_there):
            continue
        if known is None:
            try:
                creates[table] = first_schema(context, table, found_there, now_ms)
            except (SchemaConflictError, ConfigError, UnsupportedError) as error:
                if context.settings_of(table).evolution.fails:
                    raise
                refused[table] = SourceRejection("schema", "impossible-table", error.message)
            continue
        settings = context.settings_of(table)
        changed = _changes(known.table.schema, table, found_there, settings)
        if changed:
            changes[table] = changed
    return Evolution(creates, changes, refused)


def _changes(
    schema: TableSchema, table: str, found: list[Discovery], settings: TableSettings
) -> tuple[SchemaChange, ...]:
    policy = settings.evolution
    changes: list[SchemaChange] = [RenameColumn(*names) for names in policy.renames(schema)]
    if changes:
        schema = apply_changes(schema, changes, schema.time_millis)
    column_history = tuple(sorted({change for discovery in found for change in discovery.proven}))
    for one in column_history:
        followed = column_changes(schema, one)
        schema = apply_changes(schema, followed, schema.time_millis)
        changes += followed
    # Newer columns under an old name are discovered when the batch runs again.
    found = [replace(one, columns=followed_types(one.columns, column_history)) for one in found]
    dropped = list(policy.drops(schema))
    changes += map(DropColumn, dropped)
    current = {one.name: one.type for one in schema.fields if one.name not in dropped}
    wanted = _wanted(current, found, policy)
    taken = new_columns(table, wanted, current, policy, found)
    for name, data_type in wanted.items():
        target = (settings.column_types.get(name) or data_type).as_nullable()
        if name in current and target == current[name].as_nullable():
            continue
        if _is_refused(schema, table, name, target, policy, found):
            continue
        if name in taken:
            changes.append(AddColumn(name, target))
        elif name in current:
            changes.append(UpdateColumnType(name, _keeping_nulls(target, current[name])))
    return tuple(changes)


def column_changes(schema: TableSchema, proven: ProvenChange) -> list[SchemaChange]:
    """Return the schema changes for a rename or drop at the source.

    They include the updated column history.
    """
    changes: list[SchemaChange] = []
    if proven.old in schema.field_names:
        renamed = RenameColumn(proven.old, proven.new)
        changes.append(renamed if proven.new else DropColumn(proven.old))
    column_history = (*read_column_history(schema.options, ""), proven)
    return [*changes, SetOption(COLUMN_HISTORY_OPTION, column_history_text(column_history))]


def _wanted(
    current: Mapping[str, DataType], found: list[Discovery], policy: EvolutionPolicy
) -> dict[str, DataType]:
    """Return the merged type of each discovered column."""
    wanted: dict[str, DataType] = {}
    for one in found:
        for name, data_type in one.columns.items():
            known = wanted.get(name) or current.get(name)
            wanted[name] = together(known, data_type, one, name, policy)
    return wanted


def _is_refused(
    schema: TableSchema,
    table: str,
    name: str,
    target: DataType,
    policy: EvolutionPolicy,
    found: list[Discovery],
) -> bool:
    """Return whether a change is not allowed.

    Raises SchemaConflictError in this case if `policy.fails`.
    """
    if policy.on_refused == "string" and target.root == "STRING":
        return False
    why = rejection_reason(schema, name, target, policy)
    if why is None or not policy.fails:
        return why is not None
    if name in schema.field_names:
        _refuse_key_change(schema, table, name, target, found)
        _refuse_cast(schema, table, name, target, found)
    source = next((one for one in found if name in one.columns), found[0])
    raise SchemaConflictError(
        f"table {table}: {source} brings column '{name}' as {target}, but {why}; allow the change "
        "(schema.evolution), or choose what happens to such records "
        "(schema.on-incompatible-schema)"
    )


def _keeping_nulls(target: DataType, current: DataType) -> DataType:
    return replace(target, nullable=current.nullable)


def _refuse_key_change(
    schema: TableSchema, table: str, name: str, target: DataType, found: list[Discovery]
) -> None:
    keys = {"primary key": schema.primary_keys, "partition key": schema.partition_keys}
    for kind, columns in keys.items():
        if name in columns:
            source = next(one for one in found if name in one.columns)
            raise SchemaConflictError(
                f"table {table}: {kind} column '{name}' is {schema.field(name).type}, and "
                f"{source} brings values that need {target}; a key column cannot change its "
                f"type: move the table away and let it be created again, with '{name}: "
                f"{target}' in its schema.column-types"
            )


def _refuse_cast(
    schema: TableSchema, table: str, name: str, target: DataType, found: list[Discovery]
) -> None:
    current = schema.field(name).type
    if not can_cast(current, target):
        source = next((one for one in found if name in one.columns), found[0])
        raise SchemaConflictError(
            f"table {table}: column '{name}' is {current}, and {source} brings values that need "
            f"{target}; this type cannot be changed: fix it in the table's "
            "schema.column-types, or route the source table to another target"
        )
