"""The storage protocol `FileIO`: all file operations that the table format uses.

Code outside this package names files by path and opens them only through a `FileIO`.
"""

import importlib
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, Protocol, cast

import pyarrow as pa

from ingestd.errors import ConfigError
from ingestd.paimon.io.entries import DirectoryEntry
from ingestd.paimon.io.local import LocalFileIO, local_path
from ingestd.paimon.io.memory import MemoryFileIO
from ingestd.paimon.io.store_options import (
    HDFS,
    SCHEMES,
    StoreCredentials,
    check_storage_options,
    storage_options,
    unsupported_scheme,
)

__all__ = [
    "DirectoryEntry",
    "FileIO",
    "LocalFileIO",
    "MemoryFileIO",
    "absolute_path",
    "file_io_for",
    "is_local",
    "is_object_store",
    "scheme_of",
    "storage_options",
    "without_synced_names",
]

LOCAL = ("", "file")
NO_OPTIONS: Mapping[str, str] = MappingProxyType({})


class FileIO(Protocol):
    """Access to the files of a store by path; picklable and thread-safe.

    Reading a missing file raises FileNotFoundError; all other failures raise StorageError with the
    path in the message. Writing a file creates its missing parent directories.
    """

    def read_bytes(self, path: str) -> bytes:
        """Return all bytes of a file."""
        ...

    def write_new(self, path: str, data: bytes) -> None:
        """Write a file that must not exist yet; it is durable when the call returns.

        Until then, readers may see a part of it in some stores. Raises StorageError if the file
        exists.
        """
        ...

    def try_write_atomic(self, path: str, data: bytes) -> bool:
        """Publish a file if the name is free; return False, and change nothing, if it is taken.

        Readers see the whole file or none, and it is durable when the call returns. After a
        StorageError the outcome is unknown: read the file back.
        """
        ...

    def overwrite(self, path: str, data: bytes) -> None:
        """Replace a file atomically, or create it."""
        ...

    def list_names(self, directory: str) -> list[str]:
        """Return the sorted names in a directory; [] if it does not exist."""
        ...

    def list_entries(self, directory: str) -> list[DirectoryEntry]:
        """Return the entries of a directory, sorted by name; [] if it does not exist.

        Files that are deleted during the listing are left out.
        """
        ...

    def exists(self, path: str) -> bool:
        """Return whether a file or directory exists at this path."""
        ...

    def size(self, path: str) -> int:
        """Return the size of a file in bytes."""
        ...

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents, if they do not exist."""
        ...

    def delete_quietly(self, path: str) -> None:
        """Delete a file if it exists; log a failure, never raise it."""
        ...

    def delete_empty_directory(self, path: str) -> bool:
        """Delete an empty directory; return False if it is missing, not empty or a file.

        In an object store, only a directory created by `make_directory` can be empty.
        """
        ...

    def delete_tree(self, path: str) -> None:
        """Delete a directory with its content, if it exists."""
        ...

    def rename_directory(self, source: str, target: str) -> None:
        """Rename a directory. Raises StorageError if it is missing, or the new name is taken.

        An empty directory with the new name may be replaced instead.
        """
        ...

    def open_output(self, path: str) -> AbstractContextManager[pa.NativeFile]:
        """Open a stream to a file that must not exist yet; no file remains if the block raises.

        Raises StorageError if the file exists.
        """
        ...

    def open_input(self, path: str) -> pa.NativeFile:
        """Return a seekable stream of a file."""
        ...


def file_io_for(
    uri: str,
    options: Mapping[str, str] = NO_OPTIONS,
    credentials: StoreCredentials | None = None,
) -> FileIO:
    """Return the FileIO for a warehouse path.

    Plain paths and `file:` URIs are local, the schemes of `SCHEMES` are object stores and HDFS.
    `options` are the options of the store, by Paimon's names; `credentials` replace them in an
    object store, before each request (None: they stay). Raises UnsupportedError for another scheme,
    and ConfigError for an unknown option, or if a package that the scheme needs is not installed.
    """
    scheme = scheme_of(uri)
    check_storage_options(scheme, options)
    if scheme in LOCAL:
        return LocalFileIO()
    if scheme in SCHEMES:
        file_io: FileIO = _home(scheme, uri).open_file_io(options)
        if credentials is not None and is_object_store(uri):
            return cast("FileIO", replace(cast("Any", file_io), credentials=credentials))
        return file_io
    raise unsupported_scheme(uri, scheme)


def _home(scheme: str, uri: str) -> ModuleType:
    family = SCHEMES[scheme]
    try:
        return importlib.import_module(family.home)
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"warehouse {uri}: {family.title} needs the package {error.name}, which is not "
            f"installed; install it with `pip install 'ingestd-paimon[{scheme}]'`"
        ) from error


def without_synced_names(file_io: FileIO) -> FileIO:
    """Return a FileIO that writes local files without syncing directories, which is faster.

    After a power failure, the newest files of a directory may be missing, but no older ones. A
    FileIO of another store is returned unchanged.
    """
    return replace(file_io, sync_names=False) if isinstance(file_io, LocalFileIO) else file_io


def is_local(uri: str) -> bool:
    """Return whether a path is on a file system of this machine."""
    return scheme_of(uri) in LOCAL


def is_object_store(uri: str) -> bool:
    """Return whether a path is in an object store: neither on a local file system nor in HDFS."""
    return not is_local(uri) and scheme_of(uri) not in HDFS.schemes


def absolute_path(uri: str) -> str:
    """Return a path without trailing slashes; a local path becomes absolute, without `file:`.

    Tasks do not run in the directory of the process that read the configuration.
    """
    if is_local(uri):
        return str(Path(local_path(uri)).absolute())
    return uri.rstrip("/")


def scheme_of(uri: str) -> str:
    """Return the scheme of a path, or "" for a plain path."""
    scheme, separator, _ = uri.partition(":")
    return scheme if separator and "/" not in scheme else ""
