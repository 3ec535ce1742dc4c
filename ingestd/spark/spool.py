"""Blobs that wait in a write task until all have come: in memory, and beyond a bound on disk.

Where the stages share no machine, blobs come through the shuffle itself, and how many of them a
task gets is up to the input. So only so many bytes stay in memory; the others go to a file that
has no name any more when it is read, and are mapped.
"""

import os
import tempfile
from collections.abc import Iterator
from typing import BinaryIO, cast

import pyarrow as pa

from ingestd.errors import StorageError, storage_error
from ingestd.ingest.rows.blobs import Blob

_ROWS = b"\xff\xff\xff\xff"  # how an Arrow stream begins


class Spool:
    """Takes blobs and gives them back; holds at most `max_bytes` of them in memory.

    The file lies in the first of Spark's local directories. StorageError if it cannot be used.
    """

    def __init__(self, max_bytes: int) -> None:
        self._room = max_bytes
        self._held: list[bytes] = []
        self._places: list[tuple[int, int]] = []
        self._file: BinaryIO | None = None

    def __bool__(self) -> bool:
        return bool(self._held or self._places)

    def add(self, blob: bytes) -> None:
        """Keep a blob; one that is no rows stays in memory in any case, being small."""
        if len(blob) <= self._room or not blob.startswith(_ROWS):
            self._room -= len(blob)
            self._held.append(blob)
            return
        try:
            if self._file is None:
                folder = os.environ.get("SPARK_LOCAL_DIRS", tempfile.gettempdir()).split(",")[0]
                file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  (open as long as this)
                self._file = cast("BinaryIO", file)
            self._places.append((self._file.tell(), len(blob)))
            self._file.write(blob)
        except OSError as error:
            raise _unusable(error) from error

    def blobs(self) -> Iterator[Blob]:
        """All of them; those on disk are mapped, so memory can give them up when it is scarce."""
        yield from self._held
        if self._file is None:
            return
        try:
            self._file.flush()
            with pa.memory_map(f"/proc/self/fd/{self._file.fileno()}") as mapped:
                whole = mapped.read_buffer()
        except OSError as error:
            raise _unusable(error) from error
        for start, size in self._places:
            yield whole.slice(start, size)


def _unusable(error: OSError) -> StorageError:
    return storage_error(
        f"a write task cannot keep its blobs on disk ({error}): is the folder of spark.local.dir "
        "full? A smaller max-offsets-per-trigger needs less of it",
        error,
    )
