"""Locks of tables that catalogs provide, for stores where other writers rely on them."""

from contextlib import AbstractContextManager
from typing import Protocol


class TableLock(Protocol):
    """A lock that excludes other writers while a snapshot of a table is published."""

    def held(self, branch: str) -> AbstractContextManager[None]:
        """Hold the lock of a branch for the duration of a block.

        Raises CommitConflictError if others hold it for too long, StorageError if the catalog does
        not respond.
        """
        ...
