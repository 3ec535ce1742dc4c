"""A catalog that also opens branches: `orders$branch_fix` is `orders` on the branch `fix`.

Specification: https://paimon.apache.org/docs/1.4/maintenance/manage-branches/#manage-branches

Pipelines write branches through it. Only the schema files of a branch are changed, as in Java: a
metastore has copies of the schema of the main branch only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ingestd.errors import UnsupportedError
from ingestd.paimon.catalog.base import (
    Catalog,
    Identifier,
    TableExistsError,
    TableNotFoundError,
    refuse_branch,
)
from ingestd.paimon.catalog.table_directory import TableDirectory
from ingestd.paimon.spec.schema_change import SchemaChange
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable, held_on
from ingestd.paimon.table.metadata.time_travel import on_branch


@dataclass(frozen=True)
class BranchCatalog:
    """The catalog `base`, with branches of its tables; it does not create or delete branches."""

    base: Catalog

    def list_databases(self) -> list[str]:
        """Return the names of all databases, sorted."""
        return self.base.list_databases()

    def create_database(self, name: str, properties: Mapping[str, str] | None = None) -> None:
        """Create a database if it does not exist; an existing database keeps its properties.

        Raises ConfigError for a name or a property that the catalog does not allow.
        """
        self.base.create_database(name, properties)

    def database_properties(self, name: str) -> Mapping[str, str]:
        """Return the properties of a database.

        Raises TableNotFoundError if the database does not exist.
        """
        return self.base.database_properties(name)

    def drop_database(self, name: str, *, cascade: bool = False) -> None:
        """Delete a database, and with `cascade` its tables.

        Raises TableNotFoundError if the database does not exist, DatabaseNotEmptyError if it has
        tables and `cascade` is false, and the errors of `base`.
        """
        self.base.drop_database(name, cascade=cascade)

    def list_tables(self, database: str) -> list[str]:
        """Return the names of the tables of a database, sorted, without branches.

        Raises TableNotFoundError if the database does not exist.
        """
        return self.base.list_tables(database)

    def table_exists(self, identifier: Identifier) -> bool:
        """Return whether the table exists, and the branch if the identifier names one."""
        if not self.base.table_exists(identifier.main):
            return False
        if identifier.branch is None:
            return True
        return _directory(self.base.get_table(identifier.main), identifier.branch).has_table()

    def get_table(self, identifier: Identifier) -> FileStoreTable:
        """Return the table with its newest schema, on its main branch or the named one.

        Partitions of a branch are not registered in a metastore. Raises TableNotFoundError if the
        table or the branch does not exist, UnsupportedError for a branch of a table whose snapshots
        are published through a server, and the errors of `base`.
        """
        if identifier.branch is None:
            return self.base.get_table(identifier)
        table = self.base.get_table(identifier.main)
        if table.snapshot_commit is not None:
            raise UnsupportedError(
                f"'{identifier}': pipelines write no branches through a REST catalog, as Paimon's "
                "own server stores branches that are written and altered through it in a way that "
                "damages the table; write the table itself, or use another catalog"
            )
        if not _directory(table, identifier.branch).has_table():
            raise TableNotFoundError(
                f"table '{identifier.main}' has no branch '{identifier.branch}': create it with "
                f"`ingestd branch create WAREHOUSE {identifier.main} {identifier.branch}`, and "
                "--latest if it is to begin with the rows of the table"
            )
        return replace(on_branch(table, identifier.branch), name=str(identifier), partitions=None)

    def create_table(
        self, identifier: Identifier, schema: TableSchema, *, ignore_if_exists: bool = False
    ) -> FileStoreTable:
        """Create a table as `base` does; branches are never created here.

        If `identifier` names an existing branch, raises TableExistsError or, with
        `ignore_if_exists`, returns the table on the branch. Raises TableNotFoundError for a branch
        that does not exist, and the errors of `base`.
        """
        if identifier.branch is None:
            return self.base.create_table(identifier, schema, ignore_if_exists=ignore_if_exists)
        table = self.get_table(identifier)
        if not ignore_if_exists:
            raise TableExistsError(f"'{identifier}' exists already")
        return table

    def alter_table(
        self, identifier: Identifier, changes: Sequence[SchemaChange], now_ms: int
    ) -> FileStoreTable:
        """Publish one new schema with the changes; return the table, or the branch.

        Raises the errors of `base`, and for a branch those of `get_table` and
        `TableDirectory.alter_table`.
        """
        if identifier.branch is None:
            return self.base.alter_table(identifier, changes, now_ms)
        table = self.get_table(identifier)
        if not changes:
            return table
        with held_on(table.lock, table.branch):
            return _directory(table, table.branch).alter_table(table, changes, now_ms)

    def drop_table(self, identifier: Identifier) -> None:
        """Delete a table as `base` does.

        Raises TableNotFoundError if it does not exist, ConfigError for a branch, and the errors of
        `base`.
        """
        refuse_branch(identifier)
        self.base.drop_table(identifier)

    def rename_table(self, source: Identifier, target: Identifier) -> None:
        """Rename a table, whose writers must be stopped.

        Raises TableNotFoundError if the table does not exist, TableExistsError if the new name is
        in use, and ConfigError if one of the names is a branch or the new name is not allowed.
        """
        refuse_branch(source)
        self.base.rename_table(source, target)


def _directory(table: FileStoreTable, branch: str) -> TableDirectory:
    return TableDirectory(table.path, table.io, table.name, branch)
