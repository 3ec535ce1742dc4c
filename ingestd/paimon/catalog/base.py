"""The protocol of catalogs, which give access to databases and tables by name.

A metastore is a module with a function `open_catalog(warehouse, options)`, registered in
`METASTORES`. Options have Paimon's names.
"""

import difflib
import importlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, cast

from ingestd.errors import ConfigError
from ingestd.paimon.spec.paths import BRANCH_MARK
from ingestd.paimon.spec.schema_change import AddColumn, RenameColumn, SchemaChange
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable

METASTORES: Mapping[str, str] = {
    "filesystem": "ingestd.paimon.catalog.filesystem",
    "hive": "ingestd.paimon.catalog.hive",
    "jdbc": "ingestd.paimon.catalog.jdbc",
    "rest": "ingestd.paimon.catalog.rest",
}
CASE_SENSITIVE = "case-sensitive"

_NAME_BYTES = 250
_SEPARATORS = frozenset("/\\:")
_RESERVED = {
    "database": (".", "a dot separates database and table"),
    "table": ("$", "'$' is reserved for system tables and branches, which cannot be written"),
}


class TableNotFoundError(ConfigError, FileNotFoundError):
    """The catalog does not have the table, or its database; also a FileNotFoundError."""


class TableExistsError(ConfigError):
    """A table with the requested name exists already."""


class DatabaseNotEmptyError(ConfigError):
    """The database to drop has tables, and `cascade` is not set."""


@dataclass(frozen=True, slots=True, order=True)
class Identifier:
    """The names of a table and of its database in a catalog.

    `table` may name a branch, like `orders$branch_fix`. Raises ConfigError for a name that is not
    allowed.
    """

    database: str
    table: str

    def __post_init__(self) -> None:
        check_name("database", self.database)
        for name in self.table.split(BRANCH_MARK, 1):
            check_name("table", name)

    @classmethod
    def parse(cls, text: str) -> "Identifier":
        """Parse `database.table`; the name of the table may contain further dots.

        Raises ConfigError if the database is missing or a name is not allowed.
        """
        database, dot, table = text.partition(".")
        if not dot:
            raise ConfigError(f"table name '{text}' has no database; write database.table")
        return cls(database, table)

    @property
    def main(self) -> "Identifier":
        """The identifier of the table without its branch."""
        return Identifier(self.database, self.table.partition(BRANCH_MARK)[0])

    @property
    def branch(self) -> str | None:
        """The branch that `table` names; None (the main branch) if it names none."""
        return self.table.partition(BRANCH_MARK)[2] or None

    def __str__(self) -> str:
        return f"{self.database}.{self.table}"


class Catalog(Protocol):
    """Databases and tables of one warehouse.

    Methods raise StorageError if the storage or the server of the catalog does not respond.
    """

    def list_databases(self) -> list[str]:
        """Return the names of all databases, sorted."""
        ...

    def create_database(self, name: str, properties: Mapping[str, str] | None = None) -> None:
        """Create a database if it does not exist; an existing database keeps its properties.

        Raises ConfigError for a name or a property that the catalog does not allow.
        """
        ...

    def database_properties(self, name: str) -> Mapping[str, str]:
        """Return the properties of a database.

        Raises TableNotFoundError if the database does not exist.
        """
        ...

    def drop_database(self, name: str, *, cascade: bool = False) -> None:
        """Delete a database, and with `cascade` its tables.

        Raises TableNotFoundError if it does not exist, DatabaseNotEmptyError if it has tables and
        `cascade` is false, and the errors of `drop_table`.
        """
        ...

    def list_tables(self, database: str) -> list[str]:
        """Return the names of the tables of a database, sorted.

        Raises TableNotFoundError if the database does not exist.
        """
        ...

    def table_exists(self, identifier: Identifier) -> bool:
        """Return whether the table exists; False if its database does not exist."""
        ...

    def get_table(self, identifier: Identifier) -> FileStoreTable:
        """Return the table with its newest schema.

        Raises TableNotFoundError, which suggests the most similar name, if the table does not
        exist, and FormatError if its schema is missing or damaged.
        """
        ...

    def create_table(
        self, identifier: Identifier, schema: TableSchema, *, ignore_if_exists: bool = False
    ) -> FileStoreTable:
        """Create a table, and its database if it does not exist; the id of `schema` must be 0.

        If the table exists, or another process creates it at the same time, raises TableExistsError
        or, with `ignore_if_exists`, returns the existing table, which may have another schema.
        Raises ConfigError for a name or an option that the catalog does not allow, and
        SchemaConflictError for a default value that is invalid for its column.
        """
        ...

    def alter_table(
        self, identifier: Identifier, changes: Sequence[SchemaChange], now_ms: int
    ) -> FileStoreTable:
        """Publish one new schema with the changes, on top of concurrent changes; return the table.

        Without changes, no schema is published. `now_ms` is the time of the new schema, in
        milliseconds since 1970. Raises TableNotFoundError if the table does not exist,
        SchemaConflictError if it does not allow the changes, ConfigError for a column name or an
        option that is not allowed, UnsupportedError for an option value that is not supported, and
        CommitConflictError if other processes publish a schema first in every attempt.
        """
        ...

    def drop_table(self, identifier: Identifier) -> None:
        """Delete a table with all its files; external tables of a Hive Metastore keep them.

        Raises TableNotFoundError if the table does not exist, and UnsupportedError if it has files
        outside its directory, which the catalog cannot delete.
        """
        ...

    def rename_table(self, source: Identifier, target: Identifier) -> None:
        """Rename a table, whose writers must be stopped.

        Raises TableNotFoundError if the table does not exist, TableExistsError if the new name is
        in use, ConfigError if the new name is not allowed or names a branch.
        """
        ...


