"""Blobs between the stages of a local session: in files, so that the JVM moves only their names.

Bytes that pass through the JVM are copied some six times and compressed on the way. Where both
stages run on this machine, a task of stage 1 appends its blobs to one file for each slot instead,
in a folder that the batch has for itself, and stage 2 maps the file. A file belongs to one
attempt of a task: what a failed attempt left is named by nobody.
"""

import json
import uuid
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa

from ingestd.ingest.rows.blobs import Blob, Encoded, as_bytes
from ingestd.spark.blob_files import SlotFile, mapped_file, open_slot_file
from ingestd.spark.shared_folder import unusable

_MARK = b"ingestd-file\0"
_SMALLEST = 16 << 10  # below it a blob is as cheap as the name of its file


def leave(pairs: Iterable[tuple[int, Blob]], folder: str | None) -> Iterator[tuple[int, bytes]]:
    """The pairs as they go through the shuffle: large blobs of rows as references into files.

    Without a folder every blob goes through the shuffle itself. StorageError when the folder
    cannot be written.
    """
    if folder is None:
        for slot, blob in pairs:
            yield slot, as_bytes(blob)
        return
    files: dict[int, SlotFile] = {}
    with ExitStack() as stack:
        for slot, blob in pairs:
            if isinstance(blob, bytes) or len(blob) < _SMALLEST:  # what is no rows stays bytes
                yield slot, as_bytes(blob)
                continue
            try:
                if slot not in files:
                    files[slot] = open_slot_file(folder)
                    stack.callback(files[slot].stream.close)
                files[slot].append(blob)
            except OSError as error:
                raise unusable(folder, error) from error
        _close(files.values(), folder)
    for slot, file in files.items():
        yield slot, _MARK + json.dumps([file.path, file.places]).encode()


def _close(files: Iterable[SlotFile], folder: str) -> None:
    try:
        for file in files:
            file.close()
    except OSError as error:
        raise unusable(folder, error) from error


class FolderBlobStore:
    """A shelf (`ingest.rows.chunk_cache`) in a shared folder: a file for each blob."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def put(self, blob: Encoded) -> str | None:
        """Write the blob; None if it cannot be written, for nobody depends on it."""
        path = Path(self._folder, uuid.uuid4().hex)
        try:
            with path.open("xb") as stream:
                stream.write(blob)
        except OSError:
            path.unlink(missing_ok=True)
            return None
        return str(path)

    def get(self, name: str) -> Encoded | None:
        """The blob, mapped; None if its file is not here."""
        try:
            with pa.memory_map(name) as file:
                return file.read_buffer()
        except OSError:
            return None


def collect(blobs: Iterable[Blob]) -> Iterator[Blob]:
    """The blobs that were left, wherever they are; those of files are mapped, not read.

    StorageError for a file that is gone.
    """
    for blob in blobs:
        if not (isinstance(blob, bytes) and blob.startswith(_MARK)):
            yield blob
            continue
        path, places = json.loads(blob[len(_MARK) :])
        try:
            whole = mapped_file(path)
        except OSError as error:
            raise unusable(path, error) from error
        for start, size in places:
            yield whole.slice(start, size)
