"""Create the first schemas of new tables: columns, keys and options."""

from collections.abc import Collection, Mapping

from ingestd.errors import ConfigError, SchemaConflictError
from ingestd.ingest.schemas.column_history import (
    COLUMN_HISTORY_OPTION,
    Ledger,
    column_history_text,
    followed_types,
)
from ingestd.ingest.schemas.column_limit import first_columns
from ingestd.ingest.schemas.discovery import Discovery
from ingestd.ingest.schemas.source_comments import commented, discovered_comments
from ingestd.ingest.settings.context import BatchContext, TableSettings
from ingestd.ingest.settings.evolution_policy import EvolutionPolicy
from ingestd.ingest.settings.ordering import refuse_ordering
from ingestd.ingest.values.type_merge import merge_types
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.merge_rules import columns_named
from ingestd.paimon.spec.options import refuse_new_options, refuse_unsupported
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.paimon.spec.type_casts import can_cast

_WIDENED_KEYS = frozenset({"TINYINT", "SMALLINT"})
_TEXT = DataType("STRING")


def first_schema(
    context: BatchContext, table: str, discoveries: list[Discovery], now_ms: int
) -> TableSchema:
    """Return the first schema of a table, derived from all discoveries (columns) for the table.

    `now_ms` is the creation time in milliseconds since the epoch. Raises SchemaConflictError,
    ConfigError or UnsupportedError if the table cannot be created.
    """
    settings = context.settings_of(table)
    column_history = _column_history(discoveries)
    columns = followed_types(_columns(discoveries, settings.evolution), column_history)
    keys = tuple(_name_today(name, column_history) for name in _primary_keys(settings, discoveries))
    for name in columns:
        columns[name] = settings.column_types.get(name) or _key_type(columns[name], name in keys)
    for name in (*columns_named(settings.options), *settings.shape.needed()):
        if name not in columns and name in settings.column_types:
            # The column is required, although no message has contained it yet.
            columns[name] = settings.column_types[name]
    _refuse_unfounded(table, settings, columns, discoveries[0])
    all_keys = (*keys, *settings.partition_keys)
    missing = [name for name in all_keys if name not in columns]
    if missing:
        raise SchemaConflictError(
            f"table {table} cannot be created: its key column '{missing[0]}' is not among the "
            f"columns {sorted(columns)} of {discoveries[0]}; correct primary-keys or partition-keys"
        )
    _check_ordering(table, settings, keys)
    columns = first_columns(table, columns, all_keys, settings, discoveries)
    options = _options(context, table, settings, keyed=bool(keys))
    if column_history:
        options[COLUMN_HISTORY_OPTION] = column_history_text(column_history)
    try:
        schema = new_schema(list(columns.items()), keys, settings.partition_keys, options, now_ms)
    except (SchemaConflictError, ConfigError) as error:
        raise type(error)(
            f"table {table} cannot be created for {discoveries[0]}: {error.message}"
        ) from error
    refuse_new_options(schema.options)
    refuse_unsupported(schema, for_write=True)
    return commented(schema, discovered_comments(discoveries))


def _column_history(discoveries: list[Discovery]) -> Ledger:
    changes = {change for discovery in discoveries for change in discovery.proven}
    return tuple(sorted(changes))


def _columns(discoveries: list[Discovery], policy: EvolutionPolicy) -> dict[str, DataType]:
    columns: dict[str, DataType] = {}
    for discovery in discoveries:
        for name, data_type in discovery.columns.items():
            columns[name] = together(columns.get(name), data_type, discovery, name, policy)
    return columns


def _name_today(name: str, column_history: Ledger) -> str:
    for change in column_history:
        name = change.new or name if change.old == name else name
    return name


def _primary_keys(settings: TableSettings, discoveries: list[Discovery]) -> tuple[str, ...]:
    """Return the configured primary key, or else the first message key among the discoveries."""
    if settings.primary_keys is not None:
        return settings.primary_keys
    return next((discovery.primary_keys for discovery in discoveries if discovery.primary_keys), ())


def _key_type(data_type: DataType, is_key: bool) -> DataType:
    """Widen TINYINT and SMALLINT keys to INT, because a key column cannot change its type later."""
    if is_key and data_type.root in _WIDENED_KEYS:
        return DataType("INT")
    return data_type


def _check_ordering(table: str, settings: TableSettings, keys: tuple[str, ...]) -> None:
    """Raise ConfigError if a table with these keys cannot order rows as configured."""
    if settings.is_ordered_by_position:
        try:
            refuse_ordering(settings.options, settings.position_column, keys)
        except ConfigError as error:
            raise ConfigError(f"table {table} cannot be created: {error.message}") from error


def _options(
    context: BatchContext, table: str, settings: TableSettings, *, keyed: bool
) -> dict[str, str]:
    options = dict(settings.options)
    if keyed:
        options.setdefault("bucket", "-1")
        if options["bucket"] == "-1":
            options.setdefault(honoured.DYNAMIC_BUCKET_ASSIGNERS.name, str(context.slots))
        return options
    name = table.partition(".")[2]
    own = context.settings.get(name, TableSettings()).options
    if "bucket" not in own and is_for_keyed_tables(options, ()):
        options["bucket"] = "-1"
    return options


def is_for_keyed_tables(options: Mapping[str, str], primary_keys: Collection[str]) -> bool:
    """Return whether a table with these primary keys ignores the bucket count in `options`.

    A bucket count without a bucket key is meant for tables with a primary key, so a table without a
    primary key ignores it.
    """
    return not primary_keys and honoured.BUCKET_KEY.name not in options


def _refuse_unfounded(
    table: str, settings: TableSettings, columns: Mapping[str, DataType], discovery: Discovery
) -> None:
    """Raise SchemaConflictError if a computed column or `where` depends on a missing column."""
    shape = settings.shape
    pairs = [(str(column), source) for column in shape.computed for source in column.sources]
    if shape.where is not None:
        declared = settings.column_types
        pairs += [(str(shape.where), name) for name in shape.where.sources if name not in declared]
    for column, source in pairs:
        if source in columns or not shape.selects(source):
            continue
        raise SchemaConflictError(
            f"table {table} cannot be created: {column} depends on column '{source}', which is "
            f"not among the columns {sorted(columns)} of {discovery}; correct the expression, or "
            f"set the type of '{source}' in schema.column-types if messages will contain it later"
        )


def together(
    known: DataType | None,
    new: DataType,
    discovery: Discovery,
    name: str,
    policy: EvolutionPolicy,
) -> DataType:
    """Return a type that holds the values of a column's known type (None: unknown) and a new type.

    If no type holds the values of both, the result is STRING if the policy converts to text and the
    known type can be cast to it. Otherwise SchemaConflictError is raised if `policy.fails`, and if
    not, the result is the known type. `discovery` has the new type for the column `name`; both are
    named in the error.
    """
    if known is None:
        return new.as_nullable()
    merged = merge_types(known, new, fresh=discovery.fresh)
    if merged is not None:
        return merged
    if policy.on_refused == "string" and can_cast(known, _TEXT):
        return _TEXT
    if not policy.fails:
        return known.as_nullable()
    fixed = _TEXT if discovery.fresh else known.as_nullable()
    raise SchemaConflictError(
        f"table {discovery.table}: column '{name}' is {known.as_nullable()}, and {discovery} "
        f"brings {new.as_nullable()}; no type holds both: set '{name}: {fixed}' in the table's "
        "schema.column-types (values that do not fit become dead letters), route the source table "
        "to another target, or say what to do with such records (schema.on-incompatible-schema)"
    )
