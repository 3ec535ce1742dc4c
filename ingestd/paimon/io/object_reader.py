"""A large object as a seekable stream of ranges."""

import io

import obstore
from obstore.exceptions import BaseError
from obstore.store import ObjectStore

from ingestd.errors import StorageError


class ObjectReader(io.RawIOBase):
    """Reads what it is asked for with one request a read; readers of columns ask for much at once.

    Raises StorageError naming the path.
    """

    def __init__(self, store: ObjectStore, key: str, path: str, size: int) -> None:
        super().__init__()
        self._store = store
        self._key = key
        self._path = path
        self._size = size
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
        """Go to a place in the object."""
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
            found = obstore.get_range(self._store, self._key, start=self._at, length=wanted)
        except (BaseError, OSError) as error:
            raise StorageError(f"cannot read {self._path} from {self._at}: {error}") from error
        self._at += wanted
        return found.to_bytes()
