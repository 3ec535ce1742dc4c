"""The time of a store: what it stamps on files, and so what the age of its files is measured by.

The clock of this machine may be hours away from it, and may jump.
"""

import uuid

from ingestd.errors import StorageError
from ingestd.paimon.io.file_io import FileIO


def store_now_ms(io: FileIO, directory: str) -> int:
    """Return the store's current time, in milliseconds of the epoch.

    Writes an empty file to the directory, reads its modification time and deletes it. Raises
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
