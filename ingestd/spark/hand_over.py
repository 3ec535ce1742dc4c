"""Blobs between the stages of a local session: in files, so that the JVM moves only their names.

Bytes that pass through the JVM are copied some six times and compressed on the way. Where both
stages run on this machine, a task of stage 1 appends its blobs to one file for each slot instead,
in a folder that lives as long as the batch, and stage 2 maps the file. A file belongs to one
attempt of a task: what a failed attempt left is named by nobody.
"""

import fcntl
import json
import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from ingestd.errors import RetryableError
from ingestd.ingest.rows.blobs import Blob, as_bytes

_PREFIX = "ingestd-blobs-"
_remover = ThreadPoolExecutor(1, "remove-blobs")  # no thread until it is needed
_NEW_SECONDS = 60.0
_MARK = b"ingestd-file\0"
_SMALLEST = 16 << 10  # below it a blob is as cheap as the name of its file


@contextmanager
def shared_folder(parent: str | None) -> Iterator[str | None]:
    """A folder below `parent` for the blobs of one batch, removed beside what follows the block.

    What drivers left there that were killed goes first: a living one holds a lock on its folder.
    None without a parent. RetryableError if it cannot be made.
    """
    if parent is None:
        yield None
        return
    try:
        _sweep(Path(parent))
        folder = tempfile.mkdtemp(prefix=_PREFIX, dir=parent)
        lock = os.open(folder, os.O_RDONLY)
    except OSError as error:
        raise _unusable(parent, error) from error
    try:
        with suppress(OSError):  # where nobody can lock, nobody sweeps either
            fcntl.flock(lock, fcntl.LOCK_SH)
        yield folder
    finally:
        # To free what lies in a hundred megabytes of files takes longer than a commit.
        try:
            _remover.submit(_remove, folder, lock)
        except RuntimeError:  # the interpreter is about to end
            _remove(folder, lock)


def _remove(folder: str, lock: int) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    os.close(lock)


def _sweep(parent: Path) -> None:
    """Remove folders that nobody has locked, but for new ones, whose lock may be about to come."""
    newest = time.time() - _NEW_SECONDS
    for folder in parent.glob(f"{_PREFIX}*"):
        try:
            if folder.stat().st_mtime > newest:
                continue
            lock = os.open(folder, os.O_RDONLY)
        except OSError:
            continue  # its owner was quicker, or it is another user's
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            continue  # in use
        finally:
            os.close(lock)


@dataclass(slots=True)
class _SlotFile:
    """The blobs of one slot so far: where each begins and how long it is."""

    path: str
    stream: BinaryIO
    places: list[tuple[int, int]] = field(default_factory=list)

    def append(self, blob: Blob) -> None:
        size = len(blob)
        self.places.append((self.stream.tell(), size))
        self.stream.write(blob)


def leave(pairs: Iterable[tuple[int, Blob]], folder: str | None) -> Iterator[tuple[int, bytes]]:
    """The pairs as they go through the shuffle: large blobs as references into files.

    Without a folder every blob goes through the shuffle itself. RetryableError when the folder
    cannot be written.
    """
    if folder is None:
        for slot, blob in pairs:
            yield slot, as_bytes(blob)
        return
    files: dict[int, _SlotFile] = {}
    with ExitStack() as stack:
        for slot, blob in pairs:
            if len(blob) < _SMALLEST:
                yield slot, as_bytes(blob)
                continue
            try:
                if slot not in files:
                    path = Path(folder, uuid.uuid4().hex)
                    files[slot] = _SlotFile(str(path), stack.enter_context(path.open("xb")))
                files[slot].append(blob)
            except OSError as error:
                raise _unusable(folder, error) from error
    for slot, file in files.items():
        yield slot, _MARK + json.dumps([file.path, file.places]).encode()


class FolderShelf:
    """A shelf (`ingest.rows.kept_chunks`) in a shared folder: a file for each blob."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def put(self, blob: Blob) -> str | None:
        """Write the blob; None if it cannot be written, for nobody depends on it."""
        path = Path(self._folder, uuid.uuid4().hex)
        try:
            with path.open("xb") as stream:
                stream.write(blob)
        except OSError:
            path.unlink(missing_ok=True)
            return None
        return str(path)

    def get(self, name: str) -> Blob | None:
        """The blob, mapped; None if its file is not here."""
        try:
            with pa.memory_map(name) as file:
                return file.read_buffer()
        except OSError:
            return None


def collect(blobs: Iterable[Blob]) -> Iterator[Blob]:
    """The blobs that were left, wherever they are; those of files are mapped, not read.

    RetryableError for a file that is gone.
    """
    for blob in blobs:
        if not (isinstance(blob, bytes) and blob.startswith(_MARK)):
            yield blob
            continue
        path, places = json.loads(blob[len(_MARK) :])
        try:
            with pa.memory_map(path) as file:
                whole = file.read_buffer()
        except OSError as error:
            raise _unusable(path, error) from error
        for start, size in places:
            yield whole.slice(start, size)


def _unusable(path: str, error: OSError) -> RetryableError:
    return RetryableError(
        f"{path}: the stages of a batch cannot hand over through files here ({error}); is "
        "spark.local.dir full or was it cleaned? Another folder can be set there"
    )
