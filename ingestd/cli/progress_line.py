"""Show the progress of work on a table in one line of the terminal.

Progress is counted by the table's `FileIO`, so that operations need not report it.
"""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace

import pyarrow as pa
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

from ingestd.cli.interrupts import COMMITTED, UNCHANGED, interruptible
from ingestd.errors import IngestdError
from ingestd.log import printable
from ingestd.paimon.iceberg.iceberg_sync import update_iceberg
from ingestd.paimon.io.entries import DirectoryEntry
from ingestd.paimon.io.file_io import FileIO
from ingestd.paimon.table.metadata.file_store_scan import PartitionFilter, live_files
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import find_snapshot, latest_snapshot

_DATA = "/bucket-"


@dataclass
class FileCounts:
    """Counts of the files that an operation reads, writes and deletes; thread-safe.

    `changed` is called before each counted operation, and before the entries of a directory are
    listed.
    """

    changed: Callable[["FileCounts"], None]
    read: int = 0
    written: int = 0
    deleted: int = 0
    _known: set[str] = field(default_factory=set)
    _read_data_files: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def data_files(self) -> int:
        """The number of distinct data files read, without files that the operation wrote."""
        return self._read_data_files

    def read_file(self, path: str) -> None:
        """Count a file that is opened for reading; `data_files` counts it only the first time."""
        with self._lock:
            self.read += 1
            if _DATA in path and path not in self._known:
                self._known.add(path)
                self._read_data_files += 1
        self.changed(self)

    def wrote_file(self, path: str) -> None:
        """Count a file that is written."""
        with self._lock:
            self.written += 1
            if _DATA in path:
                self._known.add(path)
        self.changed(self)

    def deleted_file(self) -> None:
        """Count a file that is deleted."""
        with self._lock:
            self.deleted += 1
        self.changed(self)

    def looked(self) -> None:
        """Call `changed` before a directory is listed; no count changes."""
        self.changed(self)


@dataclass(frozen=True)
class CountingFileIO:
    """A `FileIO` that counts the reads, writes and deletions of `inner` in `counts`.

    Each method returns the result and raises the errors of the same method of `inner`.
    """

    inner: FileIO
    counts: FileCounts = field(compare=False, repr=False)

    def read_bytes(self, path: str) -> bytes:
        """Return all bytes of a file. Raises FileNotFoundError if it is missing."""
        self.counts.read_file(path)
        return self.inner.read_bytes(path)

    def write_new(self, path: str, data: bytes) -> None:
        """Write a file that must not exist yet. Raises StorageError if it exists."""
        self.counts.wrote_file(path)
        self.inner.write_new(path, data)

    def try_write_atomic(self, path: str, data: bytes) -> bool:
        """Publish a file if the name is free; return False, and change nothing, if it is taken.

        After a StorageError the outcome is unknown: read the file back.
        """
        self.counts.wrote_file(path)
        return self.inner.try_write_atomic(path, data)

    def overwrite(self, path: str, data: bytes) -> None:
        """Replace a file atomically, or create it."""
        self.counts.wrote_file(path)
        self.inner.overwrite(path, data)

    def list_names(self, directory: str) -> list[str]:
        """Return the sorted names of the entries of a directory; [] if it does not exist."""
        return self.inner.list_names(directory)

    def list_entries(self, directory: str) -> list[DirectoryEntry]:
        """Return the entries of a directory with their kinds, by name; [] if it does not exist."""
        self.counts.looked()
        return self.inner.list_entries(directory)

    def exists(self, path: str) -> bool:
        """Return whether a file or directory exists."""
        return self.inner.exists(path)

    def size(self, path: str) -> int:
        """Return the size of a file in bytes. Raises FileNotFoundError if it is missing."""
        return self.inner.size(path)

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents, if they do not exist."""
        self.inner.make_directory(path)

    def delete_quietly(self, path: str) -> None:
        """Delete a file if it exists; log a failure, never raise it."""
        self.counts.deleted_file()
        self.inner.delete_quietly(path)

    def delete_empty_directory(self, path: str) -> bool:
        """Delete an empty directory; return False if it is missing, not empty or a file."""
        return self.inner.delete_empty_directory(path)

    def delete_tree(self, path: str) -> None:
        """Delete a directory with its contents, if it exists."""
        self.inner.delete_tree(path)

    def rename_directory(self, source: str, target: str) -> None:
        """Rename a directory. Raises StorageError if it is missing, or `target` is taken."""
        self.inner.rename_directory(source, target)

    def open_output(self, path: str) -> AbstractContextManager[pa.NativeFile]:
        """Open a stream to a file that must not exist yet; no file remains if the block raises."""
        self.counts.wrote_file(path)
        return self.inner.open_output(path)

    def open_input(self, path: str) -> pa.NativeFile:
        """Open a seekable stream of a file. Raises FileNotFoundError if it is missing."""
        self.counts.read_file(path)
        return self.inner.open_input(path)


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
    """Return a function that counts the live files of a snapshot, in the selected partitions.

    `snapshot_id` None is the newest snapshot, `partition_filter` None selects all partitions.
    """

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
    what: str,
    table: FileStoreTable,
    *,
    left: str = COMMITTED,
    files: Files | None = None,
    dry_run: bool = False,
) -> Iterator[FileStoreTable]:
    """Yield the table to work on, and show a progress line on standard error during the block.

    `what` is the work, as the line and messages name it. The line is shown on a terminal only; with
    `files`, which counts all files to process, it has a bar. An interrupt (Ctrl-C) becomes an
    InterruptedWorkError whose message ends with `left`, on the state of the table, which is
    `UNCHANGED` in a dry run. If the block succeeds, the Iceberg metadata of the table is written,
    unless `left` is `UNCHANGED`.
    """
    left = UNCHANGED if dry_run else left
    with interruptible(what, table.name, left), line_of(what, table, files) as watched:
        yield watched
    if left != UNCHANGED:
        update_iceberg(table, tags=True)


@contextmanager
def line_of(
    what: str, table: FileStoreTable, files: Files | None = None
) -> Iterator[FileStoreTable]:
    """Yield a handle of the table whose file operations are counted in a line on the terminal.

    The line names the work as `what`, and is shown during the block; with `files`, which counts all
    files to process, it has a bar. If standard error is not a terminal, the table itself is
    yielded.
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
    """Show what the command waits for until the block ends, if standard error is a terminal."""
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
