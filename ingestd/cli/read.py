"""`ingestd read`: the rows of a table as of a snapshot, or the changes between snapshots."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from ingestd.cli import rows_output
from ingestd.cli.output import AsJson
from ingestd.cli.rows_output import Rows
from ingestd.cli.tables import SnapshotId, TableName, Warehouse, open_table
from ingestd.errors import ConfigError
from ingestd.paimon.table.changelog_read import change_fields, iter_changelog
from ingestd.paimon.table.read import at_snapshot, iter_buckets

_Changelog: TypeAlias = Annotated[
    bool, typer.Option("--changelog", help="Print changes instead of rows.")
]
_First: TypeAlias = Annotated[
    int | None, typer.Option("--from", min=1, help="First snapshot of the changes.")
]
_Last: TypeAlias = Annotated[
    int | None, typer.Option("--to", min=1, help="Last snapshot of the changes.")
]
_Limit: TypeAlias = Annotated[
    int | None,
    typer.Option(min=0, help=f"Most rows; a table for people stops at {rows_output.SHOWN_ROWS}."),
]
_Output: TypeAlias = Annotated[
    Path | None, typer.Option("--output", "-o", help="A file instead of standard output.")
]


class Format(StrEnum):
    """How rows are printed."""

    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"
    TABLE = "table"


def read(
    warehouse: Warehouse,
    table: TableName,
    snapshot: SnapshotId = None,
    changelog: _Changelog = False,
    first: _First = None,
    last: _Last = None,
    style: Annotated[Format, typer.Option("--format", "-f", help="The form.")] = Format.JSONL,
    limit: _Limit = None,
    output: _Output = None,
    as_json: AsJson = False,
) -> None:
    """Print the rows of a table as they are now, or as they were at a snapshot.

    JSON lines are canonical: one object a row, rows in a fixed order, the same text whoever wrote
    the table. --json is --format jsonl. Changes come in their order, each with the snapshot and
    the row kind (+I, -U, +U, -D).

    **Examples**

    ingestd read /lake shop.orders

    ingestd read /lake shop.orders --snapshot 3 --format table

    ingestd read /lake shop.orders --changelog --from 2 --to 4

    ingestd read /lake shop.orders --format parquet -o orders.parquet
    """
    style = Format.JSONL if as_json else style
    _check_options(changelog, snapshot, first, last)
    if changelog:
        rows = _changes(warehouse, table, first, last)
    else:
        rows = _rows(warehouse, table, snapshot)
    _print(rows, style, limit, output)


def _print(rows: Rows, style: Format, limit: int | None, output: Path | None) -> None:
    if style is Format.PARQUET:
        rows_output.write_parquet(rows, limit, output)
    elif style is Format.CSV:
        rows_output.write_csv(rows, limit, output)
    elif style is Format.TABLE:
        rows_output.print_rows(rows, limit)
    else:
        rows_output.write_json_lines(rows, limit, output)


def _rows(warehouse: str, name: str, snapshot: int | None) -> Rows:
    """The rows of a snapshot, in the columns that the table had then."""
    table = open_table(warehouse, name)
    if snapshot is not None:
        table = at_snapshot(table, snapshot)
    parts = iter_buckets(table, snapshot_id=snapshot)
    return Rows(parts, table.schema.fields, in_order=False)


def _changes(warehouse: str, name: str, first: int | None, last: int | None) -> Rows:
    table = open_table(warehouse, name)
    return Rows(iter_changelog(table, first or 1, last), change_fields(table), in_order=True)


def _check_options(
    changelog: bool, snapshot: int | None, first: int | None, last: int | None
) -> None:
    if changelog and snapshot is not None:
        raise ConfigError("--changelog takes --from and --to instead of --snapshot")
    if not changelog and (first is not None or last is not None):
        raise ConfigError("--from and --to go with --changelog; rows take --snapshot")
