"""Plan the schema changes that a batch needs, from the discoveries of all tasks.

Columns are added, and types are only widened, to the narrowest type that holds old and new values.
Columns are renamed or dropped only if the configuration declares the change or DDL of the source
contains it. A table gets at most one new schema version per plan. The evolution policy of a table
limits which changes of its source are applied.
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
from ingestd.ingest.schemas.source_comments import comment_changes, discovered_comments
from ingestd.ingest.settings.context import BatchContext, TableContext, TableSettings
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
    """Plan at most one new schema version for each table that lacks discovered columns or types.

    Tables that are not in the context are created, unless all their discoveries are idle. `now_ms`
    is the time in milliseconds since the epoch. A change that the evolution policy does not allow
    is left out, and a table that cannot be created is in `refused`. If the policy is to fail,
    SchemaConflictError is raised instead, which names the column and the solution, or, for invalid
    options of a new table, ConfigError or UnsupportedError. A rename or drop that is not possible
    always raises SchemaConflictError. Raises FormatError if the column history or the comment
    digests of a table are damaged.
    """
    by_table: dict[str, list[Discovery]] = {}
    for discovery in in_order(discoveries):
        by_table.setdefault(discovery.table, []).append(discovery)
    creates: dict[str, TableSchema] = {}
    changes: dict[str, tuple[SchemaChange, ...]] = {}
    refused: dict[str, SourceRejection] = {}
    for table, of_table in sorted(by_table.items()):
        known = context.tables.get(table)
        if known is None and all(discovery.is_idle for discovery in of_table):
            continue
        if known is None:
            try:
                creates[table] = first_schema(context, table, of_table, now_ms)
            except (SchemaConflictError, ConfigError, UnsupportedError) as error:
                if context.settings_of(table).evolution.fails:
                    raise
                refused[table] = SourceRejection("schema", "impossible-table", error.message)
            continue
        settings = context.settings_of(table)
        changed = _changes(known.table.schema, table, of_table, settings)
        changed += _comment_changes(known, changed, of_table, settings)
        if changed:
            changes[table] = changed
    return Evolution(creates, changes, refused)


def _changes(
    schema: TableSchema, table: str, discoveries: list[Discovery], settings: TableSettings
) -> tuple[SchemaChange, ...]:
    policy = settings.evolution
    changes: list[SchemaChange] = [RenameColumn(*names) for names in policy.renames(schema)]
    if changes:
        schema = apply_changes(schema, changes, schema.time_millis)
    column_history = tuple(
        sorted({change for discovery in discoveries for change in discovery.proven})
    )
    for change in column_history:
        followed = rename_or_drop(schema, change)
        schema = apply_changes(schema, followed, schema.time_millis)
        changes += followed
    # Newer columns under an old name are discovered when the batch runs again.
    discoveries = [
        replace(discovery, columns=followed_types(discovery.columns, column_history))
        for discovery in discoveries
    ]
    dropped = list(policy.drops(schema))
    changes += map(DropColumn, dropped)
    current = {column.name: column.type for column in schema.fields if column.name not in dropped}
    merged_types = _discovered_types(current, discoveries, policy)
    taken = new_columns(table, merged_types, current, policy, discoveries)
    for name, data_type in merged_types.items():
        target = (settings.column_types.get(name) or data_type).as_nullable()
        if name in current and target == current[name].as_nullable():
            continue
        if _is_refused(schema, table, name, target, policy, discoveries):
            continue
        if name in taken:
            changes.append(AddColumn(name, target))
        elif name in current:
            changes.append(UpdateColumnType(name, _keeping_nulls(target, current[name])))
    return tuple(changes)


def _comment_changes(
    target: TableContext,
    changes: tuple[SchemaChange, ...],
    discoveries: list[Discovery],
    settings: TableSettings,
) -> tuple[SchemaChange, ...]:
    """Return the changes of comments of a table; `changes` are its other changes in the plan."""
    comments = discovered_comments(discoveries)
    if not comments or settings.evolution.mode == "none":
        return ()
    table = target.table
    schema = apply_changes(table.schema, changes, table.schema.time_millis)
    sources = target.source_tables.union(discovery.source_table for discovery in discoveries)
    return tuple(comment_changes(table, schema, comments, only_first=len(sources) > 1))


def rename_or_drop(schema: TableSchema, proven: ProvenChange) -> list[SchemaChange]:
    """Return the schema changes for a rename or drop at the source.

    The last change is the updated column history; it is the only one if the table lacks the column.
    Raises FormatError if the column history of the table is damaged.
    """
    changes: list[SchemaChange] = []
    if proven.old in schema.field_names:
        renamed = RenameColumn(proven.old, proven.new)
        changes.append(renamed if proven.new else DropColumn(proven.old))
    column_history = (*read_column_history(schema.options, ""), proven)
    return [*changes, SetOption(COLUMN_HISTORY_OPTION, column_history_text(column_history))]


def _discovered_types(
    current: Mapping[str, DataType], discoveries: list[Discovery], policy: EvolutionPolicy
) -> dict[str, DataType]:
    """Return, for each discovered column, a type that holds its current and its new values.

    Raises SchemaConflictError like `together`.
    """
    merged_types: dict[str, DataType] = {}
    for discovery in discoveries:
        for name, data_type in discovery.columns.items():
            known = merged_types.get(name) or current.get(name)
            merged_types[name] = together(known, data_type, discovery, name, policy)
    return merged_types


def _is_refused(
    schema: TableSchema,
    table: str,
    name: str,
    target: DataType,
    policy: EvolutionPolicy,
    discoveries: list[Discovery],
) -> bool:
    """Return whether a column may not be added with the type `target`, or changed to it.

    Raises SchemaConflictError in this case if `policy.fails`.
    """
    if policy.on_refused == "string" and target.root == "STRING":
        return False
    why = rejection_reason(schema, name, target, policy)
    if why is None or not policy.fails:
        return why is not None
    if name in schema.field_names:
        _refuse_key_change(schema, table, name, target, discoveries)
        _refuse_cast(schema, table, name, target, discoveries)
    source = next(
        (discovery for discovery in discoveries if name in discovery.columns), discoveries[0]
    )
    way_out = "give it another type (schema.column-types)"
    if rejection_reason(schema, name, target, replace(policy, mode="evolve")) is None:
        way_out = "allow the change (schema.evolution)"
    raise SchemaConflictError(
        f"table {table}: {source} brings column '{name}' as {target}, but {why}; {way_out}, or "
        "choose what happens to such records (schema.on-incompatible-schema)"
    )


def _keeping_nulls(target: DataType, current: DataType) -> DataType:
    return replace(target, nullable=current.nullable)


def _refuse_key_change(
    schema: TableSchema, table: str, name: str, target: DataType, discoveries: list[Discovery]
) -> None:
    keys = {"primary key": schema.primary_keys, "partition key": schema.partition_keys}
    for kind, columns in keys.items():
        if name in columns:
            source = next(discovery for discovery in discoveries if name in discovery.columns)
            raise SchemaConflictError(
                f"table {table}: {kind} column '{name}' is {schema.field(name).type}, and "
                f"{source} brings values that need {target}; a key column cannot change its "
                f"type: move the table away and let it be created again, with '{name}: "
                f"{target}' in its schema.column-types"
            )


def _refuse_cast(
    schema: TableSchema, table: str, name: str, target: DataType, discoveries: list[Discovery]
) -> None:
    current = schema.field(name).type
    if not can_cast(current, target):
        source = next(
            (discovery for discovery in discoveries if name in discovery.columns), discoveries[0]
        )
        raise SchemaConflictError(
            f"table {table}: column '{name}' is {current}, and {source} brings values that need "
            f"{target}; this type cannot be changed: set '{name}: {current.as_nullable()}' in the "
            "table's schema.column-types (values that do not fit become dead letters), or route "
            "the source table to another target"
        )
