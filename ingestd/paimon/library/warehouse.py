"""Open a warehouse, and open or create a single table by its path.

Specification: https://paimon.apache.org/docs/1.4/concepts/catalog/#catalogs
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ingestd.errors import ArgumentError
from ingestd.paimon.catalog.base import Catalog, Identifier, load_catalog
from ingestd.paimon.library.open_table import Table
from ingestd.paimon.spec.arrow import from_arrow_type
from ingestd.paimon.spec.options import refuse_new_options, refuse_unsupported
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.table.metadata.time_travel import on_branch
from ingestd.paimon.table.system.system_tables import parse_reference

_MILLIS = 1000
_DATABASE = ".db"


@dataclass(frozen=True, slots=True)
class Warehouse:
    """The databases and tables of one warehouse."""

    catalog: Catalog
    """The catalog of the warehouse, for other modules of `ingestd.paimon`."""

    def tables(self, database: str | None = None) -> list[str]:
        """Return the names ``database.table`` of the tables of a database (None: of all databases).

        They are sorted by database, then by table. Raises TableNotFoundError if the database does
        not exist.
        """
        list_tables = self.catalog.list_tables
        databases = self.catalog.list_databases() if database is None else [database]
        return [f"{parent}.{name}" for parent in databases for name in list_tables(parent)]

    def table(self, name: str) -> Table:
        """Return the table ``database.table``, or a branch of it: ``database.table$branch_NAME``.

        Raises TableNotFoundError, which suggests the most similar name, if the table does not
        exist; ArgumentError for an unknown branch, and for the name of a system table; ConfigError
        for a name without a database.
        """
        reference = parse_reference(name)
        if reference.view is not None:
            raise ArgumentError(f"'{name}' is a view of {reference.table}; open the table itself")
        table = self.catalog.get_table(Identifier.parse(reference.table))
        return Table(table if reference.branch is None else on_branch(table, reference.branch))

    def create(
        self,
        name: str,
        schema: pa.Schema,
        *,
        primary_keys: Sequence[str] = (),
        partition_keys: Sequence[str] = (),
        options: Mapping[str, str] | None = None,
    ) -> Table:
        """Create the table ``database.table``, and its database if it does not exist.

        Without `primary_keys`, it is an append table; without `partition_keys`, it has no
        partitions. Columns of the primary key, and columns that are not nullable in the schema, are
        NOT NULL. Raises TableExistsError if the table exists, ConfigError for an invalid name and
        for an unknown or invalid option, SchemaConflictError for invalid columns or keys,
        UnsupportedError for a type that Paimon does not have, an option that is not implemented, or
        a table that could not be written.
        """
        columns = [
            (column.name, kind if column.nullable else kind.not_null())
            for column in schema
            for kind in [from_arrow_type(column.type)]
        ]
        now_ms = int(time.time() * _MILLIS)
        refuse_new_options(options or {})
        first = new_schema(columns, primary_keys, partition_keys, options or {}, now_ms)
        refuse_unsupported(first, for_write=True)
        return Table(self.catalog.create_table(Identifier.parse(name), first))


def open_warehouse(
    path: str, *, metastore: str = "filesystem", options: Mapping[str, str] | None = None
) -> Warehouse:
    """Return the warehouse at a path; for the metastore ``rest``, `path` is its name on the server.

    `metastore` is ``filesystem``, ``hive``, ``jdbc`` or ``rest``. `options` are the options of the
    catalog and of its store, by Paimon's names. Raises ConfigError for an unknown metastore or
    option, UnsupportedError for a path in an unknown kind of storage, and StorageError if the
    server of the metastore does not respond.
    """
    return Warehouse(load_catalog(metastore, path, options))


def open_table(
    path: str, *, metastore: str = "filesystem", options: Mapping[str, str] | None = None
) -> Table:
    """Return the table at ``WAREHOUSE/DATABASE.TABLE`` or ``WAREHOUSE/DATABASE.db/TABLE``.

    `metastore` is ``filesystem``, ``hive``, ``jdbc`` or ``rest``. `options` are the options of the
    catalog and of its store, by Paimon's names. Raises ArgumentError if the path does not name a
    table, TableNotFoundError if the table does not exist, and the errors of `open_warehouse`.
    """
    root, name = split_path(path)
    return open_warehouse(root, metastore=metastore, options=options).table(name)


def create_table(
    path: str,
    schema: pa.Schema,
    *,
    primary_keys: Sequence[str] = (),
    partition_keys: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
) -> Table:
    """Create the table at ``WAREHOUSE/DATABASE.TABLE`` or ``WAREHOUSE/DATABASE.db/TABLE``.

    The warehouse is a directory, in a file system or an object store, without another metastore.
    `options` are the options of the table. Raises ArgumentError if the path does not name a table,
    TableExistsError if the table exists, and the other errors of `Warehouse.create`.
    """
    root, name = split_path(path)
    return open_warehouse(root).create(
        name, schema, primary_keys=primary_keys, partition_keys=partition_keys, options=options
    )


def split_path(path: str) -> tuple[str, str]:
    """Split a table's path into its warehouse and its name ``database.table``.

    Raises ArgumentError if the path does not name a table.
    """
    above, _, last = path.rstrip("/").rpartition("/")
    root, _, folder = above.rpartition("/")
    if folder.endswith(_DATABASE) and folder != _DATABASE:
        return root or (
            "/" if above.startswith("/") else "."
        ), f"{folder[: -len(_DATABASE)]}.{last}"
    if "." not in last.strip("."):
        raise ArgumentError(f"'{path}' names no table: write WAREHOUSE/DATABASE.TABLE")
    return _parent(above, path), last


def _parent(root: str, path: str) -> str:
    """Return `root`, or if it is empty, `/` for an absolute `path` and `.` for a relative one."""
    return root or ("/" if path.startswith("/") else ".")
