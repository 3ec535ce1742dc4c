"""`ingestd demo`: run a broker, a workload and the daemon on this machine, and show the result."""

import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
import yaml
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

from ingestd.cli.demo_report import ROOMY, Timings, print_report, report_document
from ingestd.cli.interrupts import interruptible
from ingestd.cli.output import AsJson, print_json
from ingestd.dev.broker import DevBroker
from ingestd.dev.child import Child
from ingestd.dev.produce import produce
from ingestd.dev.workload import TABLES, Workload
from ingestd.errors import ConfigError, IngestdError
from ingestd.ingest.tables.managed_table import open_table
from ingestd.ingest.tables.positions import Vector, furthest
from ingestd.paimon.catalog.base import Catalog, Identifier, load_catalog

DATABASE = "shop"
PIPELINE = "demo"
MARK = ".ingestd-demo"
POLL_SECONDS = 0.2
_LEFT = "Its broker and its daemon have ended; the folder is emptied by the next demo there."


def demo(
    folder: Annotated[
        Path, typer.Option(help="Where warehouse, configuration and logs are put.")
    ] = Path("demo"),
    events: Annotated[int, typer.Option(min=100, help="Change events to produce.")] = 20_000,
    as_json: AsJson = False,
) -> None:
    """Show it all: a Kafka broker, a workload, the daemon and the tables, on this machine.

    The folder stays for a look around; the broker ends with the command.

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
    """Run the broker, produce the changes, and run the daemon until it has ingested them."""
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
    """Return an empty folder of the demo. Raises ConfigError for a folder with other contents."""
    root = folder.resolve()
    if root.exists() and any(root.iterdir()) and not (root / MARK).exists():
        raise ConfigError(f"{root} holds other things than a demo; name another --folder")
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    (root / MARK).touch()
    return root


@contextmanager
def live(console: Console) -> Iterator[Progress]:
    """Show progress lines while the demo runs."""
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
    """Produce the workload and return the number of records."""
    task = progress.add_task("producing changes", total=workload.events)
    count = produce(workload, bootstrap, lambda sent: progress.update(task, completed=sent))
    progress.update(task, total=count, completed=count)
    return count


def write_config(root: Path, workload: Workload, bootstrap: str) -> Path:
    """Write the configuration of the demo's pipeline."""
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
    """Run the daemon until it has caught up. Raises IngestdError with the end of its log."""
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
    """Move the bar to the number of records in the tables."""
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
            found = open_table(str(identifier), catalog.get_table(identifier), (PIPELINE,))
            covered = furthest(covered, found.covered)
    return sum(
        partition.offset for partitions in covered.values() for partition in partitions.values()
    )
