"""A file of HDFS as a seekable stream of ranges."""

from typing import TYPE_CHECKING

from ingestd.paimon.io.hdfs_calls import FAILURES, Hdfs, told
from ingestd.paimon.io.range_reader import RangeReader

if TYPE_CHECKING:
    from hdfs_native._internal import RawFileReader


class HdfsReader(RangeReader):
    """Reads what it is asked for with one request a read, from wherever the blocks lie by then.

    Raises StorageError naming the path.
    """

    def __init__(self, hdfs: Hdfs, place: str, path: str, reader: "RawFileReader") -> None:
        super().__init__(reader.file_length())
        self._hdfs = hdfs
        self._place = place
        self._path = path
        self._reader = reader

    def read_range(self, start: int, length: int) -> bytes:
        """These bytes; asked of the namenode again where they lie if they are not there."""
        try:
            return self._once(start, length)
        except FAILURES:
            return self._patiently(start, length)

    def _once(self, start: int, length: int) -> bytes:
        return self._hdfs.once(lambda _: self._reader.read_range(start, length))

    def _patiently(self, start: int, length: int) -> bytes:
        try:
            return self._hdfs.again(lambda: self._reopened(start, length))
        except FAILURES as error:
            raise told(f"read from {start} on", self._path, error) from error

    def _reopened(self, start: int, length: int) -> bytes:
        self._reader = self._hdfs.once(lambda client: client.read(self._place))
        return self._once(start, length)