class _Metastore(Protocol):
    def open_catalog(self, warehouse: str, options: Mapping[str, str]) -> Catalog: ...


def load_catalog(
    metastore: str, warehouse: str, options: Mapping[str, str] | None = None
) -> Catalog:
    """Return the catalog of a warehouse.

    `metastore` is "filesystem", "hive", "jdbc" or "rest"; `options` are the options of the
    metastore and of the store. Raises ConfigError for an unknown metastore or option,
    UnsupportedError for a value that is not supported, and StorageError if a server does not
    respond.
    """
    module = METASTORES.get(metastore)
    if module is None:
        known = ", ".join(sorted(METASTORES))
        raise ConfigError(f"unknown metastore '{metastore}'; known: {known}")
    return cast("_Metastore", importlib.import_module(module)).open_catalog(
        warehouse, options or {}
    )


def check_case(names: Iterable[str], *, case_sensitive: bool) -> None:
    """Raise ConfigError for capitals in names, unless the catalog is `case_sensitive`."""
    if case_sensitive:
        return
    for name in names:
        if name != name.lower():
            raise ConfigError(
                f"name '{name}' has capitals, and the catalog option '{CASE_SENSITIVE}' is false"
            )


def new_column_names(changes: Sequence[SchemaChange]) -> list[str]:
    """Return the column names that the changes introduce, by adding or renaming columns."""
    added = [change.name for change in changes if isinstance(change, AddColumn)]
    names = [name if isinstance(name, str) else name[-1] for name in added]
    return names + [change.new_name for change in changes if isinstance(change, RenameColumn)]


def nearest_name_hint(name: str, known: Iterable[str]) -> str:
    """Return the end of a message about a missing name.

    It suggests the most similar of the `known` names. If none is similar, it lists at most ten of
    them, or states that none exists.
    """
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        return f"; did you mean '{close[0]}'?"
    if not names:
        return "; none exists yet"
    more = ", ..." if len(names) > 10 else ""
    return f"; existing: {', '.join(names[:10])}{more}"


def no_table(identifier: Identifier, known: Iterable[str]) -> TableNotFoundError:
    """Return the error for a missing table; `known` are the tables of its database."""
    hint = nearest_name_hint(identifier.table, known)
    return TableNotFoundError(
        f"no table '{identifier.table}' in database '{identifier.database}'{hint}"
    )


def refuse_branch(identifier: Identifier) -> None:
    """Raise ConfigError if an identifier names a branch, because only a table is allowed."""
    if identifier.branch is not None:
        raise ConfigError(
            f"'{identifier}' names a branch, not a table; `ingestd branch` creates and deletes "
            "branches of a table"
        )


def check_empty(database: str, tables: Sequence[str], *, cascade: bool) -> None:
    """Raise DatabaseNotEmptyError if a database to drop has tables, unless `cascade`."""
    if tables and not cascade:
        raise DatabaseNotEmptyError(
            f"database '{database}' still has tables: {', '.join(tables[:10])}; drop them first"
        )


def check_name(kind: Literal["database", "table"], name: str) -> None:
    """Raise ConfigError if a database or table of this name cannot be read by all readers.

    `kind` states whether it is the name of a database or of a table.
    """
    reserved, reason = _RESERVED[kind]
    if not name or name != name.strip():
        problem = "is empty, or begins or ends with a blank"
    elif name.startswith("."):
        problem = "begins with a dot"
    elif any(char in _SEPARATORS or char < " " or char == "\x7f" for char in name):
        problem = "contains a slash, a backslash, a colon or a control character"
    elif len(name.encode("utf-8", "surrogatepass")) > _NAME_BYTES:
        problem = f"is longer than {_NAME_BYTES} bytes"
    elif reserved in name:
        problem = f"contains {reserved}: {reason}"
    else:
        return
    raise ConfigError(f"{kind} name '{name}' {problem}")
