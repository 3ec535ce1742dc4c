"""Arguments that commands share, and the opening of the catalogs and tables that they name."""

from typing import Annotated, TypeAlias

import typer

from ingestd.cli.catalog_options import chosen_catalog
from ingestd.errors import ConfigError
from ingestd.paimon.catalog.base import Catalog, Identifier, load_catalog
from ingestd.paimon.io.file_io import absolute_path, file_io_for, storage_options
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.time_travel import on_branch
from ingestd.paimon.table.system.system_tables import TableReference, parse_reference

Warehouse: TypeAlias = Annotated[
    str,
    typer.Argument(metavar="WAREHOUSE", help="Root of the warehouse, or its name in the catalog."),
]
TableName: TypeAlias = Annotated[
    str, typer.Argument(metavar="DB.TABLE", help="The table with its database.")
]
SnapshotId: TypeAlias = Annotated[
    int | None, typer.Option("--snapshot", min=1, help="Snapshot id; default the newest.")
]


def open_catalog(warehouse: str) -> Catalog:
    """Open the catalog that the command line selects.

    `warehouse` is a path, or the name of a warehouse at the catalog server. Raises ConfigError if
    the path does not exist, and for invalid catalog options; UnsupportedError for an unknown kind
    of store; StorageError if the store or the catalog server does not respond.
    """
    chosen = chosen_catalog()
    if chosen.metastore != "filesystem":
        return load_catalog(chosen.metastore, warehouse, chosen.options)
    path = absolute_path(warehouse)
    if not file_io_for(path, storage_options(chosen.options)).exists(path):
        raise ConfigError(f"there is no warehouse at {path}")
    return load_catalog(chosen.metastore, path, chosen.options)


def open_table(warehouse: str, name: str) -> FileStoreTable:
    """Open a table, or a branch of it (`db.table$branch_b`).

    Raises ConfigError for a view, and if the table or the branch does not exist.
    """
    reference = parse_reference(name)
    if reference.view is not None:
        raise ConfigError(f"'{name}' is a view: `ingestd read` prints it")
    return open_reference(warehouse, reference)


def open_reference(warehouse: str, reference: TableReference) -> FileStoreTable:
    """Open the table or the branch to which a reference refers, without regard to its view.

    Raises ConfigError if the table or the branch does not exist.
    """
    table = open_catalog(warehouse).get_table(Identifier.parse(reference.table))
    return table if reference.branch is None else on_branch(table, reference.branch)
