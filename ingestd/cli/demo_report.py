"""The report of `ingestd demo`: tables, snapshots, rate, and next commands."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from ingestd.dev.workload import KEYS, TABLES, Workload
from ingestd.paimon.casts.rows_json import json_lines
from ingestd.paimon.catalog.base import Catalog, Identifier
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import read_snapshot, snapshot_ids
from ingestd.paimon.table.read.table_read import read_table

DATABASE = "shop"
SHOWN_ROWS = 5
ROOMY = 140  # columns of a terminal that all columns of `orders` need
ESSENTIAL = {
    "customers": ("customer_id", "name", "tier", "score", "registered", "active"),
    "orders": ("order_id", "status", "amount", "note", "updated_at", "coupon"),
}

_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")


@dataclass(slots=True)
class Timings:
    """The number of records, and the seconds that producing and ingesting them took."""

    records: int = 0
    produced_seconds: float = 0.0
    ingested_seconds: float = 0.0


def print_report(
    console: Console, root: Path, catalog: Catalog, workload: Workload, timings: Timings
) -> None:
    """Print the report; tables are read back from the warehouse."""
    expected = workload.expected()
    right = True
    history: list[tuple[str, Snapshot]] = []
    for name in TABLES:
        table = catalog.get_table(Identifier(DATABASE, name))
        rows = rows_by_key(table, KEYS[name])
        right = right and rows == expected[name]
        columns = [c.name for c in TABLES[name]] if console.width >= ROOMY else ESSENTIAL[name]
        console.print(table_of_rows(f"{DATABASE}.{name}", columns, rows))
        history += [(name, s) for s in snapshots(table)]
    console.print(table_of_snapshots(history))
    rate = timings.records / timings.ingested_seconds if timings.ingested_seconds else 0.0
    console.print(
        f"{timings.records:,} records in {timings.ingested_seconds:.1f} s with the daemon's start: "
        f"{rate:,.0f} a second{between_commits(history, timings)}."
    )
    console.print(
        "Every row is what the workload ends in."
        if right
        else "[bold red]The tables differ from what the workload ends in.[/]"
    )
    where_next(console, root)
    if not right:
        raise SystemExit(1)


def report_document(
    root: Path, catalog: Catalog, workload: Workload, timings: Timings
) -> dict[str, object]:
    """Return the report as a document; `right` is whether all rows are as expected."""
    expected = workload.expected()
    found = {name: catalog.get_table(Identifier(DATABASE, name)) for name in TABLES}
    return {
        "folder": str(root),
        "records": timings.records,
        "produced_seconds": round(timings.produced_seconds, 3),
        "ingested_seconds": round(timings.ingested_seconds, 3),
        "tables": {
            f"{DATABASE}.{name}": {"rows": len(expected[name]), "snapshots": len(snapshots(table))}
            for name, table in found.items()
        },
        "right": all(rows_by_key(found[name], KEYS[name]) == expected[name] for name in TABLES),
    }


def rows_by_key(table: FileStoreTable, key: str) -> list[dict[str, Any]]:
    """Return all rows as readers print them, ordered by key."""
    rows = [json.loads(line) for line in json_lines(read_table(table), table.schema.fields)]
    return sorted(rows, key=lambda row: int(row[key]))


def snapshots(table: FileStoreTable) -> list[Snapshot]:
    """Return all snapshots of a table, oldest first."""
    return [read_snapshot(table.io, table.paths, n) for n in snapshot_ids(table.io, table.paths)]


def table_of_rows(title: str, columns: Sequence[str], rows: list[dict[str, Any]]) -> Table:
    """Return the first rows of a table in these columns."""
    drawn = _drawn(f"{title}: {len(rows):,} rows")
    for name in columns:
        drawn.add_column(name, overflow="ellipsis", no_wrap=True, max_width=26)
    for row in rows[:SHOWN_ROWS]:
        drawn.add_row(*(_cell(row[name]) for name in columns))
    if len(rows) > SHOWN_ROWS:
        drawn.add_row(*("…" for _ in columns))
    return drawn


def _cell(value: object) -> str:
    """Format a value, without fractions of seconds."""
    if isinstance(value, str) and _TIMESTAMP.match(value):
        return value[:19].replace("T", " ")
    return "" if value is None else str(value)


def _drawn(title: str) -> Table:
    return Table(
        title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, min_width=len(title) + 2
    )


def table_of_snapshots(history: list[tuple[str, Snapshot]]) -> Table:
    """Return a line for each snapshot, in the order of their commits."""
    drawn = _drawn("snapshots")
    for name in ("committed (UTC)", "table", "snapshot", "kind", "schema", "changes", "records"):
        drawn.add_column(name, justify="right" if name in {"changes", "records"} else "left")
    for table, snapshot in sorted(history, key=lambda item: (item[1].time_millis, item[0])):
        moment = datetime.fromtimestamp(snapshot.time_millis / 1000, UTC)
        drawn.add_row(
            moment.strftime("%H:%M:%S.%f")[:-3],
            table,
            str(snapshot.id),
            str(snapshot.commit_kind),
            str(snapshot.schema_id),
            f"{snapshot.delta_record_count or 0:,}",
            f"{snapshot.total_record_count or 0:,}",
        )
    return drawn


def between_commits(history: list[tuple[str, Snapshot]], timings: Timings) -> str:
    """Return the rate after the first batch, if there are enough snapshots."""
    times = sorted(snapshot.time_millis for _, snapshot in history)
    batches = max(sum(name == table for name, _ in history) for table in TABLES)
    if batches < 2 or times[-1] == times[0]:
        return ""
    rate = timings.records * (1 - 1 / batches) / ((times[-1] - times[0]) / 1000)
    return f", {rate:,.0f} a second after the first of {batches} batches"


def where_next(console: Console, root: Path) -> None:
    """Print commands to try on the demo's tables."""
    warehouse = root / "warehouse"
    console.print("\nWhere to look next:")
    for command in (
        f"ingestd read {warehouse} {DATABASE}.orders",
        f"ingestd read {warehouse} {DATABASE}.orders --snapshot 1 --format table",
        f"ingestd snapshots {warehouse} {DATABASE}.orders",
        f"ingestd verify {warehouse} {DATABASE}.orders",
        f"cat {root / 'ingestd.yaml'}",
    ):
        console.print(f"  {command}", soft_wrap=True, highlight=False)
