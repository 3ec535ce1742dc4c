"""`ingestd read`: print rows, changes, or system tables of a table."""

from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from ingestd.cli import rows_output
from ingestd.cli.interrupts import UNCHANGED, interruptible
from ingestd.cli.output import AsJson
from ingestd.cli.progress_line import line_of, live_count
from ingestd.cli.read_source import Request, requested_rows, sys_rows
from ingestd.cli.rows_output import Output, PrintedRows
from ingestd.cli.table_arguments import (
    SnapshotId,
    TableName,
    Warehouse,
    open_catalog,
    open_reference,
)
from ingestd.paimon.catalog.sys_tables import SYS
from ingestd.paimon.table.system.system_tables import parse_reference

_Where: TypeAlias = Annotated[
    str | None, typer.Option("--where", help="Only rows for which this is true.")
]
Columns: TypeAlias = Annotated[
    str | None, typer.Option("--columns", help="Only these columns, with commas between them.")
]
Tag: TypeAlias = Annotated[str | None, typer.Option("--tag", help="Print the rows of a tag.")]
AsOf: TypeAlias = Annotated[
    str | None,
    typer.Option("--as-of", help="Print the rows as of a time, ISO 8601 (UTC without an offset)."),
]
_Changelog: TypeAlias = Annotated[
    bool, typer.Option("--changelog", help="Print changes instead of rows.")
]
_AuditLog: TypeAlias = Annotated[
    bool, typer.Option("--audit-log", help="Print rows with their kinds, including deletions.")
]
_First: TypeAlias = Annotated[
    int | None, typer.Option("--from", min=1, help="First snapshot of the changes.")
]
_Last: TypeAlias = Annotated[
    int | None, typer.Option("--to", min=1, help="Last snapshot of the changes.")
]
Limit: TypeAlias = Annotated[
    int | None,
    typer.Option(
        min=0,
        help=f"Maximum number of rows; default {rows_output.SHOWN_ROWS} of a table, else all.",
    ),
]
OutputFile: TypeAlias = Annotated[
    Path | None, typer.Option("--output", "-o", help="Output file; default standard output.")
]


class Format(StrEnum):
    """An output format of `ingestd read`, such as JSON lines, CSV or Parquet."""

    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"
    TABLE = "table"


def read(
    warehouse: Warehouse,
    table: TableName,
    where: _Where = None,
    columns: Columns = None,
    snapshot: SnapshotId = None,
    tag: Tag = None,
    as_of: AsOf = None,
    changelog: _Changelog = False,
    audit_log: _AuditLog = False,
    first: _First = None,
    last: _Last = None,
    style: Annotated[Format, typer.Option("--format", "-f", help="Output format.")] = Format.JSONL,
    limit: Limit = None,
    output: OutputFile = None,
    as_json: AsJson = False,
) -> None:
    """Print the rows of a table as they are now, or as they were at a snapshot.

    JSON lines are sorted; changes are in commit order, with `_snapshot` and `rowkind`. --from and
    --to without --changelog print the rows that these snapshots added. TABLE$VIEW (or sys.tables)
    reads a system table ($files, ...), the last full compaction, or updates as one row ($binlog).

    **Examples**

    ingestd read /lake shop.orders

    ingestd read /lake shop.orders --where "status = 'open' AND amount >= 10" --columns id,amount

    ingestd read /lake shop.orders --as-of 2026-01-31T12:00:00Z --format table

    ingestd read /lake shop.orders --changelog --from 2 --to 4

    ingestd read /lake 'shop.orders$files' --format table

    ingestd read /lake shop.orders --format parquet -o orders.parquet
    """
    request = Request(where, columns, snapshot, tag, as_of, changelog, audit_log, first, last)
    read_table = _read_sys if table.startswith(f"{SYS}.") else _read
    read_table(warehouse, table, request, Format.JSONL if as_json else style, limit, output)


def _read_sys(
    warehouse: str,
    name: str,
    request: Request,
    form: Format,
    limit: int | None,
    output: Path | None,
) -> None:
    rows = sys_rows(open_catalog(warehouse), name.removeprefix(f"{SYS}."), request)
    write_rows(rows, form, Output(output, limit, lambda: None))


def _read(
    warehouse: str,
    name: str,
    request: Request,
    form: Format,
    limit: int | None,
    output: Path | None,
) -> None:
    reference = parse_reference(name)
    table, view = open_reference(warehouse, reference), reference.view
    left = UNCHANGED if output is None else f"{output} is as it was. Run the same command again."
    elsewhere = view or request.changelog or request.is_range or request.tag or request.as_of
    files = None if elsewhere else live_count(request.snapshot)
    with interruptible("reading", table.name, left), ExitStack() as line:
        watched = line.enter_context(line_of("reading", table, files))
        rows = requested_rows(watched, view, request)
        out = Output(output, limit, line.close)
        write_rows(rows, form, out)


def write_rows(rows: PrintedRows, style: Format, out: Output) -> None:
    """Write rows to the output in the chosen format.

    Raises ConfigError for Parquet on a terminal, and for a table in a file.
    """
    if style is Format.PARQUET:
        rows_output.write_parquet(rows, out)
    elif style is Format.CSV:
        rows_output.write_csv(rows, out)
    elif style is Format.TABLE:
        rows_output.print_rows(rows, out)
    else:
        rows_output.write_json_lines(rows, out)
