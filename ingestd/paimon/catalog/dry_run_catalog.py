"""A catalog that keeps changes in memory, on top of another catalog that is only read.

Dry runs use it to report changes without making them. Everything that was not changed is read from
the other catalog.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ingestd.paimon.catalog.base import (
    Catalog,
    DatabaseNotEmptyError,
    Identifier,
    TableExistsError,
    TableNotFoundError,
    check_case,
    check_name,
    nearest_name_hint,
    new_column_names,
    no_table,
)
from ingestd.paimon.io.memory import MemoryFileIO
from ingestd.paimon.spec.schema_apply import apply_changes
from ingestd.paimon.spec.schema_change import SchemaChange
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.schema_manager import publish_schema
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot_id


@dataclass
class DryRunCatalog:
    """A catalog with the tables of `base` and simulated changes.

    `case_sensitive` is the setting of `base`. New tables exist in memory only. A changed table is a
    handle with the new schema on the existing files.
    """

    base: Catalog
    case_sensitive: bool = True
    _tables: dict[Identifier, FileStoreTable | None] = field(default_factory=dict, init=False)
    _databases: dict[str, Mapping[str, str] | None] = field(default_factory=dict, init=False)
    _io: MemoryFileIO = field(default_factory=MemoryFileIO, init=False)

    def list_databases(self) -> list[str]:
        """Return the names of all databases after the simulated changes, sorted."""
        names = {*self.base.list_databases(), *self._databases}
        return sorted(name for name in names if self._databases.get(name, {}) is not None)

    def create_database(self, name: str, properties: Mapping[str, str] | None = None) -> None:
        """Record a new database in memory only; an existing database keeps its properties.

        Raises ConfigError for a name that is not allowed.
        """
        check_name("database", name)
        check_case([name], case_sensitive=self.case_sensitive)
        if name not in self.list_databases():
            self._databases[name] = dict(properties or {})

    def database_properties(self, name: str) -> Mapping[str, str]:
        """Return the properties of a database.

        Raises TableNotFoundError if the database does not exist.
        """
        self._check_database(name)
        simulated = self._databases.get(name)
        return self.base.database_properties(name) if simulated is None else simulated

    def drop_database(self, name: str, *, cascade: bool = False) -> None:
        """Simulate dropping a database.

        Raises TableNotFoundError if it does not exist, DatabaseNotEmptyError if it has tables and
        `cascade` is false.
        """
        tables = self.list_tables(name)
        if tables and not cascade:
            raise DatabaseNotEmptyError(f"database '{name}' still has tables: {', '.join(tables)}")
        for table in tables:
            self.drop_table(Identifier(name, table))
        self._databases[name] = None

    def list_tables(self, database: str) -> list[str]:
        """Return the names of the tables of a database, sorted.

        Raises TableNotFoundError if the database does not exist.
        """
        self._check_database(database)
        names = {table.table for table in self._tables if table.database == database}
        if database not in self._databases:
            names.update(self.base.list_tables(database))
        return sorted(name for name in names if self.table_exists(Identifier(database, name)))

    def table_exists(self, identifier: Identifier) -> bool:
        """Return whether the table exists, simulated changes included."""
        if identifier in self._tables:
            return self._tables[identifier] is not None
        return identifier.database not in self._databases and self.base.table_exists(identifier)

    def get_table(self, identifier: Identifier) -> FileStoreTable:
        """Return the table with its simulated schema, or its newest schema if it was not changed.

        Raises TableNotFoundError if the table does not exist, and the errors of `base`.
        """
        if identifier not in self._tables and identifier.database not in self._databases:
            return self.base.get_table(identifier)
        table = self._tables.get(identifier)
        if table is None:
            raise no_table(identifier, self.list_tables(identifier.database))
        return table

    def create_table(
        self, identifier: Identifier, schema: TableSchema, *, ignore_if_exists: bool = False
    ) -> FileStoreTable:
        """Simulate the creation of a table, and of its database if it does not exist.

        If the table exists, raises TableExistsError or, with `ignore_if_exists`, returns it. Raises
        ConfigError for a name that the catalog does not allow, SchemaConflictError for a default
        value that is invalid for its column.
        """
        if self.table_exists(identifier):
            if not ignore_if_exists:
                raise TableExistsError(f"table '{identifier}' exists already")
            return self.get_table(identifier)
        names = (identifier.database, identifier.table, *(column.name for column in schema.fields))
        check_case(names, case_sensitive=self.case_sensitive)
        self.create_database(identifier.database)
        table = FileStoreTable(f"memory:/{identifier}", schema, self._io, str(identifier))
        publish_schema(self._io, table.paths, schema)
        self._tables[identifier] = table
        return table

    def alter_table(
        self, identifier: Identifier, changes: Sequence[SchemaChange], now_ms: int
    ) -> FileStoreTable:
        """Simulate one new schema with the changes; return the table with this schema.

        Without changes, the schema stays the same. `now_ms` is the time of the new schema, in
        milliseconds since 1970. Raises TableNotFoundError if the table does not exist,
        SchemaConflictError if it does not allow the changes, ConfigError or UnsupportedError for a
        name or option that is not allowed.
        """
        table = self.get_table(identifier)
        if not changes:
            return table
        check_case(new_column_names(changes), case_sensitive=self.case_sensitive)
        newest = latest_snapshot_id(table.io, table.paths)
        schema = apply_changes(table.schema, changes, now_ms, has_snapshots=newest is not None)
        self._tables[identifier] = table.with_schema(schema)
        return table.with_schema(schema)

    def drop_table(self, identifier: Identifier) -> None:
        """Simulate dropping a table. Raises TableNotFoundError if it does not exist."""
        self.get_table(identifier)
        self._tables[identifier] = None

    def rename_table(self, source: Identifier, target: Identifier) -> None:
        """Simulate renaming a table.

        Raises TableNotFoundError if the table or the new database does not exist, TableExistsError
        if the new name is in use, ConfigError if it has capitals and the catalog is not
        case-sensitive.
        """
        table = self.get_table(source)
        if self.table_exists(target):
            raise TableExistsError(f"table '{target}' exists already")
        check_case([target.database, target.table], case_sensitive=self.case_sensitive)
        self._check_database(target.database)
        self._tables[source] = None
        self._tables[target] = table

    def _check_database(self, name: str) -> None:
        names = self.list_databases()
        if name not in names:
            raise TableNotFoundError(f"no database '{name}'{nearest_name_hint(name, names)}")
