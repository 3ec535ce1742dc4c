"""Ranges of bytes from afar as a seekable stream."""

import io
from abc import abstractmethod


class RangeReader(io.RawIOBase):
    """Reads what it is asked for with one request a read, of something of `size` bytes."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size
        self._at = 0

    @abstractmethod
    def read_range(self, start: int, length: int) -> bytes:
        """These bytes, of which there are as many."""

    def readable(self) -> bool:
        """It is."""
        return True

    def seekable(self) -> bool:
        """It is."""
        return True

    def tell(self) -> int:
        """Bytes before the next one to read."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place in it."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(start + offset, 0)
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        """The next bytes, all that are left if `size` is negative."""
        left = max(self._size - self._at, 0)
        wanted = left if size is None or size < 0 else min(size, left)
        if wanted == 0:
            return b""
        found = self.read_range(self._at, wanted)
        self._at += wanted
        return found
