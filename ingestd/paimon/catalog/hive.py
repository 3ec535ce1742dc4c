"""The Hive catalog: tables by name in a Hive Metastore, their schemas and files in storage.

Specification: https://paimon.apache.org/docs/1.4/concepts/catalog/#hive-catalog

A table exists if and only if the metastore has it as a table of Paimon. It is added after the first
schema file and removed after the last file, so that an interrupted creation or deletion can be
repeated. The metastore's columns and properties are a copy for other engines: a schema is written
there before it is published, so that a metastore that refuses it leaves the table unchanged.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ingestd.errors import ConfigError, FormatError, IngestdError, SchemaConflictError
from ingestd.paimon.catalog.base import (
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
from ingestd.paimon.catalog.hive_client import (
    AlreadyExistsError,
    InvalidObjectError,
    InvalidOperationError,
)
from ingestd.paimon.catalog.hive_lock import HiveLock
from ingestd.paimon.catalog.hive_options import HiveOptions, hive_options
from ingestd.paimon.catalog.hive_partitions import HivePartitions
from ingestd.paimon.catalog.hive_tables import (
    HiveTable,
    database_location,
    new_database,
    new_table,
    properties_of_database,
    registered_keys,
)
from ingestd.paimon.catalog.hive_types import hive_type
from ingestd.paimon.catalog.table_directory import TableDirectory
from ingestd.paimon.catalog.thrift import (
    Items,
    Struct,
    boolean,
    structure,
    text,
    text_map,
)
from ingestd.paimon.io.file_io import absolute_path, file_io_for, is_local, storage_options
from ingestd.paimon.spec.schema_change import SchemaChange
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable, TableLock, held_on

_SUFFIX = ".db"
_TABLES_AT_ONCE = 300
_COLUMN_CHECK = "hive.metastore.disallow.incompatible.col.type.changes"
_NO_ENVIRONMENT = structure({1: text_map({})})


def open_catalog(warehouse: str, options: Mapping[str, str]) -> "HiveCatalog":
    """Return the catalog of a metastore, without connecting.

    `warehouse` is the directory of the databases that the catalog will create. Raises ConfigError
    for an unknown or invalid option, UnsupportedError for an authentication or a protocol that is
    not supported.
    """
    store = storage_options(options)
    file_io_for(warehouse, store)
    return HiveCatalog(absolute_path(warehouse), hive_options(warehouse, options), store)


@dataclass(frozen=True)
class HiveCatalog:
    """A catalog that keeps the names of databases and tables in a Hive Metastore.

    `warehouse` is the directory of the databases that this catalog creates; `store` has the options
    of the store that contains the files. New names must not have capitals, because Hive converts
    names to lower case. Methods raise StorageError if the metastore or the storage fails.
    """

    warehouse: str
    options: HiveOptions
    store: Mapping[str, str] = field(default_factory=dict, repr=False)

    def list_databases(self) -> list[str]:
        """Return the names of all databases, sorted."""
        names: Items = self.options.metastore.call("get_all_databases")
        return sorted(names.contents)

    def create_database(self, name: str, properties: Mapping[str, str] | None = None) -> None:
        """Create a database if it does not exist; an existing database keeps its properties.

        The properties `comment`, `owner` and `location` have the same meaning as in Hive. Raises
        ConfigError for a name that Hive does not allow.
        """
        check_name("database", name)
        check_case([name], case_sensitive=False)
        if self.options.metastore.find_database(name) is not None:
            return
        database = new_database(
            name,
            properties or {},
            f"{self.warehouse}/{name}{_SUFFIX}",
            in_properties=self.options.location_in_properties,
        )
        try:
            self.options.metastore.call("create_database", structure(database))
        except InvalidObjectError as error:
            raise ConfigError(f"database '{name}': {error.message}") from error
        except AlreadyExistsError:
            return  # another process was first

    def database_properties(self, name: str) -> Mapping[str, str]:
        """Return the properties of a database.

        Raises TableNotFoundError if the database does not exist.
        """
        return properties_of_database(self._database(name))

    def drop_database(self, name: str, *, cascade: bool = False) -> None:
        """Delete a database, and with `cascade` its tables.

        Raises TableNotFoundError if it does not exist, DatabaseNotEmptyError if it has tables and
        `cascade` is false, ConfigError if it has tables that are not tables of Paimon, and
        UnsupportedError if a table has files outside its directory.
        """
        tables = self.list_tables(name)
        check_empty(name, tables, cascade=cascade)
        for table in tables:
            self.drop_table(Identifier(name, table))
        path = self._database_path(name)
        try:
            self.options.metastore.call("drop_database", text(name), boolean(False), boolean(False))
        except InvalidOperationError as error:
            raise ConfigError(
                f"database '{name}' has tables of other formats: drop them first ({error.message})"
            ) from error
        directory = self._directory(path, name)
        if not directory.io.list_names(path):
            directory.io.delete_tree(path)

    def list_tables(self, database: str) -> list[str]:
        """Return the names of the Paimon tables of a database, sorted.

        Raises TableNotFoundError if the database does not exist.
        """
        self._database(database)
        with self.options.metastore.session() as session:
            names: Items = session.call("get_all_tables", text(database))
            tables = []
            for start in range(0, len(names.contents), _TABLES_AT_ONCE):
                some = names.contents[start : start + _TABLES_AT_ONCE]
                tables += [HiveTable(fields) for fields in session.tables(database, some)]
        return sorted(table.name for table in tables if table.is_paimon)

    def table_exists(self, identifier: Identifier) -> bool:
        """Return whether the metastore has a table of this name that is a table of Paimon."""
        table = self._find_table(identifier)
        return table is not None and table.is_paimon

    def get_table(self, identifier: Identifier) -> FileStoreTable:
        """Return the table with its newest schema.

        Raises TableNotFoundError, which suggests the most similar name, if the metastore does not
        have the table; FormatError if the table has no schema file.
        """
        directory = self._table_directory(identifier, self._paimon_table(identifier))
        table = directory.open_table()
        if table is None:
            raise FormatError(
                f"metastore {self.options.metastore} has table {identifier}, but its directory "
                f"{directory.path} has no schema: restore the directory, or drop the table"
            )
        return self._opened(identifier, table)

    def create_table(
        self, identifier: Identifier, schema: TableSchema, *, ignore_if_exists: bool = False
    ) -> FileStoreTable:
        """Create a table, and its database if it does not exist; concurrent calls are safe.

        If the metastore or the directory has a Paimon table, raises TableExistsError or, with
        `ignore_if_exists`, returns it. Raises ConfigError for the option `path`, a name that Hive
        refuses, another format, or snapshots of an older table; UnsupportedError for a type that
        Hive lacks; SchemaConflictError for an invalid default; ValueError if the id is not 0.
        """
        if schema.id != 0:
            raise ValueError(f"the first schema of a table has id 0, not {schema.id}")
        if "path" in schema.options:
            raise ConfigError(
                f"table '{identifier}': option 'path' is refused: the directory of its database "
                "and its name determine the path of a table"
            )
        check_case([identifier.table, *schema.field_names], case_sensitive=False)
        stored = self._find_table(identifier)
        if stored is not None:
            if not stored.is_paimon:
                raise ConfigError(
                    f"metastore {self.options.metastore} has a table '{identifier}' that is not a "
                    "table of Paimon: drop it, or choose another name"
                )
            return self._existing(identifier, ignore_if_exists=ignore_if_exists)
        for column in schema.fields:
            hive_type(column.type)  # refuses types that Hive does not have
        self.create_database(identifier.database)
        database = self._database_path(identifier.database)
        directory = self._directory(f"{database}/{identifier.table}", str(identifier))
        with held_on(self._lock(identifier)):
            table = directory.create_table(schema)
        if table is not None:
            return self._added(identifier, table)
        table = directory.open_table() if ignore_if_exists else None
        if table is None:
            raise TableExistsError(f"table '{identifier}' exists already in {directory.path}")
        self._add(identifier, table)
        return self._opened(identifier, table)

    def alter_table(
        self, identifier: Identifier, changes: Sequence[SchemaChange], now_ms: int
    ) -> FileStoreTable:
        """Publish one new schema with the changes, on top of concurrent changes; return the table.

        Without changes, no schema is published. `now_ms` is the time of the new schema, in
        milliseconds since 1970. Raises TableNotFoundError if the table does not exist,
        SchemaConflictError if it or the metastore does not allow the changes, ConfigError or
        UnsupportedError for a name, type or option that is not allowed, and CommitConflictError if
        other processes hold the lock of the table or publish a schema first in every attempt.
        """
        table = self.get_table(identifier)
        if not changes:
            return table
        check_case(new_column_names(changes), case_sensitive=False)
        directory = TableDirectory(table.path, table.io, table.name)
        options = table.schema.options

        def write_copy(schema: TableSchema) -> None:
            try:
                self._write_copy(identifier, schema, options)
            except SchemaConflictError:
                # An interrupted change may have left columns that this change cannot replace.
                self._write_copy(identifier, table.schema, options)
                self._write_copy(identifier, schema, options)

        with held_on(self._lock(identifier)):
            table = directory.alter_table(table, changes, now_ms, before=write_copy)
        return self._opened(identifier, table)

    def drop_table(self, identifier: Identifier) -> None:
        """Delete a table, with all its files unless it is external.

        Raises TableNotFoundError if it does not exist, UnsupportedError if it has files outside its
        directory.
        """
        stored = self._paimon_table(identifier)
        if not stored.is_external:
            directory = self._table_directory(identifier, stored)
            table = directory.open_table()
            if table is not None:  # else an interrupted drop has deleted the files
                directory.delete_table(table)
        self.options.metastore.call(
            "drop_table_with_environment_context",
            text(identifier.database),
            text(identifier.table),
            boolean(False),
            _NO_ENVIRONMENT,
        )

    def rename_table(self, source: Identifier, target: Identifier) -> None:
        """Rename a table, whose writers must be stopped.

        The metastore moves the directory of a managed table; with `location-in-properties`, this
        catalog does. An external table keeps its directory. An interrupted call can be repeated.
        Raises TableNotFoundError if the table or the new database does not exist, TableExistsError
        if the new name is in use, ConfigError if it has capitals or names a branch,
        SchemaConflictError if the metastore refuses the change.
        """
        stored = self._paimon_table(source)
        old, renamed = self._table_directory(source, stored), stored.renamed(target)
        check_case([target.table], case_sensitive=False)
        path = f"{self._database_path(target.database)}/{target.table}"
        new = self._directory(path, str(target))
        moves = self.options.location_in_properties and not stored.is_external
        is_moved = moves and new.has_table() and not old.has_table()  # an interrupted rename did it
        if not is_moved:
            self.get_table(source)
        if self._find_table(target) is not None or (new.io.exists(path) and not is_moved):
            raise TableExistsError(f"table '{target}' exists already, or its directory {path} does")
        if not moves:
            self._alter(source, renamed)
            return
        if not is_moved:
            old.io.rename_directory(old.path, path)
        try:
            self._alter(source, renamed.moved(path, in_properties=True))
        except IngestdError:
            if not self.table_exists(target):
                old.io.rename_directory(path, old.path)
            raise

    def _opened(self, identifier: Identifier, table: FileStoreTable) -> FileStoreTable:
        return replace(
            table, lock=self._lock(identifier), partitions=self._partitions(identifier, table)
        )

    def _partitions(self, identifier: Identifier, table: FileStoreTable) -> HivePartitions | None:
        keys = registered_keys(table.schema)
        if not keys:
            return None
        options = self.options
        in_properties = options.location_in_properties
        return HivePartitions(options.metastore, identifier, keys, table.path, in_properties)

    def _lock(self, identifier: Identifier) -> TableLock | None:
        options = self.options
        if options.lock is None:
            return None
        return HiveLock(options.metastore, identifier, options.lock)

    def _existing(self, identifier: Identifier, *, ignore_if_exists: bool) -> FileStoreTable:
        if not ignore_if_exists:
            raise TableExistsError(
                f"table '{identifier}' exists already in metastore {self.options.metastore}"
            )
        return self.get_table(identifier)

    def _added(self, identifier: Identifier, table: FileStoreTable) -> FileStoreTable:
        """Add a table that this process has created; if Hive refuses it, delete it."""
        try:
            self._add(identifier, table)
        except ConfigError:
            TableDirectory(table.path, table.io, table.name).delete_table(table)
            raise
        return self._opened(identifier, table)

    def _add(self, identifier: Identifier, table: FileStoreTable) -> None:
        options = self.options
        stored = new_table(
            identifier,
            table.schema,
            table.path,
            options.metastore.user,
            int(time.time()),
            external=options.external,
            sync_properties=options.sync_properties,
            in_properties=options.location_in_properties,
        )
        try:
            options.metastore.call("create_table", structure(stored.fields))
        except InvalidObjectError as error:
            raise ConfigError(f"table '{identifier}': {error.message}") from error
        except AlreadyExistsError:
            return  # another process was first

    def _alter(self, identifier: Identifier, changed: HiveTable) -> None:
        try:
            self.options.metastore.alter_table(
                identifier.database, identifier.table, changed.fields
            )
        except InvalidOperationError as error:
            raise SchemaConflictError(
                f"table '{identifier}': the metastore refuses the change, and nothing has changed; "
                f"it checks columns unless '{_COLUMN_CHECK}' = 'false': {error.message}"
            ) from error

    def _write_copy(
        self, identifier: Identifier, schema: TableSchema, before: Mapping[str, str]
    ) -> None:
        """Write the columns and options of a schema; `before` has the options of the last one."""
        stored = self._paimon_table(identifier)
        removed = before.keys() - schema.options.keys()
        sync = self.options.sync_properties
        self._alter(identifier, stored.with_schema(schema, removed, sync_properties=sync))

    def _find_table(self, identifier: Identifier) -> HiveTable | None:
        refuse_branch(identifier)
        names = (identifier.database, identifier.table)
        if any(name != name.lower() for name in names):
            return None
        fields = self.options.metastore.find_table(*names)
        return None if fields is None else HiveTable(fields)

    def _paimon_table(self, identifier: Identifier) -> HiveTable:
        table = self._find_table(identifier)
        if table is None or not table.is_paimon:
            raise no_table(identifier, self.list_tables(identifier.database))
        return table

    def _database(self, name: str) -> Struct:
        check_name("database", name)
        database = self.options.metastore.find_database(name)
        if database is None:
            hint = nearest_name_hint(name, self.list_databases())
            message = f"no database '{name}' in metastore {self.options.metastore}{hint}"
            raise TableNotFoundError(message)
        return database

    def _database_path(self, name: str) -> str:
        in_properties = self.options.location_in_properties
        return absolute_path(database_location(self._database(name), in_properties=in_properties))

    def _table_directory(self, identifier: Identifier, table: HiveTable) -> TableDirectory:
        in_properties = self.options.location_in_properties
        path = absolute_path(table.location(in_properties=in_properties))
        return self._directory(path, str(identifier))

    def _directory(self, path: str, name: str) -> TableDirectory:
        io = file_io_for(path, {} if is_local(path) else self.store)
        return TableDirectory(path, io, name)
