"""Print text and tables for people, and JSON for programs."""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, TypeAlias

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ingestd.log import printable, printable_lines
from ingestd.wording import utc_text

AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Row: TypeAlias = Mapping[str, object]

_WIDE = 400
_NAMING_SHARE = 2 / 3
_MILLIS = 1000
_JSON_CONTROL = re.compile("[\x7f-\x9f\u2028\u2029]")
_NAMING = re.compile("(^|_)(id|snapshot|bucket|partition|offset|identifier|number)$")
"""Names of columns whose numbers identify something, printed without thousands separators."""


def say(
    text: str, *, err: bool = False, nl: bool = True, colour: str | None = None, bold: bool = False
) -> None:
    """Print text with control characters escaped, so that data cannot control the terminal.

    With `err`, it is printed to standard error, and without `nl` no line end follows. `colour` and
    `bold` apply on terminals only.
    """
    typer.secho(printable_lines(text), fg=colour, bold=bold or None, err=err, nl=nl)


def print_json(document: object) -> None:
    """Print a JSON document with control characters escaped."""
    sys.stdout.write(json_text(json.dumps(document, indent=2, ensure_ascii=False)) + "\n")


def json_text(text: str) -> str:
    """Escape the control characters that JSON allows unescaped, such as DEL, in a JSON text."""
    return _JSON_CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def print_table(
    rows: Sequence[Row], columns: Sequence[str], *, none: str, titles: bool = True
) -> None:
    """Print columns of rows as a table, or the text `none` if there are no rows.

    The table is as wide as the terminal, or at most 400 characters elsewhere. If it does not fit,
    texts are wrapped, in the first column only if they are long; numbers and short texts of the
    first column are truncated. Numbers are aligned to the right. With `titles`, underscores in the
    names of columns are printed as spaces, above numbers on a terminal as line breaks.
    """
    console = Console() if sys.stdout.isatty() else Console(width=_WIDE)
    if not rows:
        say(none)
        return
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name in columns:
        numeric = all(isinstance(row.get(name), int | float | None) for row in rows)
        longest = max(len(_text_in(name, row.get(name))) for row in rows)
        whole = numeric or (name == columns[0] and longest <= console.width * _NAMING_SHARE)
        table.add_column(
            Text(
                _title(name, narrow=numeric and sys.stdout.isatty()) if titles else printable(name)
            ),
            justify="right" if numeric else "left",
            no_wrap=whole,
            overflow="ellipsis" if whole else "fold",
        )
    for row in rows:
        table.add_row(*(Text(_text_in(name, row.get(name))) for name in columns))
    with console.capture() as capture:
        console.print(table)
    for line in capture.get().splitlines():
        typer.echo(line.rstrip())  # its cells are escaped, its styles are our own


def _title(name: str, *, narrow: bool) -> str:
    """Replace underscores in the name of a column by spaces, or by line ends if it is `narrow`."""
    return name.replace("_", "\n" if narrow else " ")


def _text_in(name: str, value: object) -> str:
    """Format a cell of a column; integers that identify something have no thousands separators."""
    names = isinstance(value, int) and not isinstance(value, bool) and _NAMING.search(name)
    return str(value) if names else cell_text(value)


def cell_text(value: object) -> str:
    """Format a value for a table cell, on one line; None is "", and a boolean "yes" or "no".

    Integers have commas between thousands, and the elements of lists are separated by commas.
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list | tuple):
        return printable(", ".join(str(element) for element in value))
    return printable(str(value))


def timestamp_text(millis: int | None) -> str | None:
    """Format milliseconds since 1970 as ISO 8601 in UTC; None stays None."""
    return None if millis is None else utc_text(millis / _MILLIS, "milliseconds")
