"""Files to objects: small ones by one conditional put, large ones in parts that go side by side.

A name is new and no other process's (data files are named by chance), so an object that is found
under it after an error, and is what was to be written, was written by a request whose answer got
lost.
"""

from pathlib import Path

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError
from obstore.store import ObjectStore

from ingestd.errors import StorageError

PART_BYTES = 8 << 20
_WHOLE_BYTES = 16 << 20
"""Files up to this size are one request, which holds them in memory."""
_PARTS_AT_ONCE = 4
_MISSING = (FileNotFoundError, NotFoundError)


def upload_new(store: ObjectStore, key: str, file: Path, path: str) -> None:
    """Upload a file to a key that must be free; `path` is the object's name in errors.

    StorageError if the key is taken; errors of the store's library pass. Holds some 32 MB at the
    most. Parts of an upload that died stay with the store, unseen, until it clears them away.
    """
    size = file.stat().st_size
    try:
        if size <= _WHOLE_BYTES:
            obstore.put(store, key, file, mode="create", use_multipart=False)
            return
        # A store takes no condition with parts; that the name is free is looked at before.
        if _size_of(store, key) is not None:
            raise StorageError(f"cannot write {path}: the object already exists")
        obstore.put(store, key, file, chunk_size=PART_BYTES, max_concurrency=_PARTS_AT_ONCE)
    except AlreadyExistsError as error:
        if _size_of(store, key) is None:
            raise  # refused, and yet nothing is there: another try may do
        if not _holds(store, key, file):
            raise StorageError(f"cannot write {path}: the object already exists") from error
    except BaseError:
        if size <= _WHOLE_BYTES or not _holds(store, key, file):
            raise


def _size_of(store: ObjectStore, key: str) -> int | None:
    try:
        return int(obstore.head(store, key)["size"])
    except _MISSING:
        return None


def _holds(store: ObjectStore, key: str, file: Path) -> bool:
    """Whether an object is what a file is, byte by byte, a part at a time."""
    size = file.stat().st_size
    if _size_of(store, key) != size:
        return False
    with file.open("rb") as local:
        for start in range(0, size, PART_BYTES):
            mine = local.read(PART_BYTES)
            if obstore.get_range(store, key, start=start, length=len(mine)).to_bytes() != mine:
                return False
    return True
