"""A `FileIO` that counts the files it reads, writes and deletes."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import pyarrow as pa

from ingestd.paimon.io.entries import DirectoryEntry
from ingestd.paimon.io.file_io import FileIO

_DATA = "/bucket-"


@dataclass
class FileCounts:
    """Thread-safe counts of file operations; `changed` is called after each operation."""

    changed: Callable[["FileCounts"], None]
    read: int = 0
    written: int = 0
    deleted: int = 0
    _known: set[str] = field(default_factory=set)
    _read_data_files: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def data_files(self) -> int:
        """Return the number of distinct data files read, except for files written before."""
        return self._read_data_files

    def read_file(self, path: str) -> None:
        """Count a file that was opened."""
        with self._lock:
            self.read += 1
            if _DATA in path and path not in self._known:
                self._known.add(path)
                self._read_data_files += 1
        self.changed(self)

    def wrote_file(self, path: str) -> None:
        """Count a file that was created."""
        with self._lock:
            self.written += 1
            if _DATA in path:
                self._known.add(path)
        self.changed(self)

    def deleted_file(self) -> None:
        """Count a file that was deleted."""
        with self._lock:
            self.deleted += 1
        self.changed(self)

    def looked(self) -> None:
        """Report progress to `changed` after a directory was listed; no count changes."""
        self.changed(self)


@dataclass(frozen=True)
class CountingFileIO:
    """A `FileIO` that counts reads, writes and deletions."""

    inner: FileIO
    counts: FileCounts = field(compare=False, repr=False)

    def read_bytes(self, path: str) -> bytes:
        """Return all bytes of a file."""
        self.counts.read_file(path)
        return self.inner.read_bytes(path)

    def write_new(self, path: str, data: bytes) -> None:
        """Write a file that must not exist yet."""
        self.counts.wrote_file(path)
        self.inner.write_new(path, data)

    def try_write_atomic(self, path: str, data: bytes) -> bool:
        """Publish a file if the name is free; return whether it was."""
        self.counts.wrote_file(path)
        return self.inner.try_write_atomic(path, data)

    def overwrite(self, path: str, data: bytes) -> None:
        """Replace a file atomically, or create it."""
        self.counts.wrote_file(path)
        self.inner.overwrite(path, data)

    def list_names(self, directory: str) -> list[str]:
        """Return the sorted names of the entries of a directory."""
        return self.inner.list_names(directory)

    def list_entries(self, directory: str) -> list[DirectoryEntry]:
        """Return the entries of a directory with their kinds."""
        self.counts.looked()
        return self.inner.list_entries(directory)

    def exists(self, path: str) -> bool:
        """Return whether a file or directory exists."""
        return self.inner.exists(path)

    def size(self, path: str) -> int:
        """Return the size of a file in bytes."""
        return self.inner.size(path)

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents."""
        self.inner.make_directory(path)

    def delete_quietly(self, path: str) -> None:
        """Delete a file if it is there; a failure is logged, never raised."""
        self.counts.deleted_file()
        self.inner.delete_quietly(path)

    def delete_empty_directory(self, path: str) -> bool:
        """Delete a directory if it is empty; return whether it was."""
        return self.inner.delete_empty_directory(path)

    def delete_tree(self, path: str) -> None:
        """Delete a directory with its contents."""
        self.inner.delete_tree(path)

    def rename_directory(self, source: str, target: str) -> None:
        """Rename a directory."""
        self.inner.rename_directory(source, target)

    def open_output(self, path: str) -> AbstractContextManager[pa.NativeFile]:
        """Open a stream to a file that must not exist yet."""
        self.counts.wrote_file(path)
        return self.inner.open_output(path)

    def open_input(self, path: str) -> pa.NativeFile:
        """Open a seekable stream of a file."""
        self.counts.read_file(path)
        return self.inner.open_input(path)
