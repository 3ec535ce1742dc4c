"""Pass blobs from stage 1 to stage 2 through files, so that the JVM moves only references to files.

Bytes that pass through the JVM are copied about six times and compressed on the way. So a task of
stage 1 appends its blobs to one file per slot in a folder of the batch, and stage 2 maps the file,
or fetches it from the executor that has it. A file belongs to one attempt of a task: files of a
failed attempt are referenced by no blob.
"""

import json
import os
import platform
import secrets
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from ingestd.errors import storage_error
from ingestd.ingest.rows.blobs import Blob, UnsentRows, as_bytes
from ingestd.spark.exchange.executor_files import fetch_file, own_address
from ingestd.spark.exchange.temporary_files import exchange_error

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
        yield slot, _MARK + json.dumps([own_address(), file.path, file.spans]).encode()


def read_blobs(blobs: Iterable[Blob]) -> Iterator[Blob]:
    """Yield the blobs that were passed to `write_blobs`; those in files are slices of mapped files.

    Raises StorageError for a file that cannot be opened, fetched or mapped.
    """
    for blob in blobs:
        if not (isinstance(blob, bytes) and blob.startswith(_MARK)):
            yield blob
            continue
        address, path, spans = json.loads(blob[len(_MARK) :])
        content = (
            _mapped(path) if not address or os.access(path, os.R_OK) else _fetched(address, path)
        )
        for start, size in spans:
            yield content.slice(start, size)


def _mapped(path: str) -> pa.Buffer:
    try:
        with pa.memory_map(path) as file:
            return file.read_buffer()
    except OSError as error:
        raise exchange_error(path, error) from error


def _fetched(address: str, path: str) -> pa.Buffer:
    try:
        return fetch_file(address, path)
    except OSError as error:
        raise storage_error(
            f"{address}: the executor on {platform.node()} cannot fetch a file of the batch there "
            f"({error}); tasks of a lost executor run again elsewhere; if this recurs, check that "
            "spark.local.dir is not full and that executors reach each other at this port, which "
            "spark.executorEnv.INGESTD_EXCHANGE_PORT sets; if that is '', rows pass through Spark",
            error,
        ) from error


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
    path = Path(folder, secrets.token_hex(16))  # the name is the right to fetch it
    return SlotFile(str(path), path.open("xb"))


def _close(files: Iterable[SlotFile], folder: str) -> None:
    try:
        for file in files:
            file.stream.close()
    except OSError as error:
        raise exchange_error(folder, error) from error
