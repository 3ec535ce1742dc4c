"""The JDBC catalog: the names of tables in a database, their schemas and files in storage.

Specification: https://paimon.apache.org/docs/1.4/concepts/catalog/#jdbc-catalog

The directories are those of the filesystem catalog. A table exists if and only if the database has
a row for it. The row is added after the first schema file and deleted after the last file, so that
an interrupted creation or deletion can be repeated.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from ingestd.errors import ConfigError, FormatError
from ingestd.paimon.catalog.base import (
    Identifier,
    TableExistsError,
    TableNotFoundError,
    check_empty,
    check_name,
    nearest_name_hint,
    no_table,
    refuse_branch,
)
from ingestd.paimon.catalog.filesystem import FilesystemCatalog
from ingestd.paimon.catalog.jdbc_database import (
    Database,
    Session,
    database_of,
    insert_storable,
)
from ingestd.paimon.catalog.jdbc_lock import JdbcLock
from ingestd.paimon.catalog.jdbc_tables import create_catalog_tables, create_lock_table
from ingestd.paimon.catalog.lock_settings import LOCK_OPTIONS, LockSettings, lock_settings
from ingestd.paimon.catalog.synced_properties import synced_properties
from ingestd.paimon.io.file_io import (
    absolute_path,
    file_io_for,
    storage_options,
)
from ingestd.paimon.spec.option_types import parse_bool, parse_int
from ingestd.paimon.spec.schema_change import SchemaChange
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable, TableLock, held_on

URI = "uri"
USER = "jdbc.user"
PASSWORD = "jdbc.password"  # noqa: S105  (the name of an option)
_PROPERTY = "jdbc."
_CATALOG_KEY = "catalog-key"
_LOCK_KEY_MAX_LENGTH = "lock-key-max-length"
_SYNC_PROPERTIES = "sync-all-properties"
_OPTIONS = (
    URI,
    _CATALOG_KEY,
    *LOCK_OPTIONS,
    _LOCK_KEY_MAX_LENGTH,
    _SYNC_PROPERTIES,
)
_EXISTS = "exists"
"""A property of every database, which clients do not see."""
_LOCATION = "location"
_PROPERTY_LENGTH = 1000
_OF_TABLE = "catalog_key = ? AND database_name = ? AND table_name = ?"
_OF_DATABASE = "catalog_key = ? AND database_name = ?"


def is_jdbc_option(name: str) -> bool:
    """Return whether JDBC catalogs have an option of this name, apart from options of the store."""
    return name in _OPTIONS or name.startswith(_PROPERTY)


@dataclass(frozen=True)
class JdbcOptions:
    """The options of a JDBC catalog.

    `catalog_key` distinguishes the catalogs in one database. With `sync_properties`, the database
    has a copy of the table options. `lock` is None if the catalog does not lock;
    `lock_key_max_length` is the maximum number of characters of a lock's name.
    """

    database: Database
    catalog_key: str
    sync_properties: bool
    lock: LockSettings | None
    lock_key_max_length: int


def jdbc_options(warehouse: str, options: Mapping[str, str]) -> JdbcOptions:
    """Return the options of a JDBC catalog, given by Paimon's names, without connecting.

    Options that are not given have Paimon's defaults; whether the catalog locks depends on
    `warehouse`. Raises ConfigError for an unknown or invalid option, UnsupportedError for an
    unsupported database.
    """
    jdbc = set(filter(is_jdbc_option, options))
    unknown = sorted(set(options) - jdbc - storage_options(options).keys())
    if unknown:
        raise ConfigError(
            f"the JDBC catalog has no option {', '.join(unknown)}; it has {', '.join(_OPTIONS)}, "
            f"{_PROPERTY}NAME for properties of the driver, and the options of the store"
        )
    if not options.get(URI):
        raise ConfigError(f"the JDBC catalog needs the option '{URI}': the URL of its database")
    properties = {
        name.removeprefix(_PROPERTY): value
        for name, value in options.items()
        if name.startswith(_PROPERTY)
    }
    return JdbcOptions(
        database_of(options[URI], properties),
        options.get(_CATALOG_KEY, "jdbc"),
        parse_bool(_SYNC_PROPERTIES, options.get(_SYNC_PROPERTIES, "true")),
        lock_settings(warehouse, options),
        parse_int(_LOCK_KEY_MAX_LENGTH, options.get(_LOCK_KEY_MAX_LENGTH, "255")),
    )


def open_catalog(warehouse: str, options: Mapping[str, str]) -> "JdbcCatalog":
    """Return the catalog that a database stores; its own tables there are created if missing.

    `warehouse` is the directory of Paimon's databases and tables. Raises StorageError if the
    database cannot be reached, ConfigError for an unknown or invalid option, UnsupportedError for
    an unsupported database.
    """
    settings = jdbc_options(warehouse, options)
    with settings.database.transaction() as session:
        create_catalog_tables(session, settings.database)
        if settings.lock is not None:
            create_lock_table(session, settings.database, settings.lock_key_max_length)
    io = file_io_for(warehouse, storage_options(options))
    files = FilesystemCatalog(absolute_path(warehouse), io, case_sensitive=False)
    return JdbcCatalog(files, settings)


@dataclass(frozen=True)
class JdbcCatalog:
    """A catalog that keeps the names of tables in a database.

    `files` is the filesystem catalog whose directories contain the tables. New names must not have
    capitals, as in Java. Methods raise StorageError if the database or the storage fails.
    """

    files: FilesystemCatalog
    options: JdbcOptions

    def list_databases(self) -> list[str]:
        """Return the names of all databases, sorted."""
        sql = (
            "SELECT database_name FROM paimon_tables WHERE catalog_key = ? "
            "UNION SELECT database_name FROM paimon_database_properties WHERE catalog_key = ?"
        )
        with self._transaction() as session:
            rows = session.query(sql, [self.options.catalog_key] * 2)
        return sorted(name for (name,) in rows)

    def create_database(self, name: str, properties: Mapping[str, str] | None = None) -> None:
        """Create a database if it does not exist; an existing database keeps its properties.

        Raises ConfigError for a name that is not allowed, and for a property `location`.
        """
        if _LOCATION in (properties or {}):
            raise ConfigError(
                f"database '{name}': property '{_LOCATION}' is refused: the name of a database "
                "determines its path"
            )
        self.files.create_database(name)
        path = f"{self.files.warehouse}/{name}.db"
        with self._transaction() as session:
            if self._has_database(session, name):
                return
        # A transaction of SQLite that has read fails if another one writes before it.
        with self._transaction() as session:
            for key, value in {_EXISTS: "true", **(properties or {}), _LOCATION: path}.items():
                row = {
                    "catalog_key": self.options.catalog_key,
                    "database_name": name,
                    "property_key": key,
                    "property_value": value,
                }
                if not session.insert_new("paimon_database_properties", row) and key == _EXISTS:
                    return  # another process was first

    def database_properties(self, name: str) -> Mapping[str, str]:
        """Return the properties of a database.

        Raises TableNotFoundError if the database does not exist.
        """
        sql = (
            "SELECT property_key, property_value FROM paimon_database_properties "
            f"WHERE {_OF_DATABASE}"
        )
        self._check_database(name)
        with self._transaction() as session:
            rows = session.query(sql, [self.options.catalog_key, name])
        return {key: value for key, value in rows if key != _EXISTS}

    def drop_database(self, name: str, *, cascade: bool = False) -> None:
        """Delete a database, and with `cascade` its tables.

        Its directory stays if it has tables that the catalog does not know. Raises
        TableNotFoundError if the database does not exist, DatabaseNotEmptyError if it has tables
        and `cascade` is false, and the errors of `drop_table`.
        """
        tables = self.list_tables(name)
        check_empty(name, tables, cascade=cascade)
        for table in tables:
            self.drop_table(Identifier(name, table))
        if name in self.files.list_databases() and not self.files.list_tables(name):
            self.files.drop_database(name)
        with self._transaction() as session:
            for table in ("paimon_database_properties", "paimon_table_properties"):
                session.execute(
                    f"DELETE FROM {table} WHERE {_OF_DATABASE}", [self.options.catalog_key, name]
                )

    def list_tables(self, database: str) -> list[str]:
        """Return the names of the tables of a database, sorted.

        Raises TableNotFoundError if the database does not exist.
        """
        self._check_database(database)
        sql = f"SELECT table_name FROM paimon_tables WHERE {_OF_DATABASE}"
        with self._transaction() as session:
            rows = session.query(sql, [self.options.catalog_key, database])
        return sorted(name for (name,) in rows)

    def table_exists(self, identifier: Identifier) -> bool:
        """Return whether the table exists."""
        with self._transaction() as session:
            rows = session.query(
                f"SELECT database_name, table_name FROM paimon_tables WHERE {_OF_TABLE}",
                self._key(identifier),
            )
        # Collations of MariaDB and MySQL may treat another name as equal.
        return (identifier.database, identifier.table) in rows

    def get_table(self, identifier: Identifier) -> FileStoreTable:
        """Return the table with its newest schema.

        Raises TableNotFoundError, which suggests the most similar name, if the database does not
        have the table; FormatError if the table has no schema file.
        """
        if not self.table_exists(identifier):
            raise no_table(identifier, self.list_tables(identifier.database))
        try:
            return self._opened(identifier, self.files.get_table(identifier))
        except TableNotFoundError as error:
            raise FormatError(
                f"catalog {self.options.database.address} has table {identifier}, but its "
                f"directory in {self.files.warehouse} has no schema: restore the directory, or "
                "drop the table"
            ) from error

    def create_table(
        self, identifier: Identifier, schema: TableSchema, *, ignore_if_exists: bool = False
    ) -> FileStoreTable:
        """Create a table, and its database if it does not exist; concurrent calls are safe.

        If the table exists, raises TableExistsError or, with `ignore_if_exists`, returns it. A
        directory of this table that the catalog does not know counts as existing, and with
        `ignore_if_exists` the catalog takes it over. Raises ConfigError for a name that the
        database cannot store, or does not distinguish from the name of another table; and the
        errors of `FilesystemCatalog.create_table`.
        """
        if self.table_exists(identifier):
            if not ignore_if_exists:
                raise TableExistsError(
                    f"table '{identifier}' exists already in {self.options.database.address}"
                )
            return self.get_table(identifier)
        self.create_database(identifier.database)
        try:
            with held_on(self._lock(identifier)):
                table = self.files.create_table(identifier, schema)
        except TableExistsError:
            if not ignore_if_exists:
                raise
            table = self.files.get_table(identifier)
            self._add(identifier, table.schema)
        else:
            self._add_created(identifier, table.schema)
        return self._opened(identifier, table)

    def alter_table(
        self, identifier: Identifier, changes: Sequence[SchemaChange], now_ms: int
    ) -> FileStoreTable:
        """Publish one new schema with the changes, on top of concurrent changes; return the table.

        Without changes, no schema is published. `now_ms` is the time of the new schema, in
        milliseconds since 1970. Raises TableNotFoundError if the table does not exist,
        SchemaConflictError if it does not allow the changes, ConfigError or UnsupportedError for a
        name or option that is not allowed, and CommitConflictError if other processes hold the lock
        of the table or publish a schema first in every attempt.
        """
        table = self.get_table(identifier)
        if not changes:
            return table
        with held_on(self._lock(identifier)):
            table = self.files.alter_table(identifier, changes, now_ms)
        with self._transaction() as session:
            self._sync_properties(session, identifier, table.schema)
        return self._opened(identifier, table)

    def drop_table(self, identifier: Identifier) -> None:
        """Delete a table with all its files; an interrupted call can be repeated.

        Raises TableNotFoundError if it does not exist, UnsupportedError if it has files outside its
        directory, FormatError if its newest schema file is damaged.
        """
        try:
            self.get_table(identifier)
            self.files.drop_table(identifier)
        except FormatError:
            # An interrupted drop has deleted the files, or the table is damaged.
            if self.files.table_exists(identifier):
                raise
        with self._transaction() as session:
            for table in ("paimon_tables", "paimon_table_properties"):
                session.execute(f"DELETE FROM {table} WHERE {_OF_TABLE}", self._key(identifier))

    def rename_table(self, source: Identifier, target: Identifier) -> None:
        """Rename a table, whose writers must be stopped; an interrupted call can be repeated.

        Raises TableNotFoundError if the table or the new database does not exist, TableExistsError
        if the new name is in use, ConfigError if it names a branch or is not allowed.
        """
        refuse_branch(target)
        moved = self._is_moved(source, target)
        if not moved:
            self.get_table(source)
        self._check_database(target.database)
        if self.table_exists(target):
            raise TableExistsError(
                f"table '{target}' exists already in {self.options.database.address}"
            )
        self.files.create_database(target.database)
        with self._transaction() as session:
            for table in ("paimon_tables", "paimon_table_properties"):
                session.execute(
                    f"UPDATE {table} SET database_name = ?, table_name = ? WHERE {_OF_TABLE}",
                    [target.database, target.table, *self._key(source)],
                )
            if not moved:
                self.files.rename_table(source, target)

    def _is_moved(self, source: Identifier, target: Identifier) -> bool:
        """Return whether an interrupted rename has moved the directory, but not the row."""
        files = self.files
        return (
            not files.table_exists(source)
            and files.table_exists(target)
            and self.table_exists(source)
        )

    def _add_created(self, identifier: Identifier, schema: TableSchema) -> None:
        """Add the row of a table that this process has created; if it is refused, delete it."""
        try:
            self._add(identifier, schema)
        except ConfigError:
            if not self.table_exists(identifier):
                self.files.drop_table(identifier)
            raise

    def _add(self, identifier: Identifier, schema: TableSchema) -> None:
        with self._transaction() as session:
            added = session.insert_new("paimon_tables", self._row(identifier))
            if added:
                self._sync_properties(session, identifier, schema)
        if not added and not self.table_exists(identifier):
            raise ConfigError(
                f"table '{identifier}': the collation of {self.options.database.address} takes its "
                "name for that of another table; choose another name"
            )

    def _opened(self, identifier: Identifier, table: FileStoreTable) -> FileStoreTable:
        return replace(table, lock=self._lock(identifier))

    def _lock(self, identifier: Identifier) -> TableLock | None:
        options = self.options
        if options.lock is None:
            return None
        return JdbcLock(options.database, options.catalog_key, identifier, options.lock)

    def _sync_properties(
        self, session: Session, identifier: Identifier, schema: TableSchema
    ) -> None:
        """Replace the copy of a table's options, without those that its columns cannot store."""
        if not self.options.sync_properties:
            return
        row = self._row(identifier)
        session.execute(
            f"DELETE FROM paimon_table_properties WHERE {_OF_TABLE}", self._key(identifier)
        )
        for key, value in synced_properties(schema).items():
            if len(value) <= _PROPERTY_LENGTH:
                copied = {**row, "property_key": key, "property_value": value}
                insert_storable(session, "paimon_table_properties", copied)

    def _transaction(self) -> AbstractContextManager[Session]:
        return self.options.database.transaction()

    def _row(self, identifier: Identifier) -> dict[str, str]:
        return {
            "catalog_key": self.options.catalog_key,
            "database_name": identifier.database,
            "table_name": identifier.table,
        }

    def _key(self, identifier: Identifier) -> list[str]:
        """Return the parameters of `_OF_TABLE`."""
        return list(self._row(identifier).values())

    def _check_database(self, name: str) -> None:
        check_name("database", name)
        with self._transaction() as session:
            known = self._has_database(session, name)
        if not known:
            hint = nearest_name_hint(name, self.list_databases())
            message = f"no database '{name}' in {self.options.database.address}{hint}"
            raise TableNotFoundError(message)

    def _has_database(self, session: Session, name: str) -> bool:
        tables = ("paimon_tables", "paimon_database_properties")
        return any(
            session.query(
                f"SELECT 1 FROM {table} WHERE {_OF_DATABASE} LIMIT 1",
                [self.options.catalog_key, name],
            )
            for table in tables
        )
