"""Whether a store keeps two writers apart, found out instead of believed."""

import uuid

from ingestd.errors import StorageError
from ingestd.paimon.io.file_io import FileIO


def prove_exclusive(io: FileIO, directory: str) -> None:
    """Publish a file twice: the second time must be refused, as every commit relies on it.

    Raises StorageError if it is not, or if the directory cannot be written to.
    """
    probe = f"{directory}/.ingestd-probe-{uuid.uuid4()}"
    try:
        if not io.try_write_atomic(probe, b"1") or io.try_write_atomic(probe, b"2"):
            raise StorageError(
                f"{directory} does not keep two writers apart: its store ignores the condition of "
                "a put (If-None-Match), so commits could replace each other; use another store"
            )
    finally:
        io.delete_quietly(probe)
