"""A namenode in memory that answers as the library's client does, and misbehaves when told to."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

Trouble = Exception | None


class UnknownFeatureError(RuntimeError):
    """What the library raises for what it does not know."""


@dataclass
class FakeHdfs:
    """Names and their bytes; None for a directory.

    Each entry of `before` is raised by the next request of that name instead of doing it, each of
    `after` when it is done, as if its answer were lost.
    """

    files: dict[str, bytes | None] = field(default_factory=lambda: {"/": None})
    before: dict[str, list[Trouble]] = field(default_factory=dict)
    after: dict[str, list[Trouble]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def create(self, path: str, options: Any) -> "_Writer":
        """Begin a file."""
        self._begin("create")
        if path in self.files and not options.overwrite:
            raise FileExistsError(path)
        self.files[path] = b""
        self._parents(path)
        self._end("create")
        return _Writer(self, path)

    def read(self, path: str) -> Any:
        """Open a file."""
        self._begin("read")
        data = self._there(path)
        if data is None:
            raise FileNotFoundError(f"Path is not a file: {path}")

        def ranged(at: int, length: int) -> bytes:
            self._begin("range")
            return data[at : at + length]

        return SimpleNamespace(file_length=lambda: len(data), read_range=ranged)

    def rename(self, old: str, new: str, overwrite: bool) -> None:
        """Give a file or directory another name."""
        self._begin("rename")
        self._there(old)
        if new in self.files and not overwrite:
            raise FileExistsError(f"rename destination {new} already exists\n\tat org.Some(X)")
        for path in [path for path in self.files if f"{path}/".startswith(f"{old}/")]:
            self.files[new + path[len(old) :]] = self.files.pop(path)
        self._end("rename")

    def delete(self, path: str, recursive: bool) -> bool:
        """Delete a file or directory."""
        self._begin("delete")
        below = [file for file in self.files if file.startswith(f"{path}/")]
        if below and not recursive:
            raise RuntimeError('RPCError("org.x.PathIsNotEmptyDirectoryException", "not empty")')
        found = self.files.pop(path, ...)
        for one in below:
            del self.files[one]
        self._end("delete")
        return found is not ...

    def mkdirs(self, path: str, _mode: int, _parents: bool) -> None:
        """Make a directory."""
        self._begin("mkdirs")
        self.files.setdefault(path, None)
        self._parents(path)

    def get_file_info(self, path: str) -> Any:
        """What is there."""
        self._begin("info")
        return self._status(path, self._there(path))

    def list_status(self, path: str, _recursive: bool) -> Iterator[Any]:
        """What is in a directory, or the file itself."""
        self._begin("list")
        data = self._there(path)
        if data is not None:
            return iter([self._status(path, data)])
        inside = path.rstrip("/") + "/"
        names = [file for file in self.files if file.startswith(inside) and file != "/"]
        return (
            self._status(name, self.files[name]) for name in names if "/" not in name[len(inside) :]
        )

    def _there(self, path: str) -> bytes | None:
        if path not in self.files:
            raise FileNotFoundError(path)
        return self.files[path]

    def _status(self, path: str, data: bytes | None) -> Any:
        return SimpleNamespace(
            path=path,
            isdir=data is None,
            length=len(data or b""),
            modification_time=time.time_ns() // 1_000_000,
        )

    def _parents(self, path: str) -> None:
        while path != "/":
            path = path.rpartition("/")[0] or "/"
            self.files.setdefault(path, None)

    def _begin(self, name: str) -> None:
        self.asked.append(name)
        _raise_next(self.before, name)

    def _end(self, name: str) -> None:
        _raise_next(self.after, name)


@dataclass
class _Writer:
    hdfs: FakeHdfs
    path: str

    def write(self, data: bytes) -> int:
        self.hdfs._begin("write")
        self.hdfs.files[self.path] = (self.hdfs.files[self.path] or b"") + data
        return len(data)

    def hsync(self) -> None:
        self.hdfs._begin("hsync")

    def close(self) -> None:
        self.hdfs._begin("close")


def _raise_next(troubles: dict[str, list[Trouble]], name: str) -> None:
    if troubles.get(name) and (trouble := troubles[name].pop(0)):
        raise trouble
