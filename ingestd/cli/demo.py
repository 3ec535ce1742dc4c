"""`ingestd demo`: run a broker, a workload and the daemon on this machine, and show the result.

The report shows tables, snapshots, the rate, and commands to try next.
"""

import json
import re
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table

from ingestd.cli.interrupts import interruptible
from ingestd.cli.output import AsJson, print_json
from ingestd.dev.broker import DevBroker
from ingestd.dev.child import Child
from ingestd.dev.produce import produce
from ingestd.dev.workload import KEYS, TABLES, Workload
from ingestd.errors import ConfigError, IngestdError
from ingestd.ingest.tables.log_positions import Vector, furthest
from ingestd.ingest.tables.managed_table import open_table
from ingestd.paimon.casts.rows_json import json_lines
from ingestd.paimon.catalog.base import Catalog, Identifier, load_catalog
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import read_snapshot, snapshot_ids
from ingestd.paimon.table.read.table_read import read_table
from ingestd.wording import counted

DATABASE = "shop"
PIPELINE = "demo"
MARK = ".ingestd-demo"
POLL_SECONDS = 0.2
_LEFT = "Its broker and its daemon have ended; the folder is emptied by the next demo there."
SHOWN_ROWS = 5
ROOMY = 140  # columns of a terminal that all columns of `orders` need
ESSENTIAL = {
    "customers": ("customer_id", "name", "tier", "score", "registered", "active"),
    "orders": ("order_id", "status", "amount", "note", "updated_at", "coupon"),
}

_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")


@dataclass(slots=True)
class Timings:
    """Measurements of the demo: number of records, and seconds to produce and to ingest them."""

    records: int = 0
    produced_seconds: float = 0.0
    ingested_seconds: float = 0.0


def demo(
    folder: Annotated[
        Path, typer.Option(help="Folder for the warehouse, the configuration and the logs.")
    ] = Path("demo"),
    events: Annotated[int, typer.Option(min=100, help="Change events to produce.")] = 20_000,
    as_json: AsJson = False,
) -> None:
    """Run a Kafka broker, a workload and the daemon on this machine, and show the tables.

    The folder is kept; the broker stops when the command ends.

    **Examples**

    ingestd demo

    ingestd demo --folder /tmp/demo --events 200000 --json
    """
    console = Console() if sys.stdout.isatty() else Console(width=ROOMY)
    workload = Workload(events=events)
    root = prepared(folder)
    with interruptible("the demo in", str(root), _LEFT):
        timings = worked(root, workload, Console(stderr=True) if as_json else console)
    catalog = load_catalog("filesystem", str(root / "warehouse"))
    if not as_json:
        print_report(console, root, catalog, workload, timings)
        return
    document = report_document(root, catalog, workload, timings)
    print_json(document)
    raise typer.Exit(0 if document["right"] else 1)


def worked(root: Path, workload: Workload, console: Console) -> Timings:
    """Run broker, workload and daemon until all changes are ingested; return the timings."""
    timings = Timings()
    with live(console) as progress:
        waiting = progress.add_task("Kafka broker", total=None)
        with DevBroker(log=root / "broker.log") as broker:
            progress.update(waiting, total=1, completed=1)
            begun = time.monotonic()
            timings.records = fill(progress, workload, broker.bootstrap)
            timings.produced_seconds = time.monotonic() - begun
            config = write_config(root, workload, broker.bootstrap)
            begun = time.monotonic()
            ingest(progress, config, root, timings.records)
            timings.ingested_seconds = time.monotonic() - begun
    return timings


def prepared(folder: Path) -> Path:
    """Create the demo's folder, or delete its contents, and return its absolute path.

    Raises ConfigError for a folder with contents that no demo has written.
    """
    root = folder.resolve()
    if root.exists() and any(root.iterdir()) and not (root / MARK).exists():
        raise ConfigError(f"{root} has contents other than a demo; name another --folder")
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    (root / MARK).touch()
    return root


@contextmanager
def live(console: Console) -> Iterator[Progress]:
    """Show a progress display on the console during the block, and yield it."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description:<24}"),
        BarColumn(bar_width=32),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:
        yield progress


def fill(progress: Progress, workload: Workload, bootstrap: str) -> int:
    """Produce the workload's change events to Kafka, and return their number.

    Raises SourceError if the broker does not accept them.
    """
    task = progress.add_task("producing changes", total=workload.events)
    count = produce(workload, bootstrap, lambda sent: progress.update(task, completed=sent))
    progress.update(task, total=count, completed=count)
    return count


def write_config(root: Path, workload: Workload, bootstrap: str) -> Path:
    """Write the configuration of the demo's pipeline to `ingestd.yaml` in `root`; return its path.

    The pipeline reads the topics of `workload` from the broker at `bootstrap`, and its warehouse is
    in `root`.
    """
    document = {
        "pipeline": {"name": PIPELINE, "trigger": "0s"},
        "warehouse": {"path": str(root / "warehouse"), "database": DATABASE},
        "sources": {
            "shop": {
                "kafka": {"bootstrap.servers": bootstrap},
                "topics": list(workload.topics.values()),
                "format": "debezium-json",
                "max-offsets-per-trigger": max(workload.events // 4, 1),
            }
        },
        "http": {"listen": "127.0.0.1:0"},
    }
    path = root / "ingestd.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return path


def ingest(progress: Progress, config: Path, root: Path, records: int) -> None:
    """Run the daemon until it has ingested all `records` that are in the topics.

    `config` is its configuration file, and `root` is the demo's folder, for warehouse and log.
    Raises IngestdError, with the end of the daemon's log, if the daemon fails.
    """
    task = progress.add_task("starting the daemon", total=records)
    with Child(["run", "-c", str(config), "--until-latest"], root / "ingestd.log") as child:
        while child.exit_code is None:
            show(progress, task, root / "warehouse")
            time.sleep(POLL_SECONDS)
        show(progress, task, root / "warehouse")
        if child.exit_code:
            raise IngestdError(
                f"the daemon ended with {child.exit_code}; the end of {root / 'ingestd.log'}:\n"
                f"{child.log_tail()}"
            )


def show(progress: Progress, task: TaskID, warehouse: Path) -> None:
    """Set the progress bar to the number of records that the tables cover now."""
    if not warehouse.exists():
        return
    count = records_in_tables(load_catalog("filesystem", str(warehouse)))
    if count:
        progress.update(task, description="ingesting", completed=count)


def records_in_tables(catalog: Catalog) -> int:
    """Return the number of Kafka records that the tables' newest snapshots cover."""
    covered: Vector = {}
    for name in TABLES:
        identifier = Identifier(DATABASE, name)
        if catalog.table_exists(identifier):
            managed = open_table(str(identifier), catalog.get_table(identifier), (PIPELINE,))
            covered = furthest(covered, managed.covered)
    return sum(
        partition.offset for partitions in covered.values() for partition in partitions.values()
    )


