"""HDFS: the names of files are in one namenode's keeping, and it renames for one of two only.

Files appear whole by a rename that fails if the name is taken, as Paimon's Java publishes, so
writers of both kinds share a table without a lock. Nothing is deleted into a trash.
"""

import contextlib
import logging
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from ingestd.errors import ConfigError, StorageError
from ingestd.paimon.io.entries import DirectoryEntry
from ingestd.paimon.io.hdfs_calls import FAILURES, Hdfs, said, told
from ingestd.paimon.io.hdfs_publishing import publish
from ingestd.paimon.io.hdfs_reader import HdfsReader
from ingestd.paimon.io.local import room_for

_LOG = logging.getLogger(__name__)
_CHUNK_BYTES = 8 << 20
"""Bytes of one write; smaller files are read with one request as well."""
_DIRECTORY_MODE = 0o755
_NOT_EMPTY = "PathIsNotEmptyDirectoryException"


@dataclass(frozen=True, slots=True)
class HdfsFileIO:
    """`FileIO` on HDFS; `options` are Paimon's for it."""

    options: frozenset[tuple[str, str]] = field(default=frozenset(), repr=False)

    def read_bytes(self, path: str) -> bytes:
        """All bytes of a file; FileNotFoundError passes as is, the rest is StorageError."""
        hdfs, place = self._place(path)
        with _storage_errors("read", path, missing_passes=True):
            return hdfs.again(lambda: _read_whole(hdfs, place))

    def write_new(self, path: str, data: bytes) -> None:
        """Write a file that must not exist yet; durable when it returns."""
        if not self.try_write_atomic(path, data):
            raise StorageError(f"cannot write {path}: File exists")

    def try_write_atomic(self, path: str, data: bytes) -> bool:
        """Publish a file if the name is free; False, and nothing changed, if it is taken.

        A name that holds exactly these bytes counts as published: when an answer was lost on the
        way, the request that was sent again finds the first one's file.
        """
        hdfs, place = self._place(path)
        with _storage_errors("publish", path):
            return publish(hdfs, place, lambda: _chunks(data))

    def overwrite(self, path: str, data: bytes) -> None:
        """Replace a file atomically, or create it."""
        hdfs, place = self._place(path)
        with _storage_errors("overwrite", path):
            publish(hdfs, place, lambda: _chunks(data), replace=True)

    def list_names(self, directory: str) -> list[str]:
        """Sorted names of the files and directories in it; [] if there is no such directory."""
        return [entry.name for entry in self.list_entries(directory)]

    def list_entries(self, directory: str) -> list[DirectoryEntry]:
        """As `list_names`, with what each of them is, and how old."""
        hdfs, place = self._place(directory)
        with _storage_errors("list", directory):
            try:
                found = hdfs.with_retries(lambda client: list(client.list_status(place, False)))
            except FileNotFoundError:
                return []
        below = place.rstrip("/") + "/"
        return sorted(
            (
                DirectoryEntry(
                    one.path.rpartition("/")[2], one.isdir, one.length, one.modification_time
                )
                for one in found
                if one.path.startswith(below)  # of a file the namenode lists the file itself
            ),
            key=lambda entry: entry.name,
        )

    def exists(self, path: str) -> bool:
        """Whether a file or directory of that name is there."""
        try:
            self.size(path)
        except FileNotFoundError:
            return False
        return True

    def size(self, path: str) -> int:
        """Bytes of a file; FileNotFoundError passes as is."""
        hdfs, place = self._place(path)
        with _storage_errors("look at", path, missing_passes=True):
            return hdfs.with_retries(lambda client: client.get_file_info(place).length)

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents; one that exists is fine."""
        hdfs, place = self._place(path)
        with _storage_errors("create", path):
            hdfs.with_retries(lambda client: client.mkdirs(place, _DIRECTORY_MODE, True))

    def delete_quietly(self, path: str) -> None:
        """Delete a file if it is there; a failure is logged, never raised."""
        hdfs, place = self._place(path)
        try:
            hdfs.with_retries(lambda client: client.delete(place, False))
        except FAILURES as error:
            _LOG.warning("file_not_deleted", extra={"ctx": {"path": path, "error": said(error)}})

    def delete_empty_directory(self, path: str) -> bool:
        """Delete a directory that holds nothing; False if it holds any, or is not one."""
        hdfs, place = self._place(path)
        with _storage_errors("delete", path):
            try:
                if not hdfs.with_retries(lambda client: client.get_file_info(place).isdir):
                    return False
                return hdfs.with_retries(lambda client: client.delete(place, False))
            except FileNotFoundError:
                return False
            except RuntimeError as error:
                if _NOT_EMPTY in str(error):
                    return False
                raise

    def delete_tree(self, path: str) -> None:
        """Delete a directory with all it holds, by one request; an absent one is fine."""
        hdfs, place = self._place(path)
        with _storage_errors("delete", path):
            hdfs.with_retries(lambda client: client.delete(place, True))

    def rename_directory(self, source: str, target: str) -> None:
        """Give a directory another name, atomically; StorageError if that name is taken."""
        hdfs, old = self._place(source)
        _, new = self._place(target)
        with _storage_errors("rename", source):
            parent = new.rpartition("/")[0] or "/"
            hdfs.with_retries(lambda client: client.mkdirs(parent, _DIRECTORY_MODE, True))
            hdfs.once(lambda client: client.rename(old, new, False))

    @contextlib.contextmanager
    def open_output(self, path: str) -> Iterator[pa.NativeFile]:
        """A stream to a local temporary file, written at its end; nothing if the body raises."""
        hdfs, place = self._place(path)
        with room_for(path), tempfile.NamedTemporaryFile(prefix="ingestd-upload-") as local:
            with pa.OSFile(local.name, "wb") as stream:
                yield stream
            with _storage_errors("write", path):
                if not publish(hdfs, place, lambda: _chunks_of_file(Path(local.name))):
                    raise StorageError(f"cannot write {path}: the file already exists")

    def open_input(self, path: str) -> pa.NativeFile:
        """A seekable stream of a file; FileNotFoundError passes as is."""
        hdfs, place = self._place(path)
        with _storage_errors("open", path, missing_passes=True):
            reader = hdfs.with_retries(lambda client: client.read(place))
        stream = HdfsReader(hdfs, place, path, reader)
        if reader.file_length() <= _CHUNK_BYTES:
            return pa.BufferReader(pa.py_buffer(stream.read()))
        return pa.PythonFile(stream, mode="r")

    def _place(self, path: str) -> tuple[Hdfs, str]:
        scheme, separator, rest = path.partition("://")
        if not separator:
            raise ConfigError(f"{path}: a path in HDFS begins hdfs://HOST:PORT/ or hdfs://NAME/")
        authority, _, place = rest.partition("/")
        return Hdfs(f"{scheme}://{authority}", self.options), "/" + place.strip("/")


def open_file_io(options: Mapping[str, str]) -> HdfsFileIO:
    """The FileIO of all clusters that these options fit."""
    return HdfsFileIO(frozenset(options.items()))


def _read_whole(hdfs: Hdfs, place: str) -> bytes:
    reader = hdfs.once(lambda client: client.read(place))
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
        raise told(what, path, error) from error
    except FAILURES as error:
        raise told(what, path, error) from error
