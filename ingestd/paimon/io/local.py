"""`FileIO` on local disks: published files are durable, and appear whole or not at all.

Publishing is `link(2)` of a synced temporary file: unlike a rename it never replaces what another
process has published, and unlike exclusive creation it never shows a partly written file.
"""

import contextlib
import logging
import os
import shutil
import stat
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from ingestd.crash_points import CrashPoint, reach
from ingestd.errors import has_full_disk, storage_error
from ingestd.paimon.io.entries import DirectoryEntry

_LOG = logging.getLogger(__name__)


def local_path(uri: str) -> str:
    """Return the local path of a `file:` URI; a plain path is returned unchanged.

    Percent escapes are not decoded, as in Paimon.
    """
    if not uri.startswith("file:"):
        return uri
    rest = uri[len("file:") :]
    return "/" + rest.lstrip("/")


@dataclass(frozen=True, slots=True)
class LocalFileIO:
    """`FileIO` on a local (or POSIX network) file system.

    `sync=False` leaves out every fsync: for tests and for warehouses that may be lost.
    `sync_names=False` leaves out those of directories: a file has its content when it gets its
    name, but after a power failure the newest names may be missing. File systems with a journal
    (ext4, XFS) and NFS keep the order of the changes in a directory.

    Methods raise StorageError if the file system fails, FileNotFoundError if a file to read is
    missing.
    """

    sync: bool = True
    sync_names: bool = True

    def read_bytes(self, path: str) -> bytes:
        """Return the bytes of a file.

        Raises FileNotFoundError if the file is missing, StorageError if the storage fails.
        """
        with _storage_errors("read", path, missing_passes=True):
            return Path(local_path(path)).read_bytes()

    def write_new(self, path: str, data: bytes) -> None:
        """Write a file that must not exist yet, durably. Raises StorageError if it exists."""
        target = Path(local_path(path))
        with _storage_errors("write", path):
            self._make_directories(target.parent)
            self._write_exclusive(target, data)
            self._sync_directory(target.parent)

    def try_write_atomic(self, path: str, data: bytes) -> bool:
        """Publish a file if the name is free; return False, and change nothing, if it is taken.

        After a StorageError the outcome is unknown.
        """
        target = Path(local_path(path))
        temporary = target.with_name(f".{target.name}.{uuid.uuid4()}.tmp")
        with _storage_errors("publish", path):
            self._make_directories(target.parent)
            try:
                self._write_exclusive(temporary, data)
                reach(CrashPoint.PUBLISH_PREPARED)
                os.link(temporary, target)
                reach(CrashPoint.PUBLISH_LINKED)
            except FileExistsError:
                return False
            finally:
                temporary.unlink(missing_ok=True)
            self._sync_directory(target.parent)
            return True

    def overwrite(self, path: str, data: bytes) -> None:
        """Replace a file atomically, or create it."""
        target = Path(local_path(path))
        temporary = target.with_name(f".{target.name}.{uuid.uuid4()}.tmp")
        with _storage_errors("overwrite", path):
            self._make_directories(target.parent)
            try:
                self._write_exclusive(temporary, data)
                temporary.replace(target)
            finally:
                temporary.unlink(missing_ok=True)
            self._sync_directory(target.parent)

    def list_names(self, directory: str) -> list[str]:
        """Return the sorted names in a directory; [] if it does not exist."""
        with _storage_errors("list", directory):
            try:
                return sorted(entry.name for entry in Path(local_path(directory)).iterdir())
            except (FileNotFoundError, NotADirectoryError):
                return []

    def list_entries(self, directory: str) -> list[DirectoryEntry]:
        """Return the entries of a directory, sorted by name; [] if it does not exist."""
        entries = []
        with _storage_errors("list", directory):
            for name in self.list_names(directory):
                with contextlib.suppress(FileNotFoundError):
                    entries.append(_entry(Path(local_path(directory)) / name))
        return entries

    def exists(self, path: str) -> bool:
        """Return whether a file or directory exists at this path."""
        with _storage_errors("look at", path):
            try:
                Path(local_path(path)).stat()
            except (FileNotFoundError, NotADirectoryError):
                return False
            return True

    def size(self, path: str) -> int:
        """Return the size of a file in bytes.

        Raises FileNotFoundError if the file is missing, StorageError if the storage fails.
        """
        with _storage_errors("look at", path, missing_passes=True):
            return Path(local_path(path)).stat().st_size

    def make_directory(self, path: str) -> None:
        """Create a directory and its parents, if they do not exist."""
        with _storage_errors("create", path):
            self._make_directories(Path(local_path(path)))

    def delete_quietly(self, path: str) -> None:
        """Delete a file if it exists; log a failure, never raise it."""
        try:
            Path(local_path(path)).unlink(missing_ok=True)
        except OSError as error:
            _LOG.warning("file_not_deleted", extra={"ctx": {"path": path, "error": str(error)}})

    def delete_empty_directory(self, path: str) -> bool:
        """Delete an empty directory; return False if it is missing, not empty or not deletable."""
        try:
            Path(local_path(path)).rmdir()
        except OSError:
            return False
        return True

    def delete_tree(self, path: str) -> None:
        """Delete a directory with its content, if it exists."""
        with _storage_errors("delete", path), contextlib.suppress(FileNotFoundError):
            shutil.rmtree(local_path(path))

    def rename_directory(self, source: str, target: str) -> None:
        """Rename a directory.

        Raises StorageError if the directory does not exist, or if the new name is a file or a
        directory with content.
        """
        old, new = Path(local_path(source)), Path(local_path(target))
        with _storage_errors("rename", source):
            self._make_directories(new.parent)
            old.rename(new)
            self._sync_directory(new.parent)

    @contextlib.contextmanager
    def open_output(self, path: str) -> Iterator[pa.NativeFile]:
        """Yield a stream to a file that must not exist yet; delete the file if the block raises.

        Raises StorageError if the file exists.
        """
        target = Path(local_path(path))
        with _storage_errors("write", path):
            self._make_directories(target.parent)
            os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
            reach(CrashPoint.FILE_NAMED)
            try:
                with pa.OSFile(str(target), "wb") as stream:
                    yield stream
                self._sync_file(target)
            except BaseException:
                self.delete_quietly(path)
                raise
            self._sync_directory(target.parent)

    def open_input(self, path: str) -> pa.NativeFile:
        """Open a seekable stream of a file.

        Raises FileNotFoundError if the file is missing, StorageError if the storage fails.
        """
        with _storage_errors("open", path, missing_passes=True):
            return pa.OSFile(local_path(path), "rb")

    def _write_exclusive(self, target: Path, data: bytes) -> None:
        with target.open("xb") as stream:
            try:
                stream.write(data)
                stream.flush()
                if self.sync:
                    os.fsync(stream.fileno())
            except OSError:
                target.unlink(missing_ok=True)
                raise

    def _make_directories(self, directory: Path) -> None:
        missing = []
        while not directory.is_dir():
            missing.append(directory)
            directory = directory.parent
        for path in reversed(missing):
            path.mkdir(exist_ok=True)
            self._sync_directory(path.parent)

    def _sync_file(self, path: Path) -> None:
        self._sync(path, os.O_RDONLY)

    def _sync_directory(self, path: Path) -> None:
        if self.sync_names:
            self._sync(path, os.O_RDONLY | os.O_DIRECTORY)

    def _sync(self, path: Path, flags: int) -> None:
        if not self.sync:
            return
        descriptor = os.open(path, flags)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def room_for(path: str) -> Iterator[None]:
    """Convert an error of the block to DiskFullError if it is due to a full local disk.

    `path` is the file to upload, which the message names.
    """
    try:
        yield
    except OSError as error:
        device = f"the local disk at {tempfile.gettempdir()}"
        failure = storage_error(f"cannot write {path}: {device} has no room for it: {error}", error)
        if has_full_disk(failure):
            raise failure from error
        raise


def _entry(path: Path) -> DirectoryEntry:
    status = path.lstat()  # a link is not a directory of a table, whatever its target
    is_directory = stat.S_ISDIR(status.st_mode)
    return DirectoryEntry(path.name, is_directory, status.st_size, status.st_mtime_ns // 1_000_000)


@contextlib.contextmanager
def _storage_errors(what: str, path: str, *, missing_passes: bool = False) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if missing_passes and isinstance(error, FileNotFoundError):
            raise
        message = f"cannot {what} {path}: {error.strerror or error}"
        raise storage_error(message, error) from error
