"""Object stores: an object appears whole with one request, and creating it is conditional.

Publishing is a put that the store refuses when the name is taken (`If-None-Match: *`), so two
writers never replace each other's snapshots and no lock is needed. Directories do not exist: one
that was asked for is an empty object in it, which no listing shows.
"""

import contextlib
import logging
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import obstore
import pyarrow as pa
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError
from obstore.store import ObjectStore

from ingestd.errors import StorageError
from ingestd.paimon.io.entries import DirectoryEntry
from ingestd.paimon.io.local import room_for
from ingestd.paimon.io.object_reader import ObjectReader
from ingestd.paimon.io.object_upload import upload_new
from ingestd.paimon.io.stores import open_store, said

_LOG = logging.getLogger(__name__)
_DIRECTORY = ".directory"
_WHOLE_BYTES = 8 << 20
"""Smaller objects are read with one request."""
_MISSING = (FileNotFoundError, NotFoundError)


@dataclass(frozen=True, slots=True)
class ObjectFileIO:
    """`FileIO` on an object store; `options` are those of the store, secrets included."""

    options: frozenset[tuple[str, str]] = field(default=frozenset(), repr=False)

    def read_bytes(self, path: str) -> bytes:
        """All bytes of an object; FileNotFoundError passes as is, the rest is StorageError."""
        store, key = self._place(path)
        with _storage_errors("read", path, missing_passes=True):
            return obstore.get(store, key).bytes().to_bytes()

    def write_new(self, path: str, data: bytes) -> None:
        """Write an object that must not exist yet."""
        if not self.try_write_atomic(path, data):
            raise StorageError(f"cannot write {path}: File exists")

    def try_write_atomic(self, path: str, data: bytes) -> bool:
        """Publish an object if the name is free; False, and nothing changed, if it is taken.

        A name that holds exactly these bytes counts as published: when an answer was lost on the
        way, the request that was sent again finds the first one's object.
        """
        store, key = self._place(path)
        with _storage_errors("publish", path):
            try:
                obstore.put(store, key, data, mode="create", use_multipart=False)
            except AlreadyExistsError:
                return obstore.get(store, key).bytes().to_bytes() == data
            return True

    def overwrite(self, path: str, data: bytes) -> None:
        """Replace an object, or create it."""
        store, key = self._place(path)
        with _storage_errors("overwrite", path):
            obstore.put(store, key, data)

    def list_names(self, directory: str) -> list[str]:
        """Sorted names of objects and directories in it; [] if there is no such directory."""
        return [entry.name for entry in self.list_entries(directory)]

    def list_entries(self, directory: str) -> list[DirectoryEntry]:
        """As `list_names`, with what each is; directories are as old as the epoch."""
        store, key = self._place(directory)
        with _storage_errors("list", directory):
            found = obstore.list_with_delimiter(store, key)
        entries = [DirectoryEntry(_name(one), True, 0, 0) for one in found["common_prefixes"]]
        for one in found["objects"]:
            if (name := _name(one["path"])) != _DIRECTORY:
                modified = int(one["last_modified"].timestamp() * 1000)
                entries.append(DirectoryEntry(name, False, one["size"], modified))
        return sorted(entries, key=lambda entry: entry.name)

    def exists(self, path: str) -> bool:
        """Whether an object of that name is there, or any below it."""
        store, key = self._place(path)
        with _storage_errors("look at", path):
            try:
                obstore.head(store, key)
            except _MISSING:
                return any(True for _ in _below(store, key))
            return True

    def size(self, path: str) -> int:
        """Bytes of an object; FileNotFoundError passes as is."""
        store, key = self._place(path)
        with _storage_errors("look at", path, missing_passes=True):
            return int(obstore.head(store, key)["size"])

    def make_directory(self, path: str) -> None:
        """Leave an empty object in it, so that an empty directory can be seen."""
        self.overwrite(f"{path}/{_DIRECTORY}", b"")

    def delete_quietly(self, path: str) -> None:
        """Delete an object if it is there; a failure is logged, never raised."""
        store, key = self._place(path)
        try:
            obstore.delete(store, key)
        except _MISSING:
            return
        except BaseError as error:
            _LOG.warning("file_not_deleted", extra={"ctx": {"path": path, "error": said(error)}})

    def delete_empty_directory(self, path: str) -> bool:
        """Delete the mark of a directory that holds nothing else; False if it holds any."""
        store, key = self._place(path)
        with _storage_errors("delete", path):
            if set(_below(store, key)) != {f"{key}/{_DIRECTORY}"}:
                return False
            obstore.delete(store, f"{key}/{_DIRECTORY}")
            return True

    def delete_tree(self, path: str) -> None:
        """Delete all objects below a directory; an absent one is fine."""
        store, key = self._place(path)
        with _storage_errors("delete", path):
            if keys := list(_below(store, key)):
                obstore.delete(store, keys)

    def rename_directory(self, source: str, target: str) -> None:
        """Copy all objects to another name, then delete the old ones: not atomic, as on S3 ever.

        StorageError if that name is taken, or nothing is there.
        """
        store, old = self._place(source)
        _, new = self._place(target)
        keys = list(_below(store, old))
        if self.exists(target) or not keys:
            raise StorageError(f"cannot rename {source} to {target}: taken, or nothing there")
        with _storage_errors("rename", source):
            for key in keys:
                obstore.copy(store, key, new + key[len(old) :])
            obstore.delete(store, keys)

    @contextlib.contextmanager
    def open_output(self, path: str) -> Iterator[pa.NativeFile]:
        """A stream to a local temporary file, uploaded at its end; nothing if the body raises."""
        store, key = self._place(path)
        with room_for(path), tempfile.NamedTemporaryFile(prefix="ingestd-upload-") as local:
            with pa.OSFile(local.name, "wb") as stream:
                yield stream
            with _storage_errors("write", path):
                upload_new(store, key, Path(local.name), path)

    def open_input(self, path: str) -> pa.NativeFile:
        """A seekable stream of an object; FileNotFoundError passes as is."""
        store, key = self._place(path)
        with _storage_errors("open", path, missing_passes=True):
            found = obstore.get(store, key)
            size = int(found.meta["size"])
            if size <= _WHOLE_BYTES:
                return pa.BufferReader(pa.py_buffer(found.bytes()))
        return pa.PythonFile(ObjectReader(store, key, path, size), mode="r")

    def _place(self, path: str) -> tuple[ObjectStore, str]:
        scheme, _, rest = path.partition("://")
        bucket, _, key = rest.partition("/")
        return open_store(scheme, bucket, self.options), key.strip("/")


def open_file_io(options: Mapping[str, str]) -> ObjectFileIO:
    """The FileIO of all object stores that these options fit."""
    return ObjectFileIO(frozenset(options.items()))


def _below(store: ObjectStore, key: str) -> Iterable[str]:
    for page in obstore.list(store, key):
        yield from (one["path"] for one in page)


def _name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


@contextlib.contextmanager
def _storage_errors(what: str, path: str, *, missing_passes: bool = False) -> Iterator[None]:
    try:
        yield
    except _MISSING as error:
        if missing_passes:
            raise FileNotFoundError(path) from error
        raise StorageError(f"cannot {what} {path}: {said(error)}") from error
    except (BaseError, OSError) as error:
        raise StorageError(f"cannot {what} {path}: {said(error)}") from error
