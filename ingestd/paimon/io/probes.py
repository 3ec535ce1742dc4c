"""Probes of a store: existence of a file, exclusive creation, and the clock of the store."""

import uuid

from ingestd.errors import StorageError
from ingestd.paimon.io.file_io import FileIO


def has_file(io: FileIO, path: str) -> bool:
    """Return whether a file exists, with one request.

    `FileIO.exists` also finds directories, so in an object store it needs a listing if the file
    does not exist. Raises StorageError if the store does not answer the request.
    """
    try:
        io.size(path)
    except FileNotFoundError:
        return False
    return True


def prove_exclusive(io: FileIO, directory: str) -> None:
    """Check that the store refuses to publish a file twice, which every commit relies on.

    Writes a file to the directory and deletes it. Raises StorageError if the store publishes the
    file twice, or if the directory cannot be written to.
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


def store_now_ms(io: FileIO, directory: str) -> int:
    """Return the store's current time, in milliseconds since the epoch.

    The age of files is measured by this clock, because the clock of this machine may differ by
    hours. Writes an empty file to the directory, reads its modification time and deletes it. Raises
    StorageError if the directory cannot be written to, or does not list the file.
    """
    name = f".clock-{uuid.uuid4()}.tmp"
    path = f"{directory}/{name}"
    try:
        io.write_new(path, b"")
        for entry in io.list_entries(directory):
            if entry.name == name:
                return entry.modified_ms
    finally:
        io.delete_quietly(path)
    raise StorageError(
        f"{directory} does not list a file that was just written there, so the age of its files "
        "cannot be known; nothing is deleted, try again"
    )
