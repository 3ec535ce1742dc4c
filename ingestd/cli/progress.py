"""Long work on a table: how far it is, in one line on a terminal.

Progress is counted where files are touched, so no work has to tell of itself.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from ingestd.cli.counted_files import CountingFileIO, Counts
from ingestd.cli.interrupts import COMMITTED, interruptible
from ingestd.errors import IngestdError
from ingestd.log import printable
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.scan import PartitionFilter, live_files
from ingestd.paimon.table.metadata.snapshot_manager import find_snapshot, latest_snapshot

_REFRESH_SECONDS = 0.1
_BAR = (
    BarColumn(bar_width=20, style="dim", complete_style="cyan", finished_style="cyan"),
    TextColumn("{task.completed:,.0f}/{task.total:,.0f} files"),
)

Files = Callable[[FileStoreTable], int]
"""How many data files the work will read, at the most."""


def live_count(
    snapshot_id: int | None = None, partition_filter: PartitionFilter | None = None
) -> Files:
    """The live files of a snapshot (None: the newest), in some partitions."""

    def count(table: FileStoreTable) -> int:
        snapshot = (
            latest_snapshot(table.io, table.paths)
            if snapshot_id is None
            else find_snapshot(table.io, table.paths, snapshot_id)
        )
        return len(live_files(table, snapshot, partition_filter=partition_filter))

    return count


@contextmanager
def working(
    what: str, table: FileStoreTable, *, left: str = COMMITTED, files: Files | None = None
) -> Iterator[FileStoreTable]:
    """The table to work on, with a line on standard error that lives as long as the block.

    There is no such line if standard error is no terminal. With `files` it has a bar. An interrupt
    (Ctrl-C) becomes an InterruptedWorkError that says `left`: what is there of the work.
    """
    with interruptible(what, table.name, left), line_of(what, table, files) as watched:
        yield watched


@contextmanager
def line_of(
    what: str, table: FileStoreTable, files: Files | None = None
) -> Iterator[FileStoreTable]:
    """The table, whose files are counted in a line on a terminal until the block ends."""
    if not sys.stderr.isatty():
        yield table
        return
    name = Text(printable(f"{what} {table.name}")).markup
    total = _counted(files, table)
    bar: tuple[ProgressColumn, ...] = () if total is None else _BAR
    columns = (SpinnerColumn(), TextColumn("{task.description}"), *bar, TimeElapsedColumn())
    # What the command prints itself must not go the way of the line: rows may be for a pipe.
    with Progress(
        *columns,
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    ) as progress:
        line = _Line(progress, progress.add_task(name, total=total), name, total)
        yield replace(table, io=CountingFileIO(table.io, Counts(line)))


def _counted(files: Files | None, table: FileStoreTable) -> int | None:
    try:
        return None if files is None else files(table)
    except IngestdError:
        return None  # what is wrong with the table is for the work itself to tell


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """A line on a terminal that says for what the command waits, until the block ends."""
    if not sys.stderr.isatty():
        yield
        return
    with Console(stderr=True).status(Text(printable(what))):
        yield


class _Line:
    """Shows counts in one task of a progress display, not more often than eyes can follow."""

    def __init__(self, progress: Progress, task: TaskID, name: str, total: int | None) -> None:
        self._progress = progress
        self._task = task
        self._name = name
        self._total = total
        self._shown = 0.0
        self._lock = threading.Lock()

    def __call__(self, counts: Counts) -> None:
        with self._lock:
            now = time.monotonic()
            if now - self._shown < _REFRESH_SECONDS:
                return
            self._shown = now
        told = {"written": counts.written, "deleted": counts.deleted}
        done = counts.data_files
        if self._total is None:
            told = {"read": counts.read, **told}
        else:
            done = min(done, self._total)
        text = ", ".join(f"{count:,} {verb}" for verb, count in told.items() if count)
        text = f"{self._name}: {text}" if text else self._name
        self._progress.update(self._task, description=text, completed=done)
