"""The distributed lock of JDBC catalogs: a row of the table `paimon_distributed_locks`.

A row that is older than its `expire_time_seconds` is left over from a process that ended, and is
deleted by the next process that wants the lock.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ingestd.errors import CommitConflictError
from ingestd.paimon.catalog.base import Identifier
from ingestd.paimon.catalog.jdbc_database import Database
from ingestd.paimon.catalog.lock_settings import LOCK_TIMEOUT, LockSettings, release_lock
from ingestd.paimon.spec.paths import MAIN_BRANCH

_LOCKS = "paimon_distributed_locks"


@dataclass(frozen=True)
class JdbcLock:
    """The locks of the branches of one table in the database of a JDBC catalog.

    `catalog_key` is the key of the catalog in the database, `settings` limit the wait for a lock,
    and `sleep` takes seconds.
    """

    database: Database
    catalog_key: str
    identifier: Identifier
    settings: LockSettings
    sleep: Callable[[float], None] = time.sleep

    @contextmanager
    def held(self, branch: str) -> Iterator[None]:
        """Hold the lock of a branch for the duration of the block.

        Raises CommitConflictError if other writers hold it for longer than the timeout,
        StorageError if the database does not respond.
        """
        suffix = "" if branch == MAIN_BRANCH else f"$branch_{branch}"
        lock_id = f"{self.catalog_key}.{self.identifier}{suffix}"
        acquired_at = self._acquire(lock_id)
        try:
            yield
        finally:
            release_lock(lambda: self._release(lock_id, acquired_at), lock_id, self.sleep)

    def _acquire(self, lock_id: str) -> object:
        """Acquire the lock; return the time of its acquisition as the driver represents it."""
        for waited in self.settings.attempts(self.sleep):  # noqa: B007  (read after the loop)
            acquired_at = self._try(lock_id)
            if acquired_at is not None:
                return acquired_at
        raise CommitConflictError(
            f"table {self.identifier}: other writers have held the lock '{lock_id}' of catalog "
            f"{self.database.address} for {waited / 1000:g} s; nothing of this change is visible; "
            f"end a writer that does not respond, or raise '{LOCK_TIMEOUT}'"
        )

    def _release(self, lock_id: str, acquired_at: object) -> None:
        """Delete the row, unless the lock has expired and another process has acquired it."""
        sql = f"DELETE FROM {_LOCKS} WHERE lock_id = ? AND acquired_at = ?"
        with self.database.transaction() as session:
            session.execute(sql, [lock_id, acquired_at])

    def _try(self, lock_id: str) -> object | None:
        with self.database.transaction() as session:
            expired = f"{self.database.lock_age} > expire_time_seconds AND lock_id = ?"
            session.execute(f"DELETE FROM {_LOCKS} WHERE {expired}", [lock_id])
            seconds = self.settings.acquire_timeout_ms // 1000
            row = {"lock_id": lock_id, "expire_time_seconds": seconds}
            if not session.insert_new(_LOCKS, row):
                return None
            sql = f"SELECT acquired_at FROM {_LOCKS} WHERE lock_id = ?"
            acquired_at: object = session.query(sql, [lock_id])[0][0]
            return acquired_at
