"""Registries in which catalogs list the partitions of a table for other engines."""

from collections.abc import Iterable
from typing import Protocol


class PartitionRegistry(Protocol):
    """The partitions of a table as a catalog lists them.

    A partition is given by its values as text, in the order of the partition keys.
    """

    @property
    def is_new(self) -> bool:
        """Whether this process has not listed any partition yet."""
        ...

    def update(self, added: Iterable[tuple[str, ...]], removed: Iterable[tuple[str, ...]]) -> None:
        """List partitions that a snapshot added, and no longer those that it emptied.

        Raises StorageError if the catalog does not respond: the change is then made with the next.
        """
        ...
