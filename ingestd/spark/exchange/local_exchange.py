"""Hand blobs from stage 1 to stage 2 through local files, so that the JVM moves only file names.

Bytes that pass through the JVM are copied about six times and compressed on the way. Where both
stages run on this machine, a task of stage 1 appends its blobs to one file per slot in a folder of
the batch, and stage 2 maps the file. A file belongs to one attempt of a task: files of a failed
attempt are referenced by no blob.

Allocating new pages costs more than filling them, so a task overwrites a file of an earlier batch
if one is free. A file is free if it is not locked: a writer holds an exclusive lock, and a reader a
shared lock for as long as any part of its mapping is in use.
"""

import fcntl
import json
import mmap
import os
import uuid
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from ingestd.errors import StorageError, storage_error
from ingestd.ingest.rows.blobs import Blob, Encoded, UnsentRows, as_bytes

SUFFIX = ".blobs"
RECYCLED = "recycled"
"""The folder below a batch's folder that holds files of earlier batches."""
_MARK = b"ingestd-file\0"
_MIN_BLOB_BYTES = 16 << 10  # a smaller blob is as cheap to move as the name of its file
_MAX_LENGTH_RATIO = 2
"""A file longer than this multiple of the bytes written is truncated."""


def write_blobs(
    pairs: Iterable[tuple[int, Blob]], folder: str | None
) -> Iterator[tuple[int, bytes]]:
    """Write large blobs of rows to files; yield (slot, bytes) pairs for the shuffle.

    The bytes are a small blob itself, or a reference to the blobs of a slot in a file. Without a
    folder every blob passes through the shuffle. Raises StorageError if the folder cannot be
    written.
    """
    if folder is None:
        for slot, blob in pairs:
            yield slot, as_bytes(blob)
        return
    files: dict[int, SlotFile] = {}
    with ExitStack() as stack:
        for slot, blob in pairs:
            if isinstance(blob, bytes) or len(blob) < _MIN_BLOB_BYTES:  # reports are always bytes
                yield slot, as_bytes(blob)
                continue
            try:
                if slot not in files:
                    files[slot] = open_slot_file(folder)
                    stack.callback(files[slot].stream.close)
                files[slot].append(blob)
            except OSError as error:
                raise exchange_error(folder, error) from error
        _close(files.values(), folder)
    for slot, file in files.items():
        yield slot, _MARK + json.dumps([file.path, file.spans]).encode()


def read_blobs(blobs: Iterable[Blob]) -> Iterator[Blob]:
    """Yield blobs as they were written, with references resolved to slices of mapped files.

    Raises StorageError for a file that cannot be opened or mapped.
    """
    for blob in blobs:
        if not (isinstance(blob, bytes) and blob.startswith(_MARK)):
            yield blob
            continue
        path, spans = json.loads(blob[len(_MARK) :])
        try:
            mapped = map_file(path)
        except OSError as error:
            raise exchange_error(path, error) from error
        for start, size in spans:
            yield mapped.slice(start, size)


class FolderBlobStore:
    """A blob store of the chunk cache (`ingest.rows.chunk_cache`): one file per blob."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def put(self, blob: Encoded) -> str | None:
        """Write a blob and return its name; None if the write fails, as the cache is optional."""
        path = Path(self._folder, uuid.uuid4().hex)
        try:
            with path.open("xb") as stream:
                stream.write(blob)
        except OSError:
            path.unlink(missing_ok=True)
            return None
        return str(path)

    def get(self, name: str) -> Encoded | None:
        """Map a blob by its name; None if its file does not exist on this machine."""
        try:
            with pa.memory_map(name) as file:
                return file.read_buffer()
        except OSError:
            return None


@dataclass(slots=True)
class SlotFile:
    """A locked file to which a task appends blobs; `spans` are their (start, size) in bytes."""

    path: str
    stream: BinaryIO
    spans: list[tuple[int, int]] = field(default_factory=list)

    def append(self, blob: Blob) -> None:
        """Append a blob. Raises OSError."""
        start = self.stream.tell()
        if isinstance(blob, UnsentRows):
            blob.write_to(self.stream)
        else:
            self.stream.write(blob)
        self.spans.append((start, self.stream.tell() - start))

    def close(self) -> None:
        """Close the file, which releases its lock; truncate a recycled file that is far too long.

        Raises OSError.
        """
        with self.stream as stream:
            written = stream.tell()
            if os.fstat(stream.fileno()).st_size > _MAX_LENGTH_RATIO * written:
                stream.truncate()


def open_slot_file(folder: str) -> SlotFile:
    """Open and lock a file under a unique name; recycle a free file if there is one.

    Raises OSError.
    """
    path = Path(folder, f"{uuid.uuid4().hex}{SUFFIX}")
    stream = _recycle_file(Path(folder, RECYCLED), path)
    return SlotFile(str(path), _create_file(path) if stream is None else stream)


def map_file(path: str) -> pa.Buffer:
    """Map a file; it is not overwritten while any part of the mapping is in use.

    Where the file system has no locks the file is read into memory instead. Raises OSError.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        except OSError:
            return pa.py_buffer(Path(path).read_bytes())
        # The mapping duplicates the descriptor, which holds the lock until the mapping is freed.
        return pa.py_buffer(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ))
    finally:
        os.close(descriptor)


def exchange_error(path: str, error: OSError) -> StorageError:
    """Return the error for a folder or file that the stages cannot use."""
    return storage_error(
        f"{path}: the stages of a batch cannot exchange files here ({error}); check that "
        "spark.local.dir is not full and was not cleaned, or set it to another folder",
        error,
    )


def _close(files: Iterable[SlotFile], folder: str) -> None:
    try:
        for file in files:
            file.close()
    except OSError as error:
        raise exchange_error(folder, error) from error


def _create_file(path: Path) -> BinaryIO:
    """Create a file and lock it against recycling.

    A later batch must not recycle it while an attempt that outlived its batch still writes it. The
    file stays unlocked on a file system without locks.
    """
    stream = path.open("xb")
    with suppress(OSError):  # without locks no file is recycled either
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return stream


def _recycle_file(recycled: Path, path: Path) -> BinaryIO | None:
    """Rename a free file of an earlier batch to `path`, and lock and open it.

    Returns None if no file is free, or if the file system has no locks.
    """
    try:
        names = [name for name in os.listdir(recycled) if name.endswith(SUFFIX)]  # noqa: PTH208
    except OSError:
        return None
    for name in names:
        # Any failure means that another task took the file, or that locks do not work.
        with suppress(OSError):
            descriptor = os.open(recycled / name, os.O_RDWR)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                (recycled / name).rename(path)
            except OSError:
                os.close(descriptor)
                raise
            return os.fdopen(descriptor, "wb")
    return None
