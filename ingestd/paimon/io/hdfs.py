"""`FileIO` on HDFS: files are written under a temporary name and then renamed.

Paimon's Java client publishes in the same way, and the namenode refuses a rename to a name that is
taken, so writers of both kinds share a table without a lock. The library repeats a request when its
connection breaks, so an error does not show whether a rename happened: `publish` checks that.
Deleted files are not moved to the trash.
"""

import contextlib
import logging
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from hdfs_native import WriteOptions
from hdfs_native._internal import RawClient

from ingestd.crash_points import CrashPoint, reach
from ingestd.errors import ConfigError, StorageError, UnsupportedError
from ingestd.paimon.io.entries import DirectoryEntry
from ingestd.paimon.io.hdfs_client import FAILURES, Hdfs, hdfs_error, is_unknown
from ingestd.paimon.io.local import room_for
from ingestd.paimon.io.range_reader import RangeReader

if TYPE_CHECKING:
    from hdfs_native._internal import RawFileReader, RawFileWriter

_LOG = logging.getLogger(__name__)
_CHUNK_BYTES = 8 << 20
"""Size of one write; a file up to this size is read with one request."""
_DIRECTORY_MODE = 0o755
_NOT_EMPTY = "PathIsNotEmptyDirectoryException"
Chunks = Callable[[], Iterable[bytes]]
"""Function that returns the bytes of a file in chunks, from the beginning at each call."""


