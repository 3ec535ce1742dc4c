"""Write the Iceberg metadata of tables in background threads.

Commits do not wait for the metadata. After several quick commits to a table, it is written once,
for the newest snapshot. A process that ends waits until all requested metadata is written.
"""

import logging
import os
import threading
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from ingestd.paimon.iceberg.iceberg_sync import update_iceberg
from ingestd.paimon.spec.iceberg_rules import iceberg_settings
from ingestd.paimon.table.commit.table_commit import CommitResult
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable

_LOG = logging.getLogger(__name__)
_THREADS = 4
_MOST_DELTAS = 10
"""Maximum number of snapshots whose entries are kept until a thread takes them."""


class IcebergThreads:
    """The background writer of Iceberg metadata; at most one thread works on a table at a time."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget all requests and threads: a forked process has none of the threads."""
        self._pool = ThreadPoolExecutor(_THREADS, "iceberg")
        self._lock = threading.Lock()
        self._done = threading.Condition(self._lock)
        self._waiting: dict[str, tuple[FileStoreTable, CommitResult]] = {}
        self._busy: set[str] = set()
        self._failed: Counter[str] = Counter()
        self._closed = False

    def submit(self, name: str, table: FileStoreTable, committed: CommitResult) -> None:
        """Request Iceberg metadata for a commit to a table, if its options enable it.

        Does not wait until the metadata is written. `name` identifies the table, `committed` is the
        result of the commit. Raises ConfigError for an invalid option value.
        """
        if iceberg_settings(table.schema.options) is None:
            return
        with self._lock:
            waiting = self._waiting.get(name)
            self._waiting[name] = (table, _joined(waiting, committed))
            starts = name not in self._busy and not self._closed
            if starts:
                self._busy.add(name)
        if starts:
            try:
                work = self._pool.submit(self._work, name)
                work.add_done_callback(partial(self._ended, name))
            except RuntimeError:  # the interpreter is ending, and starts no thread
                self._work(name)

    def wait(self, name: str) -> None:
        """Wait until the metadata that was requested for a table is written."""
        with self._done:
            self._done.wait_for(lambda: name not in self._busy)

    def take_failures(self) -> list[str]:
        """Return the name of the table of each failed update of metadata since the last call."""
        with self._lock:
            failed, self._failed = self._failed, Counter()
        return list(failed.elements())

    def close(self) -> None:
        """Wait until all requested metadata is written; later requests are ignored."""
        with self._lock:
            self._closed = True
        self._pool.shutdown()

    def _work(self, name: str) -> None:
        while (request := self._next(name)) is not None:
            table, committed = request
            if not update_iceberg(table, committed=committed):
                with self._lock:
                    self._failed[name] += 1

    def _ended(self, name: str, work: Future[None]) -> None:
        """Release a table after an unexpected error, so that no caller waits for ever."""
        error = work.exception()
        if error is None:
            return
        _LOG.error("iceberg_metadata_failed", extra={"ctx": {"table": name}}, exc_info=error)
        with self._done:
            self._failed[name] += 1
            self._busy.discard(name)
            self._done.notify_all()

    def _next(self, name: str) -> tuple[FileStoreTable, CommitResult] | None:
        with self._done:
            if name not in self._waiting:
                self._busy.discard(name)
                self._done.notify_all()
            return self._waiting.pop(name, None)


def _joined(
    waiting: tuple[FileStoreTable, CommitResult] | None, committed: CommitResult
) -> CommitResult:
    """Return a commit with the entries of an earlier one as well, unless these are too many."""
    if waiting is None:
        return committed
    deltas = {**waiting[1].deltas, **committed.deltas}
    return replace(committed, deltas=dict([*deltas.items()][-_MOST_DELTAS:]))


PROCESS_THREADS = IcebergThreads()
"""The background writer of all tables that this process writes with the library, by their path."""
os.register_at_fork(after_in_child=PROCESS_THREADS.reset)
