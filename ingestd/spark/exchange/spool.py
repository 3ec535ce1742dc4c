"""Buffer the blobs of a write task: in memory up to a limit, and on disk beyond it.

Where the stages do not share a machine, blobs arrive through the shuffle, and their total size
depends on the input. Blobs beyond the limit are written to an unlinked temporary file and mapped.
"""

from collections.abc import Iterator
from typing import BinaryIO

from ingestd.errors import StorageError, storage_error
from ingestd.ingest.rows.blobs import Blob
from ingestd.spark.exchange.temporary_files import mapped, temporary_file

_ARROW_STREAM = b"\xff\xff\xff\xff"  # the first bytes of an Arrow stream


class Spool:
    """A buffer of blobs that holds at most `max_bytes` of row blobs in memory.

    Other row blobs are written to a file in the first of Spark's local directories. Methods raise
    StorageError if the file cannot be written or mapped.
    """

    def __init__(self, max_bytes: int) -> None:
        self._room = max_bytes
        self._held: list[bytes] = []
        self._spans: list[tuple[int, int]] = []
        self._file: BinaryIO | None = None

    def __bool__(self) -> bool:
        return bool(self._held or self._spans)

    def add(self, blob: bytes) -> None:
        """Add a blob. A blob without rows is small and always stays in memory."""
        if len(blob) <= self._room or not blob.startswith(_ARROW_STREAM):
            self._room -= len(blob)
            self._held.append(blob)
            return
        try:
            if self._file is None:
                self._file = temporary_file()
            self._spans.append((self._file.tell(), len(blob)))
            self._file.write(blob)
        except OSError as error:
            raise _spool_error(error) from error

    def blobs(self) -> Iterator[Blob]:
        """Yield all blobs, those in memory first; those on disk are slices of the mapped file."""
        yield from self._held
        if self._file is None:
            return
        try:
            buffer = mapped(self._file)
        except OSError as error:
            raise _spool_error(error) from error
        for start, size in self._spans:
            yield buffer.slice(start, size)


def _spool_error(error: OSError) -> StorageError:
    return storage_error(
        f"a write task cannot keep its blobs on disk ({error}); check that the folder of "
        "spark.local.dir is not full, or lower max-offsets-per-trigger",
        error,
    )
