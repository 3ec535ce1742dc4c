"""A large object as a seekable stream of ranges."""

import obstore
from obstore.exceptions import BaseError
from obstore.store import ObjectStore

from ingestd.errors import StorageError
from ingestd.paimon.io.range_reader import RangeReader


class ObjectReader(RangeReader):
    """Reads what it is asked for with one request a read; readers of columns ask for much at once.

    Raises StorageError naming the path.
    """

    def __init__(self, store: ObjectStore, key: str, path: str, size: int) -> None:
        super().__init__(size)
        self._store = store
        self._key = key
        self._path = path

    def read_range(self, start: int, length: int) -> bytes:
        """These bytes of the object."""
        try:
            found = obstore.get_range(self._store, self._key, start=start, length=length)
        except (BaseError, OSError) as error:
            raise StorageError(f"cannot read {self._path} from {start}: {error}") from error
        return found.to_bytes()
