"""Storage that ends before one of its changes, as if the process had died there."""

from typing import Any

from ingestd.errors import StorageError

_CHANGES = frozenset({"overwrite", "try_write_atomic", "write_new", "delete_quietly"})


class StoppingIO:
    """A FileIO that makes this many changes; every later one raises StorageError."""

    def __init__(self, io: Any, changes: int) -> None:
        self._io = io
        self._left = changes

    def __getattr__(self, name: str) -> Any:
        if name in _CHANGES:
            self._left -= 1
            if self._left < 0:
                raise StorageError("stopped")
        return getattr(self._io, name)
