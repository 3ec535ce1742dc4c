"""Shows the progress of work on a table in one line of the terminal.

Progress is counted by the table's `FileIO`, so that operations need not report it.
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

from ingestd.cli.counted_files import CountingFileIO, FileCounts
from ingestd.cli.interrupts import COMMITTED, UNCHANGED, interruptible
from ingestd.errors import IngestdError
from ingestd.log import printable
from ingestd.paimon.iceberg.iceberg_sync import update_iceberg
from ingestd.paimon.table.metadata.file_store_scan import PartitionFilter, live_files
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import find_snapshot, latest_snapshot

_REFRESH_SECONDS = 0.1
_BAR = (
    BarColumn(bar_width=20, style="dim", complete_style="cyan", finished_style="cyan"),
    TextColumn("{task.completed:,.0f}/{task.total:,.0f} files"),
)

Files = Callable[[FileStoreTable], int]
"""Returns the maximum number of data files that the work on a table will read."""


def live_count(
    snapshot_id: int | None = None, partition_filter: PartitionFilter | None = None
) -> Files:
    """Return a function that counts the live files of a snapshot (None: the newest)."""

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
    """Yield the table to work on, and show a progress line on standard error during the block.

    The line is shown on a terminal only; with `files` it has a bar. An interrupt (Ctrl-C) becomes
    an InterruptedWorkError with the message `left` on the state of the table. After the block the
    Iceberg metadata of the table is written, unless `left` is `UNCHANGED`.
    """
    with interruptible(what, table.name, left), line_of(what, table, files) as watched:
        yield watched
    if left != UNCHANGED:
        update_iceberg(table, tags=True)


@contextmanager
def line_of(
    what: str, table: FileStoreTable, files: Files | None = None
) -> Iterator[FileStoreTable]:
    """Yield the table, and count its file operations in a line on the terminal during the block.

    With `files` the line has a bar. Without a terminal nothing is counted.
    """
    if not sys.stderr.isatty():
        yield table
        return
    name = Text(printable(f"{what} {table.name}")).markup
    total = _counted(files, table)
    bar: tuple[ProgressColumn, ...] = () if total is None else _BAR
    columns = (SpinnerColumn(), TextColumn("{task.description}"), *bar, TimeElapsedColumn())
    # The command's own output must not be redirected with the line: its rows may be for a pipe.
    with Progress(
        *columns,
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    ) as progress:
        line = _Line(progress, progress.add_task(name, total=total), name, total)
        yield replace(table, io=CountingFileIO(table.io, FileCounts(line)))


def _counted(files: Files | None, table: FileStoreTable) -> int | None:
    try:
        return None if files is None else files(table)
    except IngestdError:
        return None  # the work itself reports what is wrong with the table


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show a line on the terminal that says what the command waits for, until the block ends."""
    if not sys.stderr.isatty():
        yield
        return
    with Console(stderr=True).status(Text(printable(what))):
        yield


class _Line:
    """A line of a progress display with counts of file operations, updated at a limited rate."""

    def __init__(self, progress: Progress, task: TaskID, name: str, total: int | None) -> None:
        self._progress = progress
        self._task = task
        self._name = name
        self._total = total
        self._shown = 0.0
        self._lock = threading.Lock()

    def __call__(self, counts: FileCounts) -> None:
        with self._lock:
            now = time.monotonic()
            if now - self._shown < _REFRESH_SECONDS:
                return
            self._shown = now
        shown_counts = {"written": counts.written, "deleted": counts.deleted}
        done = counts.data_files
        if self._total is None:
            shown_counts = {"read": counts.read, **shown_counts}
        else:
            done = min(done, self._total)
        text = ", ".join(f"{count:,} {verb}" for verb, count in shown_counts.items() if count)
        text = f"{self._name}: {text}" if text else self._name
        self._progress.update(self._task, description=text, completed=done)
