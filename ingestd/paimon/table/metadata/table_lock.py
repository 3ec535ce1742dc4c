"""Locks of tables that catalogs provide, for stores where other writers rely on them."""

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from ingestd.paimon.spec.paths import MAIN_BRANCH


class TableLock(Protocol):
    """A lock that excludes other writers while a snapshot of a table is published."""

    def held(self, branch: str) -> AbstractContextManager[None]:
        """Hold the lock of a branch for the duration of a block.

        Raises CommitConflictError if others hold it for too long, StorageError if the catalog does
        not respond.
        """
        ...


def held_on_main(lock: TableLock | None) -> AbstractContextManager[None]:
    """Hold a lock of the main branch, if there is one; see `TableLock.held`."""
    return nullcontext() if lock is None else lock.held(MAIN_BRANCH)
