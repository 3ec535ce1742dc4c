"""A file of HDFS as a seekable stream of ranges."""

import io
from typing import TYPE_CHECKING

from ingestd.paimon.io.hdfs_calls import FAILURES, Hdfs, told

if TYPE_CHECKING:
    from hdfs_native._internal import RawFileReader


class HdfsReader(io.RawIOBase):
    """Reads what it is asked for with one request a read, from wherever the blocks lie by then.

    Raises StorageError naming the path.
    """

    def __init__(self, hdfs: Hdfs, place: str, path: str, reader: "RawFileReader") -> None:
        super().__init__()
        self._hdfs = hdfs
        self._place = place
        self._path = path
        self._reader = reader
        self._size = reader.file_length()
        self._at = 0

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
        """Go to a place in the file."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(start + offset, 0)
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        """The next bytes, all that are left if `size` is negative."""
        left = max(self._size - self._at, 0)
        wanted = left if size is None or size < 0 else min(size, left)
        if wanted == 0:
            return b""
        try:
            found = self._read(wanted)
        except FAILURES as error:
            raise told(f"read from {self._at} on", self._path, error) from error
        self._at += wanted
        return found

    def _read(self, wanted: int) -> bytes:
        """The next bytes; asked of the namenode anew where they lie if they are not there."""
        try:
            return self._hdfs.once(lambda _: self._reader.read_range(self._at, wanted))
        except FAILURES:
            return self._hdfs.again(lambda: self._reopened(wanted))

    def _reopened(self, wanted: int) -> bytes:
        self._reader = self._hdfs.once(lambda client: client.read(self._place))
        return self._hdfs.once(lambda _: self._reader.read_range(self._at, wanted))
