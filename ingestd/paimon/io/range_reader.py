"""Seekable streams over remote bytes that are read by ranges."""

import io
from abc import abstractmethod


class RangeReader(io.RawIOBase):
    """Seekable stream of `size` remote bytes; each read is one request."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size
        self._at = 0

    @abstractmethod
    def read_range(self, start: int, length: int) -> bytes:
        """Return exactly `length` bytes from `start` on."""

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position of the next byte."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Set the position of the next byte, as in `io.IOBase.seek`, and return it.

        `offset` is relative to the start, the position or the end, by `whence`; a negative position
        becomes 0.
        """
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(start + offset, 0)
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        """Return at most the next `size` bytes; all that remain if `size` is negative or None."""
        left = max(self._size - self._at, 0)
        wanted = left if size is None or size < 0 else min(size, left)
        if wanted == 0:
            return b""
        data = self.read_range(self._at, wanted)
        self._at += wanted
        return data
