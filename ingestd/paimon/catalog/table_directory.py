"""The directory of a table: create, open, alter and delete its files.

A directory contains a table if and only if it has a schema file. Schema files are created
atomically like snapshots, so that one of several concurrent processes succeeds.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from ingestd.errors import (
    CommitConflictError,
    ConfigError,
    FormatError,
    StorageError,
    UnsupportedError,
)
from ingestd.paimon.io.file_io import FileIO
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.paths import MAIN_BRANCH, TablePaths
from ingestd.paimon.spec.schema_apply import apply_changes
from ingestd.paimon.spec.schema_change import SchemaChange
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.schema_manager import latest_schema, publish_schema, schema_ids
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot_id, snapshot_ids

_ALTER_TRIES = 20


def _nothing(_schema: TableSchema) -> None:
    pass


@dataclass(frozen=True)
class TableDirectory:
    """The directory of a table; `name` is "database.table", for messages.

    All methods but `delete_table` use the schemas and snapshots of `branch`.
    """

    path: str
    io: FileIO
    name: str
    branch: str = MAIN_BRANCH

    def has_table(self) -> bool:
        """Return whether the directory contains a table."""
        return bool(schema_ids(self.io, self._paths))

    def open_table(self) -> FileStoreTable | None:
        """Return the table with its newest schema, or None if the directory contains no table.

        Raises FormatError if the schema is damaged, or if there are snapshots but no schema;
        StorageError if the schema exists, but is missing from a listing.
        """
        schema = latest_schema(self.io, self._paths)
        if schema is None and snapshot_ids(self.io, self._paths):
            self._refuse_missing_schema()
        return None if schema is None else self._table(schema)

    def create_table(self, schema: TableSchema) -> FileStoreTable | None:
        """Create a table and return it, or return None if the directory contains a table already.

        The result is also None if another process creates a table there first. Raises ConfigError
        if the directory contains snapshots of an older table, SchemaConflictError for a default
        value that is invalid for its column.
        """
        if self.has_table():
            return None
        if snapshot_ids(self.io, self._paths):
            raise ConfigError(
                f"table '{self.name}' has no schema but {self.path}/snapshot holds snapshots of an "
                "older table; move that directory away first"
            )
        return self._table(schema) if self._publish(schema) else None

    def alter_table(
        self,
        table: FileStoreTable,
        changes: Sequence[SchemaChange],
        now_ms: int,
        *,
        before: Callable[[TableSchema], None] = _nothing,
    ) -> FileStoreTable:
        """Publish one new schema with the changes, on top of concurrent changes; return the table.

        `table` is the table as it was opened, `now_ms` the time of the new schema in milliseconds
        since 1970. `before` is called with each schema that this process attempts to publish, and
        may refuse it by an error. Raises SchemaConflictError if the table does not allow the
        changes, ConfigError or UnsupportedError for an option that is invalid or not supported,
        CommitConflictError if other processes published a schema first in every attempt.
        """
        for _ in range(_ALTER_TRIES):
            newest = latest_snapshot_id(self.io, self._paths)
            schema = apply_changes(table.schema, changes, now_ms, has_snapshots=newest is not None)
            before(schema)
            if self._publish(schema):
                return table.with_schema(schema)
            table = self.open_table() or self._refuse_missing_schema()
        raise CommitConflictError(
            f"table '{self.name}': others published a schema first, {_ALTER_TRIES} times in a row"
        )

    def delete_table(self, table: FileStoreTable) -> None:
        """Delete the directory with all files of `table`, the table in it.

        Snapshots are deleted first and schemas last, so that an interrupted deletion can be
        repeated, and old snapshots never appear in a new table of the same name. Raises
        UnsupportedError if the table has files outside its directory.
        """
        if honoured.EXTERNAL_PATHS.of(table.schema.options):
            raise UnsupportedError(
                f"table '{self.name}' has files elsewhere (option "
                f"'{honoured.EXTERNAL_PATHS.name}'), which would stay behind; empty it "
                "(`ingestd truncate`, then `ingestd expire snapshots` to one snapshot), remove the "
                "option, and drop it again"
            )
        names = self.io.list_names(self.path)
        for name in sorted(names, key=lambda name: (name != "snapshot", name == "schema")):
            self.io.delete_tree(f"{self.path}/{name}")
        self.io.delete_tree(self.path)

    @property
    def _paths(self) -> TablePaths:
        return TablePaths(self.path, self.branch)

    def _table(self, schema: TableSchema) -> FileStoreTable:
        return FileStoreTable(self.path, schema, self.io, self.name, self.branch)

    def _publish(self, schema: TableSchema) -> bool:
        """Publish a schema; return False if its id is in use.

        After a StorageError, the newest stored schema shows whether this schema was published.
        """
        try:
            return publish_schema(self.io, self._paths, schema)
        except StorageError:
            if latest_schema(self.io, self._paths) == schema:
                return True
            raise

    def _refuse_missing_schema(self) -> NoReturn:
        first = self._paths.schema(0)
        if self.io.exists(first):
            raise StorageError(
                f"the listing of {self._paths.schema_dir} lacks {first}, which exists"
            )
        raise FormatError(
            f"table {self.name} has snapshots, but {first} is missing: the table is damaged"
        )
