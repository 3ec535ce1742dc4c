"""Pass blobs from stage 1 to stage 2 through local files, so that the JVM moves only file names.

Bytes that pass through the JVM are copied about six times and compressed on the way. Where both
stages run on this machine, a task of stage 1 appends its blobs to one file per slot in a folder of
the batch, and stage 2 maps the file. A file belongs to one attempt of a task: files of a failed
attempt are referenced by no blob.
"""

import json
import uuid
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from ingestd.errors import StorageError, storage_error
from ingestd.ingest.rows.blobs import Blob, UnsentRows, as_bytes

_MARK = b"ingestd-file\0"
_MIN_BLOB_BYTES = 16 << 10  # a smaller blob is as cheap to move as the name of its file


def write_blobs(
    pairs: Iterable[tuple[int, Blob]], folder: str | None
) -> Iterator[tuple[int, bytes]]:
    """Write large blobs of rows to files; yield (slot, bytes) pairs for the shuffle.

    `pairs` are (slot, blob); a slot is the number of the write task that gets the blob. The bytes
    are a small blob itself, or a reference to the blobs of a slot in a file. If `folder` is None,
    every blob passes through the shuffle. Raises StorageError if a file cannot be written.
    """
    if folder is None:
        for slot, blob in pairs:
            yield slot, as_bytes(blob)
        return
    files: dict[int, SlotFile] = {}
    with ExitStack() as stack:
        for slot, blob in pairs:
            if isinstance(blob, bytes) or len(blob) < _MIN_BLOB_BYTES:  # reports are always bytes
                yield slot, as_bytes(blob)
                continue
            try:
                if slot not in files:
                    files[slot] = open_slot_file(folder)
                    stack.callback(files[slot].stream.close)
                files[slot].append(blob)
            except OSError as error:
                raise exchange_error(folder, error) from error
        _close(files.values(), folder)
    for slot, file in files.items():
        yield slot, _MARK + json.dumps([file.path, file.spans]).encode()


def read_blobs(blobs: Iterable[Blob]) -> Iterator[Blob]:
    """Yield the blobs that were passed to `write_blobs`; those in files are slices of mapped files.

    Raises StorageError for a file that cannot be opened or mapped.
    """
    for blob in blobs:
        if not (isinstance(blob, bytes) and blob.startswith(_MARK)):
            yield blob
            continue
        path, spans = json.loads(blob[len(_MARK) :])
        try:
            with pa.memory_map(path) as file:
                mapped = file.read_buffer()
        except OSError as error:
            raise exchange_error(path, error) from error
        for start, size in spans:
            yield mapped.slice(start, size)


@dataclass(slots=True)
class SlotFile:
    """A file to which a task of stage 1 appends the blobs of one slot.

    A slot is the share of the buckets that one task of stage 2 writes. `spans` are the (start,
    size) of the blobs, in bytes.
    """

    path: str
    stream: BinaryIO
    spans: list[tuple[int, int]] = field(default_factory=list)

    def append(self, blob: Blob) -> None:
        """Append a blob to the file, and record its span. Raises OSError if the write fails."""
        start = self.stream.tell()
        if isinstance(blob, UnsentRows):
            blob.write_to(self.stream)
        else:
            self.stream.write(blob)
        self.spans.append((start, self.stream.tell() - start))


def open_slot_file(folder: str) -> SlotFile:
    """Create a file with a unique name in `folder`, open for writing.

    Raises OSError if it cannot be created.
    """
    path = Path(folder, uuid.uuid4().hex)
    return SlotFile(str(path), path.open("xb"))


def _close(files: Iterable[SlotFile], folder: str) -> None:
    try:
        for file in files:
            file.stream.close()
    except OSError as error:
        raise exchange_error(folder, error) from error


def exchange_error(path: str, error: OSError) -> StorageError:
    """Return the error for a folder or file that the stages cannot use."""
    return storage_error(
        f"{path}: the stages of a batch cannot exchange files here ({error}); check that "
        "spark.local.dir is not full and was not cleaned, or set it to another folder",
        error,
    )
