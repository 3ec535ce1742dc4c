"""A FileIO around another one that reports every call, so that tests count, order or fail them."""

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager

import pyarrow as pa

from ingestd.paimon.io.file_io import DirectoryEntry, FileIO


class WatchedFileIO(ABC):
    """Does every call of `inner` within the block that `_call` gives for it."""

    inner: FileIO

    @abstractmethod
    def _call(self, operation: str, path: str) -> AbstractContextManager[None]:
        """What happens around a call; the path of a renamed directory is the old one."""

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
