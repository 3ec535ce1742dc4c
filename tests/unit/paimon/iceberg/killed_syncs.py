"""Write the Iceberg metadata of copies of a table in processes that end at each of their writes.

The process of copy N ends at its write N, without any cleanup, `before` or `after` the write; the
last copy is written completely. A program: its arguments are the table, the directory of the
copies, and `before` or `after`.
"""

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ingestd.paimon.iceberg.iceberg_sync import sync_iceberg
from ingestd.paimon.io.file_io import FileIO, LocalFileIO
from tests.support.native_tables import open_native
from tests.support.watched_file_io import WatchedFileIO

KILLED = 9
_WRITES = frozenset({"write_new", "try_write_atomic", "overwrite", "delete_quietly"})


@dataclass
class _Dying(WatchedFileIO):
    """Ends the process at a write, which is counted from 1."""

    inner: FileIO
    at: int
    when: str
    writes: int = 0

    @contextlib.contextmanager
    def _call(self, operation: str, path: str) -> Iterator[None]:
        self.writes += operation in _WRITES
        due = operation in _WRITES and self.writes == self.at
        if due and self.when == "before":
            os._exit(KILLED)
        yield
        if due:
            os._exit(KILLED)


def main(warehouse: Path, copies: Path, when: str) -> None:
    """Write the copies until a process is not killed."""
    at = 0
    status = KILLED
    while status == KILLED:
        at += 1
        copy = copies / f"{at:03}"
        shutil.copytree(warehouse, copy)
        child = os.fork()
        if child == 0:
            table = open_native(copy)
            sync_iceberg(replace(table, io=_Dying(LocalFileIO(sync=False), at, when)))
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status == 0, status


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
