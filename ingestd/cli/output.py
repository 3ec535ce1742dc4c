"""How commands print: tables for people, JSON for programs."""

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, TypeAlias

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ingestd.log import printable

AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Row: TypeAlias = Mapping[str, object]

_WIDE = 400
_NAMING_SHARE = 2 / 3
_MILLIS = 1000


def print_json(document: object) -> None:
    """One JSON document."""
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def print_table(
    rows: Sequence[Row], columns: Sequence[str], *, none: str, titles: bool = True
) -> None:
    """A table of some columns of the rows; the text `none` if there are no rows.

    Numbers stand to the right. Nothing is cut off where the output is no terminal; on a narrow
    terminal texts go on in the next line, those of the first column last, as it names the rows.
    Without `titles` the names of the columns stay as they are.
    """
    console = Console() if sys.stdout.isatty() else Console(width=_WIDE)
    if not rows:
        console.print(Text(none))
        return
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name in columns:
        numeric = all(isinstance(row.get(name), int | float | None) for row in rows)
        longest = max(len(cell_text(row.get(name))) for row in rows)
        whole = numeric or (name == columns[0] and longest <= console.width * _NAMING_SHARE)
        table.add_column(
            Text(_title(name, narrow=numeric and sys.stdout.isatty()) if titles else name),
            justify="right" if numeric else "left",
            no_wrap=whole,
            overflow="ellipsis" if whole else "fold",
        )
    for row in rows:
        table.add_row(*(Text(cell_text(row.get(name))) for name in columns))
    console.print(table)


def _title(name: str, *, narrow: bool) -> str:
    """The words of a column's name; a narrow column has one a line."""
    return name.replace("_", "\n" if narrow else " ")


def cell_text(value: object) -> str:
    """One value in a cell, on one line."""
    if value is None:
        return ""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, list | tuple):
        return ", ".join(str(one) for one in value)
    return printable(str(value))


def time_text(millis: int | None) -> str | None:
    """A time of the epoch in milliseconds as ISO 8601, UTC."""
    if millis is None:
        return None
    moment = datetime.fromtimestamp(millis / _MILLIS, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