def print_report(
    console: Console, root: Path, catalog: Catalog, workload: Workload, timings: Timings
) -> None:
    """Print the report, with the rows read from the warehouse.

    Raises SystemExit with code 1 if a row is not as expected from the workload.
    """
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
        f"{counted(timings.records, 'record')} in {timings.ingested_seconds:.1f} s with the "
        f"daemon's start: "
        f"{rate:,.0f} a second{between_commits(history, timings)}."
    )
    console.print(
        "Every row is as expected from the workload."
        if right
        else "[bold red]The tables differ from the result of the workload.[/]"
    )
    where_next(console, root)
    if not right:
        raise SystemExit(1)


def report_document(
    root: Path, catalog: Catalog, workload: Workload, timings: Timings
) -> dict[str, object]:
    """Return the report as a JSON document.

    Its field `right` is whether all rows are as expected from the workload.
    """
    expected = workload.expected()
    tables = {name: catalog.get_table(Identifier(DATABASE, name)) for name in TABLES}
    return {
        "folder": str(root),
        "records": timings.records,
        "produced_seconds": round(timings.produced_seconds, 3),
        "ingested_seconds": round(timings.ingested_seconds, 3),
        "tables": {
            f"{DATABASE}.{name}": {"rows": len(expected[name]), "snapshots": len(snapshots(table))}
            for name, table in tables.items()
        },
        "right": all(rows_by_key(tables[name], KEYS[name]) == expected[name] for name in TABLES),
    }


def rows_by_key(table: FileStoreTable, key: str) -> list[dict[str, Any]]:
    """Return the rows of a table as `ingestd read` prints them, ordered by the integer `key`."""
    rows = [json.loads(line) for line in json_lines(read_table(table), table.schema.fields)]
    return sorted(rows, key=lambda row: int(row[key]))


def snapshots(table: FileStoreTable) -> list[Snapshot]:
    """Return all snapshots of a table, oldest first."""
    return [read_snapshot(table.io, table.paths, n) for n in snapshot_ids(table.io, table.paths)]


def table_of_rows(title: str, columns: Sequence[str], rows: list[dict[str, Any]]) -> Table:
    """Return a printable table with the chosen columns of the first 5 rows."""
    drawn = _drawn(f"{title}: {counted(len(rows), 'row')}")
    for name in columns:
        drawn.add_column(name, overflow="ellipsis", no_wrap=True, max_width=26)
    for row in rows[:SHOWN_ROWS]:
        drawn.add_row(*(_cell(row[name]) for name in columns))
    if len(rows) > SHOWN_ROWS:
        drawn.add_row(*("…" for _ in columns))
    return drawn


def _cell(value: object) -> str:
    """Format a cell of a row; timestamps have no fractions of seconds, null is empty."""
    if isinstance(value, str) and _TIMESTAMP.match(value):
        return value[:19].replace("T", " ")
    return "" if value is None else str(value)


def _drawn(title: str) -> Table:
    return Table(
        title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, min_width=len(title) + 2
    )


def table_of_snapshots(history: list[tuple[str, Snapshot]]) -> Table:
    """Return a printable table of snapshots, given with their table names, in commit order."""
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
    """Return a clause that states the ingest rate after the first batch, by commit times.

    `history` are the snapshots with their table names, in any order. Returns "" for a single batch.
    """
    times = sorted(snapshot.time_millis for _, snapshot in history)
    batches = max(sum(name == table for name, _ in history) for table in TABLES)
    if batches < 2 or times[-1] == times[0]:
        return ""
    rate = timings.records * (1 - 1 / batches) / ((times[-1] - times[0]) / 1000)
    return f", {rate:,.0f} a second after the first of {batches} batches"


def where_next(console: Console, root: Path) -> None:
    """Print example commands for the demo's tables."""
    warehouse = root / "warehouse"
    console.print("\nNext commands:")
    for command in (
        f"ingestd read {warehouse} {DATABASE}.orders",
        f"ingestd read {warehouse} {DATABASE}.orders --snapshot 1 --format table",
        f"ingestd snapshots {warehouse} {DATABASE}.orders",
        f"ingestd verify {warehouse} {DATABASE}.orders",
        f"cat {root / 'ingestd.yaml'}",
    ):
        console.print(f"  {command}", soft_wrap=True, highlight=False)
