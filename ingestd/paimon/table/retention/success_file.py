"""Success files: signals to other systems that a partition is done, or that a tag was created.

Specification: https://paimon.apache.org/docs/1.4/maintenance/manage-partitions/#partition-mark-done
"""

import json
from dataclasses import dataclass

from ingestd.errors import FormatError
from ingestd.paimon.io.file_io import FileIO

SUCCESS_FILE = "_SUCCESS"


@dataclass(frozen=True, slots=True)
class SuccessFile:
    """A success file; times are in milliseconds of the epoch.

    `created_ms` is the time when it was first written, `modified_ms` when it was last written.
    """

    path: str
    created_ms: int
    modified_ms: int

    def write(self, io: FileIO) -> None:
        """Write the file, or replace it. Raises StorageError if the storage fails."""
        times = {"creationTime": self.created_ms, "modificationTime": self.modified_ms}
        io.overwrite(self.path, json.dumps(times).encode())


def read_success_file(io: FileIO, path: str) -> SuccessFile | None:
    """Return the success file at a path; None if it does not exist.

    Raises FormatError if it is damaged.
    """
    if not io.exists(path):
        return None
    try:
        times = json.loads(io.read_bytes(path))
        return SuccessFile(path, int(times["creationTime"]), int(times["modificationTime"]))
    except (ValueError, TypeError, KeyError) as error:
        raise FormatError(
            f"{path} is not a success file: {error!r}; delete it, and it is written again"
        ) from error
