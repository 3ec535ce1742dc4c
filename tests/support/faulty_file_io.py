"""A FileIO that keeps a diary and fails where a test tells it to."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa

from ingestd.errors import StorageError
from ingestd.paimon.io.file_io import DirectoryEntry, FileIO

When = Literal["before", "after"]


@dataclass
class Fault:
    """Fails the calls `first` to `first + times - 1` of one operation on matching paths.

    `before`: nothing happened; `after`: it happened and the answer got lost.
    `action` runs in place of the failure, to let a rival act at that very point.
    """

    operation: str
    path_part: str = ""
    when: When = "before"
    first: int = 1
    times: int = 1
    action: Callable[[], None] | None = None
    seen: int = 0

    def matches(self, operation: str, path: str) -> bool:
        """Counts a call and tells whether it is one to fail."""
        if operation != self.operation or self.path_part not in path:
            return False
        self.seen += 1
        return self.first <= self.seen < self.first + self.times

    def strike(self, path: str) -> None:
        """Run the action, or fail."""
        if self.action is not None:
            self.action()
        else:
            raise StorageError(f"injected: {self.operation} {path} ({self.when})")


@dataclass
class FaultyFileIO:
    """Wraps a FileIO; `calls` lists (operation, path) in order."""

    inner: FileIO
    faults: list[Fault] = field(default_factory=list)
    calls: list[tuple[str, str]] = field(default_factory=list)

    def operations(self, operation: str, path_part: str = "") -> list[str]:
        """Paths of the recorded calls of one operation."""
        return [path for name, path in self.calls if name == operation and path_part in path]

    def read_bytes(self, path: str) -> bytes:
        with self._call("read_bytes", path):
            return self.inner.read_bytes(path)

    def write_new(self, path: str, data: bytes) -> None:
        with self._call("write_new", path):
            self.inner.write_new(path, data)

    def try_write_atomic(self, path: str, data: bytes) -> bool:
        with self._call("try_write_atomic", path):
            return self.inner.try_write_atomic(path, data)

    def overwrite(self, path: str, data: bytes) -> None:
        with self._call("overwrite", path):
            self.inner.overwrite(path, data)

    def list_names(self, directory: str) -> list[str]:
        with self._call("list_names", directory):
            return self.inner.list_names(directory)

    def list_entries(self, directory: str) -> list[DirectoryEntry]:
        with self._call("list_entries", directory):
            return self.inner.list_entries(directory)

    def exists(self, path: str) -> bool:
        with self._call("exists", path):
            return self.inner.exists(path)

    def size(self, path: str) -> int:
        with self._call("size", path):
            return self.inner.size(path)

    def make_directory(self, path: str) -> None:
        with self._call("make_directory", path):
            self.inner.make_directory(path)

    def delete_quietly(self, path: str) -> None:
        with self._call("delete_quietly", path):
            self.inner.delete_quietly(path)

    def delete_empty_directory(self, path: str) -> bool:
        with self._call("delete_empty_directory", path):
            return self.inner.delete_empty_directory(path)

    def delete_tree(self, path: str) -> None:
        with self._call("delete_tree", path):
            self.inner.delete_tree(path)

    def rename_directory(self, source: str, target: str) -> None:
        with self._call("rename_directory", source):
            self.inner.rename_directory(source, target)

    @contextlib.contextmanager
    def open_output(self, path: str) -> Iterator[pa.NativeFile]:
        with self._call("open_output", path), self.inner.open_output(path) as stream:
            yield stream

    def open_input(self, path: str) -> pa.NativeFile:
        with self._call("open_input", path):
            return self.inner.open_input(path)

    @contextlib.contextmanager
    def _call(self, operation: str, path: str) -> Iterator[None]:
        self.calls.append((operation, path))
        due = [fault for fault in self.faults if fault.matches(operation, path)]
        for fault in due:
            if fault.when == "before":
                fault.strike(path)
        yield
        for fault in due:
            if fault.when == "after":
                fault.strike(path)
