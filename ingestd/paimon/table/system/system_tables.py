"""System tables: metadata of a table as rows.

`orders$snapshots` is the view `snapshots` of the table `orders`; `orders$branch_b` is the table on
the branch `b`, which has views, too.

Specification: https://paimon.apache.org/docs/1.4/concepts/system-tables/#data-system-table
"""

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from ingestd.errors import ConfigError
from ingestd.paimon.spec.arrow import column_of
from ingestd.paimon.spec.data_types import DataField
from ingestd.paimon.spec.paths import BRANCH_MARK
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.system import analyze, file_tables, history_tables
from ingestd.paimon.table.system.history_tables import Cells

_BRANCH_PREFIX = BRANCH_MARK.removeprefix("$")


@dataclass(frozen=True, slots=True)
class SystemTable:
    """A system table: its columns, and a function that returns its rows as of a snapshot.

    The function is called with the table and the snapshot (None: the table has none); the cells of
    a row are in the order of `fields`.
    """

    fields: tuple[DataField, ...]
    rows: Callable[[FileStoreTable, Snapshot | None], list[Cells]]


def _whenever(
    rows: Callable[[FileStoreTable], list[Cells]],
) -> Callable[[FileStoreTable, Snapshot | None], list[Cells]]:
    """Return `rows` as a function that takes a snapshot, on which the rows do not depend."""
    return lambda table, _: rows(table)


SYSTEM_TABLES: Mapping[str, SystemTable] = {
    "snapshots": SystemTable(history_tables.SNAPSHOTS, _whenever(history_tables.snapshot_rows)),
    "tags": SystemTable(history_tables.TAGS, _whenever(history_tables.tag_rows)),
    "schemas": SystemTable(history_tables.SCHEMAS, _whenever(history_tables.schema_rows)),
    "options": SystemTable(history_tables.OPTIONS, _whenever(history_tables.option_rows)),
    "aggregation_fields": SystemTable(
        history_tables.AGGREGATION_FIELDS, _whenever(history_tables.aggregation_field_rows)
    ),
    "consumers": SystemTable(history_tables.CONSUMERS, _whenever(history_tables.consumer_rows)),
    "branches": SystemTable(history_tables.BRANCHES, _whenever(history_tables.branch_rows)),
    "files": SystemTable(file_tables.FILES, file_tables.file_rows),
    "file_key_ranges": SystemTable(file_tables.FILE_KEY_RANGES, file_tables.file_key_range_rows),
    "manifests": SystemTable(file_tables.MANIFESTS, file_tables.manifest_rows),
    "partitions": SystemTable(file_tables.PARTITIONS, file_tables.partition_rows),
    "buckets": SystemTable(file_tables.BUCKETS, file_tables.bucket_rows),
    "statistics": SystemTable(analyze.STATISTICS, analyze.statistics_rows),
    "table_indexes": SystemTable(file_tables.TABLE_INDEXES, file_tables.index_rows),
}
"""The system tables by name."""


def system_table(name: str) -> SystemTable:
    """Return the system table of a name. Raises ConfigError for an unknown name."""
    declared = SYSTEM_TABLES.get(name)
    if declared is None:
        close = difflib.get_close_matches(name, SYSTEM_TABLES, n=1)
        hint = f"did you mean '${close[0]}'?" if close else f"known: {', '.join(SYSTEM_TABLES)}"
        raise ConfigError(f"unknown system table '${name}'; {hint}")
    return declared


def read_system_table(table: FileStoreTable, name: str, snapshot: Snapshot | None) -> pa.Table:
    """Return the rows of a system table as of a snapshot (None: the table is empty).

    Raises ConfigError for an unknown name, and FormatError for damaged metadata.
    """
    view = system_table(name)
    return cells_table(view.fields, view.rows(table, snapshot))


def cells_table(fields: Sequence[DataField], rows: Sequence[Cells]) -> pa.Table:
    """Return rows, with their cells in the order of `fields`, as an Arrow table."""
    arrays = [column_of([row[i] for row in rows], f.type) for i, f in enumerate(fields)]
    return pa.Table.from_arrays(arrays, names=[field.name for field in fields])


class TableReference(NamedTuple):
    """A table `database.table`, with a branch and a system table of it (None: not given).

    `view` is the name of the system table, such as `snapshots`.
    """

    table: str
    branch: str | None
    view: str | None


def parse_reference(name: str) -> TableReference:
    """Parse the name `database.table[$branch_NAME][$SYSTEM_TABLE]`.

    Neither the database nor the system table is checked. Raises ConfigError for another form.
    """
    table, *suffixes = name.split("$")
    branch: str | None = None
    if suffixes and suffixes[0].startswith(_BRANCH_PREFIX):
        branch = suffixes.pop(0).removeprefix(_BRANCH_PREFIX)
    view = suffixes.pop(0) if suffixes else None
    if suffixes or not table or branch == "" or view == "":
        raise ConfigError(
            f"table name '{name}': write database.table$view, or database.table$branch_name$view"
        )
    return TableReference(table, branch, view)
