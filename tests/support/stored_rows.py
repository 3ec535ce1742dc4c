"""Rows of a table as our own reader gives them, in the inner form of their values."""

from typing import Any

from ingestd.paimon.spec.arrow import column_values
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.read.table_read import TableReader


def stored_rows(table: FileStoreTable) -> list[dict[str, Any]]:
    """The rows of the newest snapshot, in no order; [] without a snapshot."""
    snapshot = latest_snapshot(table.io, table.paths)
    if snapshot is None:
        return []
    rows: list[dict[str, Any]] = []
    for row in TableReader(table).rows(snapshot):
        names = row.column_names
        cells = zip(*(column_values(row.column(name)) for name in names), strict=True)
        rows += [dict(zip(names, values, strict=True)) for values in cells]
    return rows


def forget_snapshots(table: FileStoreTable, *ids: int) -> None:
    """Take the oldest snapshots away as expiry does, but leave their data files."""
    for snapshot_id in ids:
        table.io.delete_quietly(table.paths.snapshot(snapshot_id))
    table.io.delete_quietly(table.paths.earliest_hint)
