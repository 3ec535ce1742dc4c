"""Write the Iceberg metadata of a pipeline's tables in background threads.

Commits do not wait for the metadata. After several quick commits to a table, it is written once,
for the newest snapshot.
"""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from ingestd.paimon.iceberg.iceberg_sync import update_iceberg
from ingestd.paimon.spec.iceberg_rules import iceberg_settings
from ingestd.paimon.table.commit.table_commit import CommitResult
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable

_THREADS = 4
_MOST_DELTAS = 10
"""Maximum number of snapshots whose entries are kept until a thread takes them."""


class IcebergThreads:
    """The background writer of Iceberg metadata; at most one thread works on a table at a time."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(_THREADS, "iceberg")
        self._lock = threading.Lock()
        self._waiting: dict[str, tuple[FileStoreTable, CommitResult]] = {}
        self._busy: set[str] = set()
        self._failed: list[str] = []
        self._closed = False

    def submit(self, name: str, table: FileStoreTable, committed: CommitResult) -> None:
        """Request Iceberg metadata for a commit to a table, if its options enable it.

        Does not wait until the metadata is written. `name` is the identifier of the table.
        """
        if iceberg_settings(table.schema.options) is None:
            return
        with self._lock:
            waiting = self._waiting.get(name)
            self._waiting[name] = (table, _joined(waiting, committed))
            if name not in self._busy and not self._closed:
                self._busy.add(name)
                self._pool.submit(self._work, name)

    def take_failures(self) -> list[str]:
        """Return the tables for which writing metadata has failed since the last call."""
        with self._lock:
            failed, self._failed = self._failed, []
        return failed

    def close(self) -> None:
        """Wait until all requested metadata is written; later requests start no thread."""
        with self._lock:
            self._closed = True
        self._pool.shutdown()

    def _work(self, name: str) -> None:
        while (request := self._next(name)) is not None:
            table, committed = request
            if not update_iceberg(table, committed=committed):
                with self._lock:
                    self._failed.append(name)

    def _next(self, name: str) -> tuple[FileStoreTable, CommitResult] | None:
        with self._lock:
            if name not in self._waiting:
                self._busy.discard(name)
            return self._waiting.pop(name, None)


def _joined(
    waiting: tuple[FileStoreTable, CommitResult] | None, committed: CommitResult
) -> CommitResult:
    """Return a commit with the entries of an earlier one as well, unless these are too many."""
    if waiting is None:
        return committed
    deltas = {**waiting[1].deltas, **committed.deltas}
    return replace(committed, deltas=dict([*deltas.items()][-_MOST_DELTAS:]))
