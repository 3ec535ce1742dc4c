"""Tables of the database `sys`: the tables, partitions and options of a whole catalog.

Columns are those of Java's catalogs, version 1.4. Java's `catalog_options` may contain secrets and
is refused.

Specification: https://paimon.apache.org/docs/1.4/concepts/system-tables/#global-system-table
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from ingestd.errors import ConfigError
from ingestd.paimon.catalog.base import Catalog, Identifier
from ingestd.paimon.spec.data_types import DataField
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.system.file_tables import partition_totals
from ingestd.paimon.table.system.history_tables import Cells, columns
from ingestd.paimon.table.system.system_tables import cells_table

SYS = "sys"
"""The database of these tables."""

_TABLES = columns(
    ("database_name", "STRING"), ("table_name", "STRING"), ("table_type", "STRING"),
    ("partitioned", "BOOLEAN"), ("primary_key", "BOOLEAN"), ("owner", "STRING"),
    ("created_at", "BIGINT"), ("created_by", "STRING"), ("updated_at", "BIGINT"),
    ("updated_by", "STRING"), ("record_count", "BIGINT"), ("file_size_in_bytes", "BIGINT"),
    ("file_count", "BIGINT"), ("last_file_creation_time", "BIGINT"),
)  # fmt: skip
_PARTITIONS = columns(
    ("database_name", "STRING"), ("table_name", "STRING"), ("partition_name", "STRING"),
    ("record_count", "BIGINT"), ("file_size_in_bytes", "BIGINT"), ("file_count", "BIGINT"),
    ("last_file_creation_time", "BIGINT"), ("done", "BOOLEAN"),
)  # fmt: skip
_OPTIONS = columns(
    ("database_name", "STRING"), ("table_name", "STRING"), ("key", "STRING"), ("value", "STRING")
)


@dataclass(frozen=True, slots=True)
class _SysTable:
    fields: tuple[DataField, ...]
    rows: Callable[[Identifier, FileStoreTable], Iterable[Cells]]


def _table_rows(name: Identifier, table: FileStoreTable) -> Iterable[Cells]:
    """Return the row of a table in `sys.tables`.

    The columns after `owner` are null: Java fills them only for catalogs that store snapshots.
    """
    options = table.schema.options
    keys = bool(table.schema.partition_keys), bool(table.schema.primary_keys)
    owner = options.get("owner")
    return [(name.database, name.table, "table", *keys, owner, *[None] * 8)]


def _partition_rows(name: Identifier, table: FileStoreTable) -> Iterable[Cells]:
    if not table.schema.partition_keys:
        return ()
    snapshot = latest_snapshot(table.io, table.paths)
    totals = partition_totals(table, snapshot)
    return [(name.database, name.table, *cells, False) for cells in totals]


def _option_rows(name: Identifier, table: FileStoreTable) -> Iterable[Cells]:
    options: Mapping[str, str] = {**table.schema.options, "path": table.path}
    return [(name.database, name.table, key, options[key]) for key in sorted(options)]


_SYS_TABLES: Mapping[str, _SysTable] = {
    "tables": _SysTable(_TABLES, _table_rows),
    "partitions": _SysTable(_PARTITIONS, _partition_rows),
    "all_table_options": _SysTable(_OPTIONS, _option_rows),
}


def sys_fields(name: str) -> tuple[DataField, ...]:
    """Return the columns of a table of `sys`. Raises ConfigError for an unknown name."""
    return _declared(name).fields


def read_sys_table(catalog: Catalog, name: str) -> Iterator[pa.Table]:
    """Yield the rows of a table of `sys`, one Arrow table for each table of the catalog.

    The tables are in the order of their databases and names. Raises ConfigError for an unknown
    name, and the errors of `Catalog.get_table`, for example if a table is dropped meanwhile.
    """
    declared = _declared(name)
    for database in catalog.list_databases():
        for table in catalog.list_tables(database):
            identifier = Identifier(database, table)
            rows = declared.rows(identifier, catalog.get_table(identifier))
            yield cells_table(declared.fields, list(rows))


def _declared(name: str) -> _SysTable:
    if name not in _SYS_TABLES:
        secret = " (catalog options may contain secrets)" if name == "catalog_options" else ""
        raise ConfigError(f"no table '{SYS}.{name}'{secret}; known: {', '.join(_SYS_TABLES)}")
    return _SYS_TABLES[name]
