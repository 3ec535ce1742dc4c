"""Files that carry the blobs of a slot between the stages, written over from batch to batch.

New pages for what a batch hands over cost more than to fill them. So a task takes a file that an
earlier batch has done with, if there is one, and writes over it. A lock says who still needs a
file: the writer's is exclusive, a reader's lasts as long as anything that was read from the
mapping, and a file that somebody has locked is nobody's to take.
"""

import fcntl
import mmap
import os
import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from ingestd.ingest.rows.blobs import Blob, UnsentRows

SUFFIX = ".blobs"
SPARE = "spare"
"""The folder in a batch's folder with files of earlier batches."""
_LARGEST_REST = 2
"""A file that is so many times as long as what was written gives the rest back."""


@dataclass(slots=True)
class SlotFile:
    """A file that is being written: where each blob begins and how long it is."""

    path: str
    stream: BinaryIO
    places: list[tuple[int, int]] = field(default_factory=list)

    def append(self, blob: Blob) -> None:
        """Write a blob behind the others; raises OSError."""
        start = self.stream.tell()
        if isinstance(blob, UnsentRows):
            blob.write_to(self.stream)
        else:
            self.stream.write(blob)
        self.places.append((start, self.stream.tell() - start))

    def close(self) -> None:
        """Write what is left, and let readers have it; raises OSError."""
        with self.stream as stream:
            written = stream.tell()
            if os.fstat(stream.fileno()).st_size > _LARGEST_REST * written:
                stream.truncate()


def open_slot_file(folder: str) -> SlotFile:
    """A file of a batch's folder, with a name that no other attempt has; raises OSError."""
    path = Path(folder, f"{uuid.uuid4().hex}{SUFFIX}")
    stream = _taken(Path(folder, SPARE), path)
    return SlotFile(str(path), _new(path) if stream is None else stream)


def mapped_file(path: str) -> pa.Buffer:
    """What a file holds, mapped; nobody writes over it as long as any part is used.

    Where there are no locks it is read instead. Raises OSError for a file that is not there.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        except OSError:
            return pa.py_buffer(Path(path).read_bytes())
        # The mapping has a duplicate of the descriptor, which keeps the lock until it is gone.
        return pa.py_buffer(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ))
    finally:
        os.close(descriptor)


def _new(path: Path) -> BinaryIO:
    """A file of its own, locked: the attempt that writes it may outlive its batch."""
    stream = path.open("xb")
    with suppress(OSError):  # where there are no locks nobody takes files either
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return stream


def _taken(spare: Path, path: Path) -> BinaryIO | None:
    """A file that nobody needs any more, under its new name; None where there is none."""
    try:
        names = [name for name in os.listdir(spare) if name.endswith(SUFFIX)]  # noqa: PTH208
    except OSError:
        return None
    for name in names:
        # Whatever fails here, another task was quicker, or locks do not work: then it stays.
        with suppress(OSError):
            descriptor = os.open(spare / name, os.O_RDWR)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                (spare / name).rename(path)
            except OSError:
                os.close(descriptor)
                raise
            return os.fdopen(descriptor, "wb")
    return None
