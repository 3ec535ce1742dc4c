"""What the tables must become so that a batch fits: findings of all tasks into schema changes.

Types only grow: a column takes the narrowest type that holds old and new values, columns are
added; they are renamed and dropped only by declaration. One plan and one schema version per table
and batch. How far a schema may follow its source is for its policy to say.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ingestd.errors import ConfigError, SchemaConflictError
from ingestd.ingest.context import BatchContext, TableSettings
from ingestd.ingest.discovery import Discovery, in_order
from ingestd.ingest.evolution_policy import EvolutionPolicy, refusal
from ingestd.ingest.type_merge import merge_types
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.merge_rules import columns_named
from ingestd.paimon.spec.options import refuse_unsupported
from ingestd.paimon.spec.schema import TableSchema, new_schema
from ingestd.paimon.spec.schema_apply import apply_changes
from ingestd.paimon.spec.schema_change import (
    AddColumn,
    DropColumn,
    RenameColumn,
    SchemaChange,
    UpdateColumnType,
)
from ingestd.paimon.spec.type_casts import can_cast

_ASSIGNERS = "dynamic-bucket.assigner-parallelism"
_TEXT = DataType("STRING")
_WIDENED_KEYS = frozenset({"TINYINT", "SMALLINT"})


@dataclass(frozen=True, slots=True)
class Evolution:
    """What to do: first schemas of tables to create, and changes of tables that exist."""

    creates: Mapping[str, TableSchema]
    changes: Mapping[str, tuple[SchemaChange, ...]]


def plan(context: BatchContext, discoveries: Iterable[Discovery], now_ms: int) -> Evolution:
    """One schema version for each table that the findings touch, by identifier.

    Tables that exist are those of the context. Raises SchemaConflictError naming the column, what
    was found where, and the way out; ConfigError and UnsupportedError for table options that
    cannot be.
    """
    by_table: dict[str, list[Discovery]] = {}
    for found in in_order(discoveries):
        by_table.setdefault(found.table, []).append(found)
    creates: dict[str, TableSchema] = {}
    changes: dict[str, tuple[SchemaChange, ...]] = {}
    for table, found_there in sorted(by_table.items()):
        known = context.tables.get(table)
        if known is None:
            creates[table] = _new_table(context, table, found_there, now_ms)
            continue
        settings = context.settings_of(table)
        changed = _changes(known.table.schema, table, found_there, settings)
        if changed:
            changes[table] = changed
    return Evolution(creates, changes)


def _new_table(
    context: BatchContext, table: str, found: list[Discovery], now_ms: int
) -> TableSchema:
    settings = context.settings_of(table)
    columns: dict[str, DataType] = {}
    for one in found:
        for name, data_type in one.columns.items():
            known = columns.get(name)
            columns[name] = _together(known, data_type, one, name, settings.evolution)
    keys = _primary_keys(settings, found)
    for name in columns:
        columns[name] = settings.column_types.get(name) or _key_type(columns[name], name in keys)
    for name in (*columns_named(settings.options), *settings.shape.needed()):
        if name not in columns and name in settings.column_types:
            # The column is needed, although no message has shown it yet.
            columns[name] = settings.column_types[name]
    _refuse_unfounded(table, settings, columns, found[0])
    missing = [name for name in (*keys, *settings.partition_keys) if name not in columns]
    if missing:
        raise SchemaConflictError(
            f"table {table} cannot be created: its key column '{missing[0]}' is not among the "
            f"columns {sorted(columns)} of {found[0]}; correct primary_keys or partition_keys"
        )
    options = _options(context, table, settings, keyed=bool(keys))
    try:
        schema = new_schema(list(columns.items()), keys, settings.partition_keys, options, now_ms)
    except (SchemaConflictError, ConfigError) as error:
        raise type(error)(
            f"table {table} cannot be created for {found[0]}: {error.message}"
        ) from error
    refuse_unsupported(schema, for_write=True)
    return schema


def _primary_keys(settings: TableSettings, found: list[Discovery]) -> tuple[str, ...]:
    """The configured key, else that of the first message that had one."""
    if settings.primary_keys is not None:
        return settings.primary_keys
    return next((one.primary_keys for one in found if one.primary_keys), ())


def _key_type(data_type: DataType, is_key: bool) -> DataType:
    """A key never changes its type again, so the smallest integers get room to grow."""
    if is_key and data_type.root in _WIDENED_KEYS:
        return DataType("INT")
    return data_type


def _options(
    context: BatchContext, table: str, settings: TableSettings, *, keyed: bool
) -> dict[str, str]:
    options = dict(settings.options)
    if keyed:
        options.setdefault("bucket", "-1")
        if options["bucket"] == "-1":
            options.setdefault(_ASSIGNERS, str(context.slots))
        return options
    name = table.partition(".")[2]
    own = context.settings.get(name, TableSettings()).options
    if "bucket" not in own and "bucket-key" not in options:
        # A bucket count among the defaults is meant for tables with a key.
        options["bucket"] = "-1"
    return options


def _changes(
    schema: TableSchema, table: str, found: list[Discovery], settings: TableSettings
) -> tuple[SchemaChange, ...]:
    policy = settings.evolution
    changes: list[SchemaChange] = [RenameColumn(*names) for names in policy.renames(schema)]
    if changes:
        schema = apply_changes(schema, changes, schema.time_millis)
    dropped = list(policy.drops(schema))
    changes += map(DropColumn, dropped)
    current = {one.name: one.type for one in schema.fields if one.name not in dropped}
    for name, data_type in _wanted(current, found, policy).items():
        target = (settings.column_types.get(name) or data_type).as_nullable()
        if name in current and target == current[name].as_nullable():
            continue
        if _is_refused(schema, table, name, target, policy, found):
            continue
        if name not in current:
            changes.append(AddColumn(name, target))
        else:
            changes.append(UpdateColumnType(name, _keeping_nulls(target, current[name])))
    return tuple(changes)


def _wanted(
    current: Mapping[str, DataType], found: list[Discovery], policy: EvolutionPolicy
) -> dict[str, DataType]:
    """The types that hold what all findings bring, by column."""
    wanted: dict[str, DataType] = {}
    for one in found:
        for name, data_type in one.columns.items():
            known = wanted.get(name) or current.get(name)
            wanted[name] = _together(known, data_type, one, name, policy)
    return wanted


def _is_refused(
    schema: TableSchema,
    table: str,
    name: str,
    target: DataType,
    policy: EvolutionPolicy,
    found: list[Discovery],
) -> bool:
    """Whether a change may not be; SchemaConflictError if the pipeline is to stop for it."""
    if policy.on_refused == "string" and target.root == "STRING":
        return False
    why = refusal(schema, name, target, policy)
    if why is None or not policy.fails:
        return why is not None
    if name in schema.field_names:
        _refuse_key_change(schema, table, name, target, found)
        _refuse_cast(schema, table, name, target, found)
    source = next((one for one in found if name in one.columns), found[0])
    raise SchemaConflictError(
        f"table {table}: {source} brings column '{name}' as {target}, but {why}; let the schema "
        "follow (schema.evolution), or say what to do with such records "
        "(schema.on-refused-change)"
    )


def _refuse_unfounded(
    table: str, settings: TableSettings, columns: Mapping[str, DataType], found: Discovery
) -> None:
    """SchemaConflictError for a computed column that is made from one that is not there."""
    for column in settings.shape.computed:
        source = column.source
        if source is None or source in columns or not settings.shape.selects(source):
            continue
        raise SchemaConflictError(
            f"table {table} cannot be created: {column} is made from column '{source}', which is "
            f"not among the columns {sorted(columns)} of {found}; correct the expression, or give "
            f"the type of '{source}' in schema.column-types if it is only absent so far"
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
            f"{target}; a column cannot change so: fix its type in the table's "
            "schema.column-types, or route the source table to another target"
        )


def _together(
    known: DataType | None,
    found: DataType,
    where: Discovery,
    name: str,
    policy: EvolutionPolicy,
) -> DataType:
    """The type of a column for what is known of it and what was found.

    Where no type holds both, the first one stays if the policy has a way for the other's values.
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
        "schema.column-types, route the source table to another target, or say what to do with "
        "such records (schema.on-refused-change)"
    )


def columns_beyond(schema: TableSchema, found: Mapping[str, DataType]) -> dict[str, DataType]:
    """Those of the found columns that the table lacks or holds with a type too narrow."""
    current = {column.name: column.type for column in schema.fields}
    beyond: dict[str, DataType] = {}
    for name, data_type in found.items():
        known = current.get(name)
        if known is None or merge_types(known, data_type) != known.as_nullable():
            beyond[name] = data_type
    return beyond
