"""Long work on a table: what it has done so far on a terminal, and a word when it is interrupted.

Progress is counted where files are touched, so no work has to tell of itself.
"""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace

import pyarrow as pa
import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from ingestd.log import printable
from ingestd.paimon.io.entries import DirectoryEntry
from ingestd.paimon.io.file_io import FileIO
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable

_REFRESH_SECONDS = 0.1


@contextmanager
def working(what: str, table: FileStoreTable) -> Iterator[FileStoreTable]:
    """The table to work on, with a line on standard error that lives as long as the block.

    There is no such line if standard error is no terminal. An interrupt (Ctrl-C) is passed on
    after a word of what it means: commits land whole or not at all, so there is nothing to mend.
    """
    try:
        if not sys.stderr.isatty():
            yield table
            return
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        console = Console(stderr=True)
        with Progress(*columns, console=console, transient=True) as progress:
            name = printable(f"{what} {table.name}")
            line = _Line(progress, progress.add_task(Text(name).markup), Text(name).markup)
            yield replace(table, io=CountingFileIO(table.io, line))
    except KeyboardInterrupt:
        typer.echo(
            f"interrupted: {what} {printable(table.name)} has stopped. What was committed stays, "
            "nothing is half-done; files that were being written are orphans. Run it again.",
            err=True,
        )
        raise


@dataclass
class _Line:
    """The line of one piece of work; threads may share it."""

    progress: Progress
    task: TaskID
    name: str
    read: int = 0
    written: int = 0
    deleted: int = 0
    _shown: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, *, read: int = 0, written: int = 0, deleted: int = 0) -> None:
        """So many files more."""
        with self._lock:
            self.read += read
            self.written += written
            self.deleted += deleted
            now = time.monotonic()
            if now - self._shown < _REFRESH_SECONDS:
                return
            self._shown = now
            text = (
                f"{self.name}: {self.read:,} files read, {self.written:,} written, "
                f"{self.deleted:,} deleted"
            )
        self.progress.update(self.task, description=text)


@dataclass(frozen=True)
class CountingFileIO:
    """A `FileIO` that tells a line what it reads, writes and deletes."""

    inner: FileIO
    line: _Line = field(compare=False, repr=False)

    def read_bytes(self, path: str) -> bytes:
        """All bytes of a file."""
        self.line.count(read=1)
        return self.inner.read_bytes(path)

    def write_new(self, path: str, data: bytes) -> None:
        """Write a file that must not exist yet."""
        self.line.count(written=1)
        self.inner.write_new(path, data)

    def try_write_atomic(self, path: str, data: bytes) -> bool:
        """Publish a file if the name is free."""
        self.line.count(written=1)
        return self.inner.try_write_atomic(path, data)

    def overwrite(self, path: str, data: bytes) -> None:
        """Replace a file atomically, or create it."""
        self.line.count(written=1)
        self.inner.overwrite(path, data)

    def list_names(self, directory: str) -> list[str]:
        """Sorted names of what is in a directory."""
        return self.inner.list_names(directory)

    def list_entries(self, directory: str) -> list[DirectoryEntry]:
        """As `list_names`, with what each is."""
        self.line.count()
        return self.inner.list_entries(directory)

    def exists(self, path: str) -> bool:
        """Whether a file or directory is there."""
        return self.inner.exists(path)

    def size(self, path: str) -> int:
        """Bytes of a file."""
        return self.inner.size(path)

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents."""
        self.inner.make_directory(path)

    def delete_quietly(self, path: str) -> None:
        """Delete a file if it is there."""
        self.line.count(deleted=1)
        self.inner.delete_quietly(path)

    def delete_empty_directory(self, path: str) -> bool:
        """Delete a directory that holds nothing."""
        return self.inner.delete_empty_directory(path)

    def delete_tree(self, path: str) -> None:
        """Delete a directory with all it holds."""
        self.inner.delete_tree(path)

    def rename_directory(self, source: str, target: str) -> None:
        """Give a directory another name."""
        self.inner.rename_directory(source, target)

    def open_output(self, path: str) -> AbstractContextManager[pa.NativeFile]:
        """A stream to a file that must not exist yet."""
        self.line.count(written=1)
        return self.inner.open_output(path)

    def open_input(self, path: str) -> pa.NativeFile:
        """A seekable stream of a file."""
        self.line.count(read=1)
        return self.inner.open_input(path)
