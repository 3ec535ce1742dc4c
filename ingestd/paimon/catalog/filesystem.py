"""The catalog that is nothing but directories: <warehouse>/<database>.db/<table>.

Specification: Catalog. A table exists when, and only when, it has a schema file; schema files
are published like snapshots, so that of several processes one wins.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from ingestd.errors import (
    CommitConflictError,
    ConfigError,
    StorageError,
)
from ingestd.paimon.catalog.base import (
    Identifier,
    TableExistsError,
    TableNotFoundError,
    check_database_name,
    nearest_name_hint,
)
from ingestd.paimon.io.file_io import FileIO, absolute_path, file_io_for
from ingestd.paimon.spec.paths import TablePaths
from ingestd.paimon.spec.schema import SchemaChange, TableSchema, apply_changes
from ingestd.paimon.table.file_store_table import FileStoreTable
from ingestd.paimon.table.schema_manager import latest_schema, publish_schema, schema_ids
from ingestd.paimon.table.snapshot_manager import snapshot_ids

_SUFFIX = ".db"
_ALTER_TRIES = 20


def open_catalog(warehouse: str) -> "FilesystemCatalog":
    """The catalog of a warehouse directory, which need not exist yet."""
    return FilesystemCatalog(absolute_path(warehouse), file_io_for(warehouse))


@dataclass(frozen=True)
class FilesystemCatalog:
    """A catalog without a server; `warehouse` is an absolute path."""

    warehouse: str
    io: FileIO

    def list_databases(self) -> list[str]:
        """Names of all databases, sorted."""
        names = self.io.list_names(self.warehouse)
        return sorted(n.removesuffix(_SUFFIX) for n in names if n.endswith(_SUFFIX) and n[0] != ".")

    def create_database(self, name: str) -> None:
        """Create a database; one that exists is fine."""
        check_database_name(name)
        self.io.make_directory(self._database_path(name))

    def list_tables(self, database: str) -> list[str]:
        """Names of the tables of a database, sorted; TableNotFoundError if there is no such."""
        check_database_name(database)
        path = self._database_path(database)
        names = self.io.list_names(path)
        if not names and not self.io.exists(path):
            hint = nearest_name_hint(database, self.list_databases())
            raise TableNotFoundError(f"no database '{database}' in {self.warehouse}{hint}")
        return [name for name in names if schema_ids(self.io, TablePaths(f"{path}/{name}"))]

    def table_exists(self, identifier: Identifier) -> bool:
        """Whether the table is there."""
        return bool(schema_ids(self.io, TablePaths(self._table_path(identifier))))

    def get_table(self, identifier: Identifier) -> FileStoreTable:
        """The table as of its newest schema; TableNotFoundError with the nearest name."""
        path = self._table_path(identifier)
        schema = latest_schema(self.io, TablePaths(path))
        if schema is None:
            hint = nearest_name_hint(identifier.table, self.list_tables(identifier.database))
            message = f"no table '{identifier.table}' in database '{identifier.database}'{hint}"
            raise TableNotFoundError(message)
        return FileStoreTable(path, schema, self.io, str(identifier))

    def create_table(
        self, identifier: Identifier, schema: TableSchema, *, ignore_if_exists: bool = False
    ) -> FileStoreTable:
        """Create a table, and its database if need be; race-safe.

        One that exists is TableExistsError, or the answer with `ignore_if_exists`.
        """
        if schema.id != 0:
            raise ValueError(f"the first schema of a table has id 0, not {schema.id}")
        path = self._table_path(identifier)
        if not schema_ids(self.io, TablePaths(path)):
            self._refuse_leftovers(identifier, path)
            self.create_database(identifier.database)
            if self._publish(TablePaths(path), schema):
                return FileStoreTable(path, schema, self.io, str(identifier))
        if not ignore_if_exists:
            raise TableExistsError(f"table '{identifier}' exists already in {self.warehouse}")
        return self.get_table(identifier)

    def alter_table(
        self, identifier: Identifier, changes: Sequence[SchemaChange], now_ms: int
    ) -> FileStoreTable:
        """Publish one new schema with the changes, on top of whatever others published.

        SchemaConflictError if the table cannot take them; no changes make no schema.
        """
        table = self.get_table(identifier)
        if not changes:
            return table
        for _ in range(_ALTER_TRIES):
            schema = apply_changes(table.schema, changes, now_ms)
            if self._publish(table.paths, schema):
                return table.with_schema(schema)
            table = self.get_table(identifier)
        raise CommitConflictError(
            f"table '{identifier}': others published a schema first, {_ALTER_TRIES} times in a row"
        )

    def drop_table(self, identifier: Identifier) -> None:
        """Delete a table with all its files; TableNotFoundError if it isn't there.

        The schema goes last: a table dropped half can be dropped again, and its old snapshots
        never show up in a new table of the same name.
        """
        table = self.get_table(identifier)
        names = self.io.list_names(table.path)
        for name in sorted(names, key=lambda name: (name != "snapshot", name == "schema")):
            self.io.delete_tree(f"{table.path}/{name}")
        self.io.delete_tree(table.path)

    def _database_path(self, database: str) -> str:
        return f"{self.warehouse}/{database}{_SUFFIX}"

    def _table_path(self, identifier: Identifier) -> str:
        return f"{self._database_path(identifier.database)}/{identifier.table}"

    def _publish(self, paths: TablePaths, schema: TableSchema) -> bool:
        """Publish a schema; after an unclear answer, what is there decides."""
        try:
            return publish_schema(self.io, paths, schema)
        except StorageError:
            if latest_schema(self.io, paths) == schema:
                return True
            raise

    def _refuse_leftovers(self, identifier: Identifier, path: str) -> None:
        if snapshot_ids(self.io, TablePaths(path)):
            raise ConfigError(
                f"table '{identifier}' has no schema but {path}/snapshot holds snapshots of an "
                "older table; move that directory away first"
            )
