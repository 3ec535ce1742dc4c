"""Files in memory with the rules of real stores, for tests and dry runs."""

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from ingestd.errors import StorageError
from ingestd.paimon.io.entries import DirectoryEntry


def _key(path: str) -> str:
    return path.removeprefix("memory:").rstrip("/")


@dataclass(eq=False)
class MemoryFileIO:
    """`FileIO` on a dictionary in memory; threads may share it, and pickling copies its files.

    `files` has the content of each file by path, `directories` the paths that `make_directory`
    created.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    directories: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()

    def __getstate__(self) -> tuple[dict[str, bytes], set[str]]:
        with self._lock:
            return dict(self.files), set(self.directories)

    def __setstate__(self, state: tuple[dict[str, bytes], set[str]]) -> None:
        self.files, self.directories = state
        self._lock = threading.Lock()

    def read_bytes(self, path: str) -> bytes:
        """Return the bytes of a file. Raises FileNotFoundError if it is missing."""
        with self._lock:
            try:
                return self.files[_key(path)]
            except KeyError:
                raise FileNotFoundError(path) from None

    def write_new(self, path: str, data: bytes) -> None:
        """Write a file that must not exist yet. Raises StorageError if it exists."""
        if not self.try_write_atomic(path, data):
            raise StorageError(f"cannot write {path}: File exists")

    def try_write_atomic(self, path: str, data: bytes) -> bool:
        """Publish a file if the name is free; return False, and change nothing, if it is taken."""
        with self._lock:
            if _key(path) in self.files:
                return False
            self.files[_key(path)] = bytes(data)
            return True

    def overwrite(self, path: str, data: bytes) -> None:
        """Replace a file, or create it."""
        with self._lock:
            self.files[_key(path)] = bytes(data)

    def list_names(self, directory: str) -> list[str]:
        """Return the sorted names in a directory; [] if it does not exist."""
        prefix = _key(directory) + "/"
        with self._lock:
            paths = [*self.files, *self.directories]
        return sorted({p[len(prefix) :].split("/")[0] for p in paths if p.startswith(prefix)})

    def list_entries(self, directory: str) -> list[DirectoryEntry]:
        """Return the entries of a directory, sorted by name; [] if it does not exist.

        Their modification time is 0.
        """
        entries = []
        for name in self.list_names(directory):
            with self._lock:
                data = self.files.get(f"{_key(directory)}/{name}")
            entries.append(DirectoryEntry(name, data is None, len(data or b""), 0))
        return entries

    def exists(self, path: str) -> bool:
        """Return whether a file or directory exists at this path."""
        key = _key(path)
        with self._lock:
            if key in self.files or key in self.directories:
                return True
            return any(p.startswith(key + "/") for p in (*self.files, *self.directories))

    def size(self, path: str) -> int:
        """Return the size of a file in bytes. Raises FileNotFoundError if it is missing."""
        return len(self.read_bytes(path))

    def make_directory(self, path: str) -> None:
        """Create a directory, if it does not exist."""
        with self._lock:
            self.directories.add(_key(path))

    def delete_quietly(self, path: str) -> None:
        """Delete a file if it exists."""
        with self._lock:
            self.files.pop(_key(path), None)

    def delete_empty_directory(self, path: str) -> bool:
        """Delete an empty directory; return False if it is not empty or was not created.

        Only a directory created by `make_directory` can be empty.
        """
        with self._lock:
            known = _key(path) in self.directories
            inside = any(p.startswith(_key(path) + "/") for p in (*self.files, *self.directories))
            if known and not inside:
                self.directories.discard(_key(path))
            return known and not inside

    def delete_tree(self, path: str) -> None:
        """Delete a directory with its content, if it exists."""
        key = _key(path)
        with self._lock:
            for name in [p for p in self.files if p == key or p.startswith(key + "/")]:
                del self.files[name]
            kept = {d for d in self.directories if d != key and not d.startswith(key + "/")}
            self.directories.clear()
            self.directories.update(kept)

    def rename_directory(self, source: str, target: str) -> None:
        """Rename a directory.

        Raises StorageError if the new name is taken or the directory does not exist.
        """
        old, new = _key(source), _key(target)
        if self.exists(target) or not self.exists(source):
            raise StorageError(f"cannot rename {source} to {target}: taken, or nothing there")
        with self._lock:
            for path in [p for p in self.files if p.startswith(old + "/")]:
                self.files[new + path[len(old) :]] = self.files.pop(path)
            below = {d for d in self.directories if d == old or d.startswith(old + "/")}
            self.directories.difference_update(below)
            self.directories.update(new + d[len(old) :] for d in below)

    @contextlib.contextmanager
    def open_output(self, path: str) -> Iterator[pa.NativeFile]:
        """Yield a stream to a file that must not exist yet; no file remains if the block raises.

        Raises StorageError if the file exists.
        """
        with pa.BufferOutputStream() as stream:
            yield stream
            if not stream.closed:
                stream.flush()
            data = stream.getvalue()
        self.write_new(path, data.to_pybytes())

    def open_input(self, path: str) -> pa.NativeFile:
        """Open a seekable stream of a file. Raises FileNotFoundError if it is missing."""
        return pa.BufferReader(self.read_bytes(path))
