"""The lock of Hive catalogs: an exclusive lock in the metastore, for each branch of a table.

The metastore deletes the locks of processes that have ended, after its `hive.txn.timeout`. The
numbers are the values and field ids in `hive_metastore.thrift`.
"""

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from ingestd.errors import CommitConflictError
from ingestd.paimon.catalog.base import Identifier
from ingestd.paimon.catalog.hive_client import Metastore, MetastoreSession
from ingestd.paimon.catalog.lock_settings import LOCK_TIMEOUT, LockSettings, release_lock
from ingestd.paimon.catalog.thrift import Struct, Value, i32, i64, structure, structures, text
from ingestd.paimon.spec.paths import MAIN_BRANCH

_EXCLUSIVE = 3
_TABLE_LEVEL = 2
_ACQUIRED, _WAITING = 1, 2


class _Component:
    TYPE = 1
    LEVEL = 2
    DATABASE = 3
    TABLE = 4


class _Request:
    COMPONENTS = 1
    USER = 3
    HOST = 4


class _Response:
    LOCK_ID = 1
    STATE = 2


@dataclass(frozen=True)
class HiveLock:
    """The locks of the branches of one table in a Hive Metastore; `sleep` takes seconds.

    `settings` limit the wait for a lock.
    """

    metastore: Metastore
    identifier: Identifier
    settings: LockSettings
    sleep: Callable[[float], None] = time.sleep

    @contextmanager
    def held(self, branch: str) -> Iterator[None]:
        """Hold the lock of a branch for the duration of the block.

        Raises CommitConflictError if other writers hold it for longer than the timeout,
        StorageError if the metastore does not respond.
        """
        suffix = "" if branch == MAIN_BRANCH else f"$branch_{branch}"
        name = f"{self.identifier.table}{suffix}"
        lock_id = self._acquire(name)
        try:
            yield
        finally:
            self._release(lock_id, name)

    def _acquire(self, table: str) -> int:
        with self.metastore.session() as session:
            lock = session.call("lock", self._request(table))
            lock_id: int = lock[_Response.LOCK_ID].content
            try:
                self._wait(session, lock)
            except BaseException:
                self._release(lock_id, table)  # in another session: this one may have ended
                raise
        return lock_id

    def _release(self, lock_id: int, table: str) -> None:
        request = _lock_request(lock_id)
        release_lock(lambda: self.metastore.call("unlock", request), table, self.sleep)

    def _wait(self, session: MetastoreSession, lock: Struct) -> None:
        request = _lock_request(lock[_Response.LOCK_ID].content)
        for waited in self.settings.attempts(self.sleep):
            response = session.call("check_lock", request) if waited else lock
            state: int = response[_Response.STATE].content
            if state != _WAITING:
                break
        if state != _ACQUIRED:
            raise CommitConflictError(
                f"table {self.identifier}: other writers have held its lock in metastore "
                f"{self.metastore} for {waited / 1000:g} s; nothing of this change is visible; end "
                f"a writer that does not respond, or raise '{LOCK_TIMEOUT}'"
            )

    def _request(self, table: str) -> Value:
        component = {
            _Component.TYPE: i32(_EXCLUSIVE),
            _Component.LEVEL: i32(_TABLE_LEVEL),
            _Component.DATABASE: text(self.identifier.database),
            _Component.TABLE: text(table),
        }
        request = {
            _Request.COMPONENTS: structures(component),
            _Request.USER: text(self.metastore.user),
            _Request.HOST: text(socket.gethostname()),
        }
        return structure(request)


def _lock_request(lock_id: int) -> Value:
    return structure({_Response.LOCK_ID: i64(lock_id)})
