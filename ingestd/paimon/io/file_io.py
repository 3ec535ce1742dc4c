"""The narrow door to storage: what the table format asks of a file system, and who answers.

Everything above this package names files by path and never opens one by itself.
"""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from ingestd.errors import UnsupportedError
from ingestd.paimon.io.local import LocalFileIO, local_path
from ingestd.paimon.io.memory import MemoryFileIO

__all__ = ["FileIO", "LocalFileIO", "MemoryFileIO", "absolute_path", "file_io_for"]


class FileIO(Protocol):
    """Files by path; picklable, safe to use from several threads.

    A missing file to read is FileNotFoundError; whatever else goes wrong is StorageError with
    the path in its message. Parent directories come into being with the first file.
    """

    def read_bytes(self, path: str) -> bytes:
        """All bytes of a file."""
        ...

    def write_new(self, path: str, data: bytes) -> None:
        """Write a file that must not exist yet; durable when it returns."""
        ...

    def try_write_atomic(self, path: str, data: bytes) -> bool:
        """Publish a file if the name is free; False, and nothing changed, if it is taken.

        StorageError means that the outcome is not known: read the file back.
        """
        ...

    def overwrite(self, path: str, data: bytes) -> None:
        """Replace a file atomically, or create it."""
        ...

    def list_names(self, directory: str) -> list[str]:
        """Sorted names of the files and directories in it; [] if there is no such directory."""
        ...

    def exists(self, path: str) -> bool:
        """Whether a file or directory of that name is there."""
        ...

    def size(self, path: str) -> int:
        """Bytes of a file."""
        ...

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents; one that exists is fine."""
        ...

    def delete_quietly(self, path: str) -> None:
        """Delete a file if it is there; a failure is logged, never raised."""
        ...

    def delete_tree(self, path: str) -> None:
        """Delete a directory with all it holds; an absent one is fine."""
        ...

    def rename_directory(self, source: str, target: str) -> None:
        """Give a directory another name; StorageError if that name is taken."""
        ...

    def open_output(self, path: str) -> AbstractContextManager[pa.NativeFile]:
        """A stream to a file that must not exist yet; no file remains if the body raises."""
        ...

    def open_input(self, path: str) -> pa.NativeFile:
        """A seekable stream of a file."""
        ...


def file_io_for(uri: str) -> FileIO:
    """The FileIO that serves a warehouse path.

    Plain paths and `file:` URIs are local; any other scheme is UnsupportedError.
    """
    scheme = _scheme(uri)
    if scheme in ("", "file"):
        return LocalFileIO()
    raise UnsupportedError(
        f"warehouse {uri}: the scheme '{scheme}' is not supported; use a local path or file:///..."
    )


def absolute_path(uri: str) -> str:
    """The path without a trailing slash, a relative local one made absolute.

    Tasks run in other directories than the process that read the configuration.
    """
    if _scheme(uri) in ("", "file"):
        return str(Path(local_path(uri)).absolute())
    return uri.rstrip("/")


def _scheme(uri: str) -> str:
    scheme, separator, _ = uri.partition(":")
    return scheme if separator and "/" not in scheme else ""
