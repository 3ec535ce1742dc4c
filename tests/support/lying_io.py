"""A FileIO that violates its contract once, at a chosen call.

`fail`: nothing happens, and an error says so. `lose`: it happens, and an error says that it
failed. `late`: as `fail`, but what was to be written appears some calls later. `tear`: half of it
is written, where a store may do that, and an error says that it failed. `stale`: a listing
tells how things were some changes ago.
"""

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa

from ingestd.errors import StorageError
from ingestd.paimon.io.file_io import DirectoryEntry, FileIO

Lie = Literal["fail", "lose", "late", "tear", "stale"]
LIES: tuple[Lie, ...] = ("fail", "lose", "late", "tear", "stale")
_DELAY = 5
_BEHIND = 3


@dataclass
class LyingFileIO:
    """Wraps a FileIO; `lies` by number of the call, `broken` the paths that were hit, `past` what
    listings told, oldest first.

    From call number `full` on every change fails with the words `refusal`.
    """

    inner: FileIO
    lies: Mapping[int, Lie] = field(default_factory=dict)
    full: int | None = None
    rejection_reason: str = "No space left on device"
    broken: list[str] = field(default_factory=list)
    calls: int = 0
    past: dict[str, list[list[str]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._lock = threading.RLock()
        self._late: list[tuple[int, Callable[[], object]]] = []

    def read_bytes(self, path: str) -> bytes:
        with self._call(path) as lie:
            self._fail(lie, path)
            return self.inner.read_bytes(path)

    def write_new(self, path: str, data: bytes) -> None:
        with self._call(path, changes=True) as lie:
            if lie == "tear":
                self.inner.write_new(path, data[: len(data) // 2])
            elif lie == "late":
                self._later(lambda: self.inner.write_new(path, data))
            elif lie == "lose":
                self.inner.write_new(path, data)
            self._fail(lie, path)
            self.inner.write_new(path, data)

    def try_write_atomic(self, path: str, data: bytes) -> bool:
        with self._call(path, changes=True) as lie:
            self._half_beside(lie, path, data)
            if lie == "late":
                self._later(lambda: self.inner.try_write_atomic(path, data))
            elif lie == "lose":
                self.inner.try_write_atomic(path, data)
            self._fail(lie, path)
            return self.inner.try_write_atomic(path, data)

    def overwrite(self, path: str, data: bytes) -> None:
        with self._call(path, changes=True) as lie:
            self._half_beside(lie, path, data)
            if lie == "lose":
                self.inner.overwrite(path, data)
            self._fail(lie, path)
            self.inner.overwrite(path, data)

    def list_names(self, directory: str) -> list[str]:
        with self._call(directory) as lie:
            self._fail(lie, directory)
            return self._listed(lie, directory)

    def list_entries(self, directory: str) -> list[DirectoryEntry]:
        with self._call(directory) as lie:
            self._fail(lie, directory)
            names = set(self._listed(lie, directory))
            return [entry for entry in self.inner.list_entries(directory) if entry.name in names]

    def exists(self, path: str) -> bool:
        with self._call(path) as lie:
            self._fail(lie, path)
            return self.inner.exists(path)

    def size(self, path: str) -> int:
        with self._call(path) as lie:
            self._fail(lie, path)
            return self.inner.size(path)

    def make_directory(self, path: str) -> None:
        with self._call(path, changes=True) as lie:
            self._fail(lie, path)
            self.inner.make_directory(path)

    def delete_quietly(self, path: str) -> None:
        with contextlib.suppress(StorageError), self._call(path, changes=True) as lie:
            if lie == "lose":
                self.inner.delete_quietly(path)
            self._fail(lie, path)
            self.inner.delete_quietly(path)

    def delete_empty_directory(self, path: str) -> bool:
        with self._lock:
            return not self._is_full() and self.inner.delete_empty_directory(path)

    def delete_tree(self, path: str) -> None:
        with self._call(path, changes=True) as lie:
            self._fail(lie, path)
            self.inner.delete_tree(path)

    def rename_directory(self, source: str, target: str) -> None:
        with self._call(source, changes=True) as lie:
            self._fail(lie, source)
            self.inner.rename_directory(source, target)

    @contextlib.contextmanager
    def open_output(self, path: str) -> Iterator[pa.NativeFile]:
        with pa.BufferOutputStream() as stream:
            yield stream
            data = stream.getvalue().to_pybytes()
        self.write_new(path, data)

    def open_input(self, path: str) -> pa.NativeFile:
        with self._call(path) as lie:
            self._fail(lie, path)
            return self.inner.open_input(path)

    @contextlib.contextmanager
    def _call(self, path: str, *, changes: bool = False) -> Iterator[Lie | None]:
        with self._lock:
            self.calls += 1
            due = [one for number, one in self._late if number <= self.calls]
            self._late = [(number, one) for number, one in self._late if number > self.calls]
            for write in due:
                with contextlib.suppress(StorageError):
                    write()
            if changes and self._is_full():
                self.broken.append(path)
                raise StorageError(f"cannot write {path}: {self.rejection_reason}")
            lie = self.lies.get(self.calls)
            if lie is not None:
                self.broken.append(path)
            yield lie

    def _is_full(self) -> bool:
        return self.full is not None and self.calls >= self.full

    def _fail(self, lie: Lie | None, path: str) -> None:
        if lie is not None and lie != "stale":
            raise StorageError(f"cannot reach {path}: injected ({lie})")

    def _half_beside(self, lie: Lie | None, path: str, data: bytes) -> None:
        """What is atomic is not torn; half of it may lie beside."""
        if lie == "tear":
            folder, _, name = path.rpartition("/")
            self.inner.write_new(f"{folder}/.{name}.{self.calls}.tmp", data[: len(data) // 2])

    def _later(self, write: Callable[[], object]) -> None:
        self._late.append((self.calls + _DELAY, write))

    def _listed(self, lie: Lie | None, directory: str) -> list[str]:
        past = self.past.setdefault(directory, [[]])
        now = self.inner.list_names(directory)
        if past[-1] != now:
            past.append(now)
        return past[-min(len(past), _BEHIND)] if lie == "stale" else now


def plan_of(gaps: list[tuple[int, Lie]]) -> dict[int, Lie]:
    """Lies by number of the call, given how many true calls come before each."""
    places = itertools.accumulate(gap + 1 for gap, _ in gaps)
    return dict(zip(places, (lie for _, lie in gaps), strict=True))
