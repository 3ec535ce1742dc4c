"""System tables: metadata of a table as rows.

`orders$snapshots` is the view `snapshots` of the table `orders`; `orders$branch_b` the table on
a branch, which has views, too.

Specification: https://paimon.apache.org/docs/1.4/concepts/system-tables/#data-system-table
"""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from ingestd.errors import ConfigError
from ingestd.paimon.spec.arrow import column_of
from ingestd.paimon.spec.data_types import DataField
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.system import files as system_files
from ingestd.paimon.table.system import history as system_history
from ingestd.paimon.table.system import statistics as system_statistics
from ingestd.paimon.table.system.history import Cells

BRANCH_PREFIX = "branch_"


@dataclass(frozen=True, slots=True)
class SystemTable:
    """A system table: its columns and its rows as of a snapshot (None: the table is empty)."""

    fields: tuple[DataField, ...]
    rows: Callable[[FileStoreTable, Snapshot | None], list[Cells]]


def _whenever(
    rows: Callable[[FileStoreTable], list[Cells]],
) -> Callable[[FileStoreTable, Snapshot | None], list[Cells]]:
    """Return rows that are the same whatever snapshot is looked at."""
    return lambda table, _: rows(table)


SYSTEM_TABLES: Mapping[str, SystemTable] = {
    "snapshots": SystemTable(system_history.SNAPSHOTS, _whenever(system_history.snapshot_rows)),
    "tags": SystemTable(system_history.TAGS, _whenever(system_history.tag_rows)),
    "schemas": SystemTable(system_history.SCHEMAS, _whenever(system_history.schema_rows)),
    "options": SystemTable(system_history.OPTIONS, _whenever(system_history.option_rows)),
    "consumers": SystemTable(system_history.CONSUMERS, _whenever(system_history.consumer_rows)),
    "branches": SystemTable(system_history.BRANCHES, _whenever(system_history.branch_rows)),
    "files": SystemTable(system_files.FILES, system_files.file_rows),
    "manifests": SystemTable(system_files.MANIFESTS, system_files.manifest_rows),
    "partitions": SystemTable(system_files.PARTITIONS, system_files.partition_rows),
    "buckets": SystemTable(system_files.BUCKETS, system_files.bucket_rows),
    "statistics": SystemTable(system_statistics.STATISTICS, system_statistics.statistics_rows),
    "table_indexes": SystemTable(system_files.TABLE_INDEXES, system_files.index_rows),
}
"""The system tables by name."""


def system_table(name: str) -> SystemTable:
    """Return the system table of a name; ConfigError with the nearest name if there is none."""
    declared = SYSTEM_TABLES.get(name)
    if declared is None:
        close = difflib.get_close_matches(name, SYSTEM_TABLES, n=1)
        hint = f"did you mean '${close[0]}'?" if close else f"there is: {', '.join(SYSTEM_TABLES)}"
        raise ConfigError(f"there is no system table '${name}'; {hint}")
    return declared


def read_system_table(table: FileStoreTable, name: str, snapshot: Snapshot | None) -> pa.Table:
    """Return the rows of a system table. Raises ConfigError if there is none of that name."""
    view = system_table(name)
    cells = view.rows(table, snapshot)
    arrays = [column_of([row[i] for row in cells], f.type) for i, f in enumerate(view.fields)]
    return pa.Table.from_arrays(arrays, names=[field.name for field in view.fields])


def split_name(name: str) -> tuple[str, str | None, str | None]:
    """Split `table[$branch_b][$view]` into table, branch and view; ConfigError for other forms."""
    table, *suffixes = name.split("$")
    branch: str | None = None
    if suffixes and suffixes[0].startswith(BRANCH_PREFIX):
        branch = suffixes.pop(0).removeprefix(BRANCH_PREFIX)
    view = suffixes.pop(0) if suffixes else None
    if suffixes or not table or branch == "" or view == "":
        raise ConfigError(
            f"table name '{name}': write database.table$view, or database.table$branch_name$view"
        )
    return table, branch, view