@dataclass(frozen=True, slots=True)
class HdfsFileIO:
    """`FileIO` on HDFS; `options` are Paimon's options for HDFS with their values.

    Methods raise StorageError if a request fails, FileNotFoundError if a file to read is missing.
    """

    options: frozenset[tuple[str, str]] = field(default=frozenset(), repr=False)

    def read_bytes(self, path: str) -> bytes:
        """Return the bytes of a file.

        Raises FileNotFoundError if the file is missing, StorageError if the storage fails.
        """
        hdfs, hdfs_path = self._resolve(path)
        with _storage_errors("read", path, missing_passes=True):
            return hdfs.again(lambda: _read_whole(hdfs, hdfs_path))

    def write_new(self, path: str, data: bytes) -> None:
        """Write a file that must not exist yet, durably. Raises StorageError if it exists.

        A file with exactly these bytes counts as written.
        """
        if not self.try_write_atomic(path, data):
            raise StorageError(f"cannot write {path}: File exists")

    def try_write_atomic(self, path: str, data: bytes) -> bool:
        """Publish a file if the name is free; return False, and change nothing, if it is taken.

        A file with exactly these bytes counts as published: if a response was lost, the repeated
        request finds the file that the first request wrote. After a StorageError the outcome is
        unknown.
        """
        hdfs, hdfs_path = self._resolve(path)
        with _storage_errors("publish", path):
            return publish(hdfs, hdfs_path, lambda: _chunks(data))

    def overwrite(self, path: str, data: bytes) -> None:
        """Create a file, or replace it atomically."""
        hdfs, hdfs_path = self._resolve(path)
        with _storage_errors("overwrite", path):
            publish(hdfs, hdfs_path, lambda: _chunks(data), replace=True)

    def list_names(self, directory: str) -> list[str]:
        """Return the sorted names in a directory; [] if it does not exist."""
        return [entry.name for entry in self.list_entries(directory)]

    def list_entries(self, directory: str) -> list[DirectoryEntry]:
        """Return the entries of a directory, sorted by name; [] if it does not exist."""
        hdfs, hdfs_path = self._resolve(directory)
        with _storage_errors("list", directory):
            try:
                entries = hdfs.with_retries(
                    lambda client: list(client.list_status(hdfs_path, False))
                )
            except FileNotFoundError:
                return []
        below = hdfs_path.rstrip("/") + "/"
        return sorted(
            (
                DirectoryEntry(
                    status.path.rpartition("/")[2],
                    status.isdir,
                    status.length,
                    status.modification_time,
                )
                for status in entries
                if status.path.startswith(below)  # the namenode lists a file as itself
            ),
            key=lambda entry: entry.name,
        )

    def exists(self, path: str) -> bool:
        """Return whether a file or directory exists."""
        try:
            self.size(path)
        except FileNotFoundError:
            return False
        return True

    def size(self, path: str) -> int:
        """Return the size of a file in bytes.

        Raises FileNotFoundError if the file is missing, StorageError if the storage fails.
        """
        hdfs, hdfs_path = self._resolve(path)
        with _storage_errors("look at", path, missing_passes=True):
            return hdfs.with_retries(lambda client: client.get_file_info(hdfs_path).length)

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents, unless it exists."""
        hdfs, hdfs_path = self._resolve(path)
        with _storage_errors("create", path):
            hdfs.with_retries(lambda client: client.mkdirs(hdfs_path, _DIRECTORY_MODE, True))

    def delete_quietly(self, path: str) -> None:
        """Delete a file if it exists; log a failure, never raise it."""
        try:
            hdfs, hdfs_path = self._resolve(path)
            with _storage_errors("delete", path, missing_passes=True):
                hdfs.with_retries(lambda client: client.delete(hdfs_path, False))
        except FileNotFoundError:
            return
        except (ConfigError, StorageError, UnsupportedError) as error:
            _LOG.warning("file_not_deleted", extra={"ctx": {"path": path, "error": error.message}})

    def delete_empty_directory(self, path: str) -> bool:
        """Delete an empty directory; return False if it is missing, not empty or a file."""
        hdfs, hdfs_path = self._resolve(path)
        with _storage_errors("delete", path):
            try:
                if not hdfs.with_retries(lambda client: client.get_file_info(hdfs_path).isdir):
                    return False
                return hdfs.with_retries(lambda client: client.delete(hdfs_path, False))
            except FileNotFoundError:
                return False
            except RuntimeError as error:
                if _NOT_EMPTY in str(error):
                    return False
                raise

    def delete_tree(self, path: str) -> None:
        """Delete a directory with its content by one request, if it exists."""
        hdfs, hdfs_path = self._resolve(path)
        with _storage_errors("delete", path):
            hdfs.with_retries(lambda client: client.delete(hdfs_path, True))

    def rename_directory(self, source: str, target: str) -> None:
        """Rename a directory atomically.

        Raises StorageError if it does not exist, or the new name is taken.
        """
        hdfs, old = self._resolve(source)
        _, new = self._resolve(target)
        with _storage_errors("rename", source):
            parent = new.rpartition("/")[0] or "/"
            hdfs.with_retries(lambda client: client.mkdirs(parent, _DIRECTORY_MODE, True))
            hdfs.once(lambda client: client.rename(old, new, False))

    @contextlib.contextmanager
    def open_output(self, path: str) -> Iterator[pa.NativeFile]:
        """Yield a stream to a local temporary file, and publish that file unless the block raises.

        Raises StorageError if the path is taken, DiskFullError if the local disk is full.
        """
        hdfs, hdfs_path = self._resolve(path)
        with room_for(path), tempfile.NamedTemporaryFile(prefix="ingestd-upload-") as local:
            with pa.OSFile(local.name, "wb") as stream:
                yield stream
            with _storage_errors("write", path):
                if not publish(hdfs, hdfs_path, lambda: _chunks_of_file(Path(local.name))):
                    raise StorageError(f"cannot write {path}: the file already exists")

    def open_input(self, path: str) -> pa.NativeFile:
        """Open a seekable stream of a file.

        Raises FileNotFoundError if the file is missing, StorageError if the storage fails.
        """
        hdfs, hdfs_path = self._resolve(path)
        with _storage_errors("open", path, missing_passes=True):
            reader = hdfs.with_retries(lambda client: client.read(hdfs_path))
        stream = HdfsReader(hdfs, hdfs_path, path, reader)
        if reader.file_length() <= _CHUNK_BYTES:
            return pa.BufferReader(pa.py_buffer(stream.read()))
        return pa.PythonFile(stream, mode="r")

    def _resolve(self, path: str) -> tuple[Hdfs, str]:
        scheme, separator, rest = path.partition("://")
        if not separator:
            raise ConfigError(f"{path}: a path in HDFS begins hdfs://HOST:PORT/ or hdfs://NAME/")
        authority, _, hdfs_path = rest.partition("/")
        return Hdfs(f"{scheme}://{authority}", self.options), "/" + hdfs_path.strip("/")


class HdfsReader(RangeReader):
    """Seekable stream of a file; each read is one request. Raises StorageError with the path.

    `hdfs_path` is the path within the cluster `hdfs`, `path` the path in messages, and `reader` the
    open file.
    """

    def __init__(self, hdfs: Hdfs, hdfs_path: str, path: str, reader: "RawFileReader") -> None:
        super().__init__(reader.file_length())
        self._hdfs = hdfs
        self._hdfs_path = hdfs_path
        self._path = path
        self._reader = reader

    def read_range(self, start: int, length: int) -> bytes:
        """Return `length` bytes from `start` on.

        If that fails, the file is opened and read again, with retries, because its blocks may have
        moved.
        """
        try:
            return self._once(start, length)
        except FAILURES:
            return self._with_retries(start, length)

    def _once(self, start: int, length: int) -> bytes:
        return self._hdfs.once(lambda _: self._reader.read_range(start, length))

    def _with_retries(self, start: int, length: int) -> bytes:
        try:
            return self._hdfs.again(lambda: self._reopened(start, length))
        except FAILURES as error:
            raise hdfs_error(f"read from {start} on", self._path, error) from error

    def _reopened(self, start: int, length: int) -> bytes:
        self._reader = self._hdfs.once(lambda client: client.read(self._hdfs_path))
        return self._once(start, length)


def open_file_io(options: Mapping[str, str]) -> HdfsFileIO:
    """Return a FileIO for HDFS clusters; `options` are Paimon's options for HDFS."""
    return HdfsFileIO(frozenset(options.items()))


