"""Collect what a library writes to a file, to pass it on or to change it first."""

from typing import Any

import pyarrow as pa


class KeptBytes:
    """Buffer of the bytes that a writer of pyarrow has written.

    Its methods must not raise: the library ends the process if an exception is raised while a
    writer is destroyed.
    """

    closed = False

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._written = 0

    def opened(self) -> pa.NativeFile:
        """Return a pyarrow file whose bytes are written to this buffer."""
        open_stream: Any = pa.PythonFile
        stream: pa.NativeFile = open_stream(self, mode="w")
        return stream

    def taken(self) -> bytes:
        """Return the bytes written since the last call, and forget them."""
        data = b"".join(self._parts)
        self._parts.clear()
        return data

    def write(self, data: bytes) -> int:
        """Append a copy of the bytes, and return their number."""
        self._parts.append(bytes(data))
        self._written += len(data)
        return len(data)

    def tell(self) -> int:
        """Return the number of all bytes written."""
        return self._written

    def flush(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""

    def writable(self) -> bool:
        """Return True."""
        return True
