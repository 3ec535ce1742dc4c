"""Decide which tables of a pipeline can be compared, and with which source tables."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ingestd.compare.column_pairs import DatabaseTable
from ingestd.compare.dialect import SqlDialect
from ingestd.errors import ConfigError
from ingestd.ingest.settings.context import TableSettings
from ingestd.ingest.tables.managed_table import ManagedTable
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.predicate import IsNull, Predicate
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable

_OPTIONS_REGARDLESS_OF_SOURCE = (
    honoured.IGNORE_DELETE,
    honoured.PARTITION_EXPIRATION,
    honoured.RECORD_EXPIRE_TIME,
)


@dataclass(frozen=True, slots=True)
class TablePair:
    """A table of the lake, and the schema and name of its source table."""

    table: str
    schema: str
    name: str


@dataclass(frozen=True, slots=True)
class Uncompared:
    """A table that a comparison leaves out, and the reason."""

    table: str
    reason: str


@dataclass(frozen=True, slots=True)
class SourceOnly:
    """A table of the source, `SCHEMA.TABLE`, from which no table of the lake is written."""

    table: str


def parse_pairs(names: Sequence[str], database: str) -> dict[str, tuple[str, str] | None]:
    """Return the (schema, name) of the source table of each requested table, None if not given.

    A text in `names` is `TABLE` or `TABLE=SCHEMA.TABLE`. The tables in the result are named with
    their database; a `TABLE` without a dot is in `database`, the pipeline's database. Raises
    ConfigError for a text of another form.
    """
    named: dict[str, tuple[str, str] | None] = {}
    for text in names:
        name, equals, source = text.partition("=")
        schema, dot, table = source.partition(".")
        if not name or (equals and not (dot and schema and table)):
            raise ConfigError(f"'{text}': write TABLE or TABLE=SCHEMA.TABLE")
        full = name if "." in name else f"{database}.{name}"
        named[full] = (schema, table) if equals else None
    return named


def source_of(
    table: str,
    managed: ManagedTable,
    given: tuple[str, str] | None,
    dialect: SqlDialect,
    database: str,
) -> TablePair | Uncompared:
    """Return a table with its source table: the given one, or the only one it was written from.

    `managed` has the record of the source tables from which the table was written, and `database`
    is the database of the connection. If the source table is unknown, ambiguous or in another
    database, the result is the reason why the table is not compared.
    """
    if given is not None:
        return TablePair(table, *given)
    source_tables = (
        () if managed.progress is None else sorted(managed.progress.source_tables, key=str)
    )
    if not source_tables:
        return Uncompared(table, "no record names its source; write TABLE=SCHEMA.TABLE")
    if len(source_tables) > 1:
        names = ", ".join(map(str, source_tables))
        return Uncompared(table, f"several source tables feed it: {names}")
    name = dialect.name_in_source(source_tables[0], database)
    if name is None:
        return Uncompared(table, f"its source table {source_tables[0]} is in another database")
    return TablePair(table, *name)


def fed_from(
    tables: Iterable[ManagedTable], dialect: SqlDialect, database: str
) -> frozenset[tuple[str, str]]:
    """Return the (schema, name) pairs of the source tables from which tables were written.

    Source tables that a connection to `database` cannot read are left out.
    """
    names = (
        dialect.name_in_source(source_table, database)
        for managed in tables
        if managed.progress is not None
        for source_table in managed.progress.source_tables
    )
    return frozenset(name for name in names if name is not None)


def refusal(table: FileStoreTable, source: DatabaseTable, settings: TableSettings) -> str | None:
    """Return why a table cannot be compared with its source, or None if both must be equal.

    A table must have the primary key of its source, and its settings, or table options such as the
    merge engine, must not leave out or change rows. `settings` are those of the table.
    """
    if settings.shape.where is not None:
        return f"'{settings.shape.where}' keeps a part of the source's rows"
    schema = table.schema
    engine = honoured.MERGE_ENGINE.of(schema.options)
    if engine != "deduplicate":
        return f"merge-engine {engine} does not keep the source's rows"
    for option in _OPTIONS_REGARDLESS_OF_SOURCE:
        if option.of(schema.options):
            return f"{option.name} keeps or drops rows regardless of the source"
    if not schema.primary_keys:
        return "it has no primary key"
    renamed = {old: new for new, old in settings.evolution.aliases.items()}
    names = schema.field_names
    key = {name if name in names else renamed.get(name, name) for name in source.key}
    added = _added(names, source, renamed)
    if set(schema.primary_keys) - added != key:
        ours, theirs = ", ".join(schema.primary_keys), ", ".join(source.key) or "none"
        return f"its primary key ({ours}) is not that of {source} ({theirs})"
    return None


def existing_rows(table: FileStoreTable, settings: TableSettings) -> Predicate | None:
    """Return a condition for the rows that were not deleted in the source.

    Returns None if the table does not keep rows after their deletion: all its rows are compared.
    """
    column = settings.shape.deletion_column
    return IsNull(column) if column is not None and column in table.schema.field_names else None


def _added(
    names: Sequence[str], source: DatabaseTable, renamed: Mapping[str, str]
) -> frozenset[str]:
    """Return the columns of a table that its source does not have."""
    targets = {renamed.get(name, name) for name in source.columns} | set(source.columns)
    return frozenset(names) - targets