def _read_whole(hdfs: Hdfs, hdfs_path: str) -> bytes:
    reader = hdfs.once(lambda client: client.read(hdfs_path))
    return hdfs.once(lambda _: reader.read_range(0, reader.file_length()))


def _chunks(data: bytes) -> Iterable[bytes]:
    return (data[at : at + _CHUNK_BYTES] for at in range(0, len(data), _CHUNK_BYTES))


def _chunks_of_file(file: Path) -> Iterable[bytes]:
    with file.open("rb") as stream:
        while chunk := stream.read(_CHUNK_BYTES):
            yield chunk


@contextlib.contextmanager
def _storage_errors(what: str, path: str, *, missing_passes: bool = False) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        if missing_passes:
            raise FileNotFoundError(path) from error
        raise hdfs_error(what, path, error) from error
    except FAILURES as error:
        raise hdfs_error(what, path, error) from error


def publish(hdfs: Hdfs, hdfs_path: str, chunks: Chunks, *, replace: bool = False) -> bool:
    """Publish a file; return False, and change nothing, if the name is taken.

    `hdfs_path` is the path within the cluster; `chunks` returns the bytes of the file in parts. A
    file of that name with exactly these bytes counts as published. With `replace`, an existing file
    is replaced and the result is always True. On return the file is durable: the datanodes have
    synced its bytes, the namenode its journal. Raises errors of the library; the outcome is then
    unknown.
    """
    directory, _, name = hdfs_path.rpartition("/")
    temporary = f"{directory}/.{name}.{uuid.uuid4()}.tmp"
    try:
        hdfs.again(lambda: _write(hdfs, temporary, chunks))
        reach(CrashPoint.PUBLISH_PREPARED)
        hdfs.once(lambda client: client.rename(temporary, hdfs_path, replace))
        reach(CrashPoint.PUBLISH_LINKED)
    except FAILURES:
        if _settled(hdfs, temporary, hdfs_path, chunks):
            return True
        if replace or not _is_taken(hdfs, hdfs_path):
            raise
        return False
    return True


def _write(hdfs: Hdfs, temporary: str, chunks: Chunks) -> None:
    """Write a temporary file, replacing what an earlier attempt left of it."""
    options = WriteOptions(overwrite=True, create_parent=True)
    writer = hdfs.once(lambda client: client.create(temporary, options))
    for chunk in chunks():
        hdfs.once(_writing(writer, chunk))
    hdfs.once(lambda _: _synced(writer))
    hdfs.once(lambda _: writer.close())


def _writing(writer: "RawFileWriter", chunk: bytes) -> Callable[[RawClient], int]:
    return lambda _: writer.write(chunk)


def _synced(writer: "RawFileWriter") -> None:
    """Sync the written bytes on the datanodes; do nothing for erasure-coded files."""
    try:
        writer.hsync()
    except RuntimeError as error:
        if not is_unknown(error):
            raise


def _settled(hdfs: Hdfs, temporary: str, hdfs_path: str, chunks: Chunks) -> bool:
    """Return whether a file was published in spite of an error.

    The temporary file is deleted first: a rename that is still under way fails without its source,
    so the result is final.
    """
    hdfs.with_retries(lambda client: client.delete(temporary, False))
    try:
        return hdfs.again(lambda: _holds(hdfs, hdfs_path, chunks))
    except FileNotFoundError:
        return False


def _is_taken(hdfs: Hdfs, hdfs_path: str) -> bool:
    try:
        hdfs.with_retries(lambda client: client.get_file_info(hdfs_path))
    except FileNotFoundError:
        return False
    return True


def _holds(hdfs: Hdfs, hdfs_path: str, chunks: Chunks) -> bool:
    """Return whether a file has exactly the bytes of `chunks`. Raises FileNotFoundError."""
    reader = hdfs.once(lambda client: client.read(hdfs_path))
    length = reader.file_length()
    at = 0
    for chunk in chunks():
        if at + len(chunk) > length or hdfs.once(_reading(reader, at, len(chunk))) != chunk:
            return False
        at += len(chunk)
    return at == length


def _reading(reader: "RawFileReader", at: int, length: int) -> Callable[[RawClient], bytes]:
    return lambda _: reader.read_range(at, length)
