"""The filesystem catalog: directories <warehouse>/<database>.db/<table>.

Specification: https://paimon.apache.org/docs/1.4/concepts/catalog/#filesystem-catalog

A table exists if and only if its directory has a schema file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ingestd.errors import ConfigError
from ingestd.paimon.catalog.base import (
    CASE_SENSITIVE,
    Identifier,
    TableExistsError,
    TableNotFoundError,
    check_case,
    check_empty,
    check_name,
    nearest_name_hint,
    new_column_names,
    no_table,
    refuse_branch,
)
from ingestd.paimon.catalog.table_directory import TableDirectory
from ingestd.paimon.io.file_io import FileIO, absolute_path, file_io_for, storage_options
from ingestd.paimon.spec.option_types import parse_bool
from ingestd.paimon.spec.paths import TablePaths
from ingestd.paimon.spec.schema_change import SchemaChange
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.schema_manager import schema_ids

_SUFFIX = ".db"


def open_catalog(warehouse: str, options: Mapping[str, str]) -> "FilesystemCatalog":
    """Return the catalog of a warehouse directory, which need not exist yet.

    Options are `case-sensitive` (default true) and the options of the store. Raises ConfigError for
    any other option and for an invalid value, UnsupportedError for a path in an unknown kind of
    store.
    """
    store = storage_options(options)
    unknown = sorted(set(options) - {CASE_SENSITIVE} - store.keys())
    if unknown:
        raise ConfigError(f"the filesystem catalog has no option {', '.join(unknown)}")
    case_sensitive = parse_bool(CASE_SENSITIVE, options.get(CASE_SENSITIVE, "true"))
    io = file_io_for(warehouse, store)
    return FilesystemCatalog(absolute_path(warehouse), io, case_sensitive)


@dataclass(frozen=True)
class FilesystemCatalog:
    """A catalog without a server; `warehouse` is an absolute path.

    If `case_sensitive` is false, new names must not have capitals, so that engines that convert
    names to lower case find them. Methods raise StorageError if the storage fails.
    """

    warehouse: str
    io: FileIO
    case_sensitive: bool = True

    def list_databases(self) -> list[str]:
        """Return the names of all databases, sorted."""
        names = self.io.list_names(self.warehouse)
        return sorted(n.removesuffix(_SUFFIX) for n in names if n.endswith(_SUFFIX) and n[0] != ".")

    def create_database(self, name: str, properties: Mapping[str, str] | None = None) -> None:
        """Create a database if it does not exist.

        Raises ConfigError for a name that is not allowed, and if properties are given.
        """
        check_name("database", name)
        check_case([name], case_sensitive=self.case_sensitive)
        if properties:
            raise ConfigError(
                f"database '{name}': the filesystem catalog keeps no properties of databases "
                f"({', '.join(sorted(properties))}), and its name determines the path of a database"
            )
        self.io.make_directory(self._database_path(name))

    def database_properties(self, name: str) -> Mapping[str, str]:
        """Return no properties, because this catalog keeps none.

        Raises TableNotFoundError if the database does not exist.
        """
        self._check_database(name)
        return {}

    def drop_database(self, name: str, *, cascade: bool = False) -> None:
        """Delete a database with all files in its directory, and with `cascade` its tables.

        Raises TableNotFoundError if it does not exist, DatabaseNotEmptyError if it has tables and
        `cascade` is false, and UnsupportedError if a table has files outside its directory.
        """
        tables = self.list_tables(name)
        check_empty(name, tables, cascade=cascade)
        for table in tables:
            self.drop_table(Identifier(name, table))
        self.io.delete_tree(self._database_path(name))

    def list_tables(self, database: str) -> list[str]:
        """Return the names of the tables of a database, sorted.

        Raises TableNotFoundError if the database does not exist.
        """
        path = self._database_path(database)
        names = self.io.list_names(path)
        if not names:
            self._check_database(database)
        return [name for name in names if schema_ids(self.io, TablePaths(f"{path}/{name}"))]

    def table_exists(self, identifier: Identifier) -> bool:
        """Return whether the table exists."""
        return self._directory(identifier).has_table()

    def get_table(self, identifier: Identifier) -> FileStoreTable:
        """Return the table with its newest schema.

        Raises TableNotFoundError, which suggests the most similar name, if the table does not
        exist; FormatError if its newest schema is damaged, or if it has snapshots but no schema;
        StorageError if its schema exists, but is missing from a listing.
        """
        table = self._directory(identifier).open_table()
        if table is None:
            raise no_table(identifier, self.list_tables(identifier.database))
        return table

    def create_table(
        self, identifier: Identifier, schema: TableSchema, *, ignore_if_exists: bool = False
    ) -> FileStoreTable:
        """Create a table, and its database if it does not exist; concurrent calls are safe.

        If the table exists, raises TableExistsError or, with `ignore_if_exists`, returns it. Raises
        ConfigError for a name that is not allowed, for the option `path`, and if the directory has
        snapshots of an older table; SchemaConflictError for a default value that is invalid for its
        column; ValueError if the id of the schema is not 0.
        """
        refuse_branch(identifier)
        if schema.id != 0:
            raise ValueError(f"the first schema of a table has id 0, not {schema.id}")
        if "path" in schema.options:
            raise ConfigError(
                f"table '{identifier}': option 'path' is refused: in the filesystem catalog, the "
                "name of a table determines its path"
            )
        new_names = (identifier.database, identifier.table, *(f.name for f in schema.fields))
        check_case(new_names, case_sensitive=self.case_sensitive)
        directory = self._directory(identifier)
        if not directory.has_table():
            self.create_database(identifier.database)
            table = directory.create_table(schema)
            if table is not None:
                return table
        if not ignore_if_exists:
            raise TableExistsError(f"table '{identifier}' exists already in {self.warehouse}")
        return self.get_table(identifier)

    def alter_table(
        self, identifier: Identifier, changes: Sequence[SchemaChange], now_ms: int
    ) -> FileStoreTable:
        """Publish one new schema with the changes, on top of concurrent changes; return the table.

        Without changes, no schema is published. `now_ms` is the time of the new schema, in
        milliseconds since 1970. Raises TableNotFoundError if the table does not exist,
        SchemaConflictError if it does not allow the changes, ConfigError or UnsupportedError for a
        name or option that is not allowed, and CommitConflictError if other processes published a
        schema first in every attempt.
        """
        table = self.get_table(identifier)
        if not changes:
            return table
        check_case(new_column_names(changes), case_sensitive=self.case_sensitive)
        return self._directory(identifier).alter_table(table, changes, now_ms)

    def drop_table(self, identifier: Identifier) -> None:
        """Delete a table with all its files.

        Raises TableNotFoundError if it does not exist, UnsupportedError if it has files outside its
        directory.
        """
        self._directory(identifier).delete_table(self.get_table(identifier))

    def rename_table(self, source: Identifier, target: Identifier) -> None:
        """Rename a table, whose writers must be stopped.

        Raises TableNotFoundError if the table or the new database does not exist, TableExistsError
        if the new name is in use, ConfigError if it is not allowed or names a branch.
        """
        refuse_branch(target)
        table = self.get_table(source)
        check_case([target.database, target.table], case_sensitive=self.case_sensitive)
        path = self._table_path(target)
        if self.io.exists(path):
            raise TableExistsError(f"table '{target}' exists already in {self.warehouse}")
        self._check_database(target.database)
        self.io.rename_directory(table.path, path)

    def _check_database(self, name: str) -> None:
        check_name("database", name)
        if not self.io.exists(self._database_path(name)):
            hint = nearest_name_hint(name, self.list_databases())
            raise TableNotFoundError(f"no database '{name}' in {self.warehouse}{hint}")

    def _database_path(self, database: str) -> str:
        return f"{self.warehouse}/{database}{_SUFFIX}"

    def _table_path(self, identifier: Identifier) -> str:
        return f"{self._database_path(identifier.database)}/{identifier.table}"

    def _directory(self, identifier: Identifier) -> TableDirectory:
        return TableDirectory(self._table_path(identifier), self.io, str(identifier))
