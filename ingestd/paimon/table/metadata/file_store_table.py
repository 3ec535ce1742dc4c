"""The handle of a table: its path, its schema, its FileIO, and what its catalog provides.

A handle does not contain the state of the table, so it can be pickled and sent to tasks. A process
that receives an equal handle again gets the same object, with the schemas that it has cached.
"""

import pickle
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, Protocol

from ingestd.paimon.io.file_io import FileIO
from ingestd.paimon.spec.binary_row import deserialize_row
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.merge_checks import rules_with_refusals
from ingestd.paimon.spec.merge_rules import MergeRules
from ingestd.paimon.spec.options import CoreOptions, core_options
from ingestd.paimon.spec.paths import MAIN_BRANCH, TablePaths
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.paimon.table.metadata.catalog_commit import SnapshotCommit
from ingestd.paimon.table.metadata.schema_manager import read_schema


class TableLock(Protocol):
    """A lock that excludes other writers while a snapshot of a table is published."""

    def held(self, branch: str) -> AbstractContextManager[None]:
        """Hold the lock of a branch for the duration of a block.

        Raises CommitConflictError if others hold it for too long, StorageError if the catalog does
        not respond.
        """
        ...


def held_on(lock: TableLock | None, branch: str = MAIN_BRANCH) -> AbstractContextManager[None]:
    """Hold the lock of a table's branch for the duration of a block.

    Without a lock (None), the block runs at once. Raises CommitConflictError if others hold the
    lock for too long, StorageError if the catalog does not respond.
    """
    return nullcontext() if lock is None else lock.held(branch)


class PartitionRegistry(Protocol):
    """Registers the partitions of a table in a catalog, which lists them for other engines.

    A partition is given by its values as text, in the order of the partition keys.
    """

    @property
    def is_new(self) -> bool:
        """Whether no partition is known to be listed, as in a new object.

        The next call of `update` must then report all partitions of the table.
        """
        ...

    def update(self, added: Iterable[tuple[str, ...]], removed: Iterable[tuple[str, ...]]) -> None:
        """Register partitions that a snapshot added, and remove partitions that it emptied.

        Raises StorageError if the catalog does not respond; the next call then makes this change
        as well.
        """
        ...

    def mark_done(self, done: Iterable[tuple[str, ...]]) -> None:
        """List a further partition for each done partition, with ".done" after its last value.

        Raises StorageError if the catalog does not respond.
        """
        ...


_KEPT_HANDLES = 1024


@dataclass(frozen=True)
class FileStoreTable:
    """A table with one of its schemas.

    `path` is the table directory; `name` is "database.table", for messages; `branch` is the branch
    of its snapshots. `snapshot_commit` publishes snapshots through a catalog (None: they are
    published as snapshot files), `lock` is held while a snapshot file is published (None: no lock),
    and `partitions` lists the partitions for other engines (None: they are not listed). These three
    are not pickled, because tasks only write files.
    """

    path: str
    schema: TableSchema
    io: FileIO
    name: str
    branch: str = MAIN_BRANCH
    snapshot_commit: SnapshotCommit | None = field(default=None, repr=False, compare=False)
    lock: TableLock | None = field(default=None, repr=False, compare=False)
    partitions: PartitionRegistry | None = field(default=None, repr=False, compare=False)
    _schemas: dict[int, TableSchema] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def warehouse(self) -> str:
        """The directory of the warehouse: the parent directory of the database's directory."""
        return self.path.rsplit("/", 2)[0]

    @cached_property
    def paths(self) -> TablePaths:
        """The paths of all files and directories of the table, on its branch."""
        return TablePaths(self.path, self.branch)

    @cached_property
    def options(self) -> CoreOptions:
        """The table options that readers and writers use, parsed and with defaults.

        Raises ConfigError for an invalid value.
        """
        return core_options(self.schema)

    @cached_property
    def merge_rules(self) -> MergeRules:
        """The rules for merging rows of one key. Raises ConfigError for an invalid option value."""
        return rules_with_refusals(self.schema, self.name)

    @cached_property
    def partition_types(self) -> tuple[DataType, ...]:
        """The types of the partition columns, in the order of the partition keys."""
        return self.schema.partition_types

    def partition_values(self, partition: bytes) -> tuple[object, ...]:
        """Return the values of a serialized partition, in the order of the partition keys."""
        return deserialize_row(self.partition_types, partition)

    def schemas(self, schema_id: int) -> TableSchema:
        """Return the schema with this id; its file is read at most once.

        Raises FormatError if its file is missing or damaged.
        """
        if schema_id == self.schema.id:
            return self.schema
        if schema_id not in self._schemas:
            self._schemas[schema_id] = read_schema(self.io, self.paths, schema_id)
        return self._schemas[schema_id]

    def __reduce__(self) -> tuple[Any, ...]:
        # The FileIO is a separate argument, so that a pickler can replace the secrets in it.
        return _received, (self._packed, self.io)

    @cached_property
    def _packed(self) -> bytes:
        return pickle.dumps((self.path, self.schema, self.name, self.branch))

    def with_schema(self, schema: TableSchema) -> "FileStoreTable":
        """Return a handle of the same table with another schema."""
        table = replace(self, schema=schema)
        table._schemas.update(self._schemas)
        table._schemas[self.schema.id] = self.schema
        return table

    def at_schema(self, schema_id: int) -> "FileStoreTable":
        """Return a handle of the same table with one of its schemas, such as that of a snapshot.

        Raises FormatError if the schema is missing or damaged.
        """
        return self.with_schema(self.schemas(schema_id))


@lru_cache(maxsize=_KEPT_HANDLES)
def _received(packed: bytes, io: FileIO) -> FileStoreTable:
    path, schema, name, branch = pickle.loads(packed)  # noqa: S301  (our own driver packed it)
    return FileStoreTable(path, schema, io, name, branch)
