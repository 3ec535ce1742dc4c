"""The tables of `ingestd watch`: order, selection, and the view of one table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ingestd.log import printable
from ingestd.wording import utc_text

Document: TypeAlias = Mapping[str, Any]
"""The status of a daemon, or a part of it."""
KEYS = "up/down select   enter look into the table   s sort   q quit"
DETAIL_KEYS = "escape back   q quit"
_COLUMNS: Mapping[str, str] = {
    "table": "",
    "snapshot": "snapshot_id",
    "rows": "rows",
    "files": "files",
    "lag": "lag_seconds",
}
"""The columns of the list, with the names of their fields in the status."""
_SHOWN_BATCHES = 8


@dataclass(frozen=True, slots=True)
class TablesView:
    """The state of the tables view of `ingestd watch`, as chosen by the user.

    `sort` is the column that tables are ordered by, `selected` the selected table or None, and
    `is_open` whether its details are shown.
    """

    sort: str = "table"
    selected: str | None = None
    is_open: bool = False


def ordered(document: Document, view: TablesView) -> list[str]:
    """Return the names of all tables in the order of the column `view.sort`.

    Names are ascending, values descending. Tables with an unknown value are last.
    """
    tables = document["tables"]
    field = _COLUMNS[view.sort]
    if not field:
        return sorted(tables)

    def rank(name: str) -> tuple[bool, float, str]:
        value = tables[name].get(field)
        return value is None, -float(value or 0), name

    return sorted(tables, key=rank)


def after_key(document: Document, view: TablesView, key: str) -> TablesView:
    """Apply a key press to the view, and return the new view; an unknown key changes nothing.

    `key` is a result of `parse_keys`. While details are shown, only "escape" has an effect.
    """
    names = ordered(document, view)
    if key == "escape":
        return replace(view, is_open=False)
    if view.is_open or not names:
        return view
    if key == "s":
        columns = list(_COLUMNS)
        return replace(view, sort=columns[(columns.index(view.sort) + 1) % len(columns)])
    position = _position(names, view)
    if key in ("up", "down"):
        moved = min(max(position + (1 if key == "down" else -1), 0), len(names) - 1)
        return replace(view, selected=names[moved])
    return replace(view, selected=names[position], is_open=True) if key == "enter" else view


def tables_list(document: Document, view: TablesView, rows: int) -> RenderableType:
    """Return a list of at most `rows` tables in the order of `view`, including the selected one."""
    names = ordered(document, view)
    position = _position(names, view)
    first = min(max(0, position - rows + 1), max(0, len(names) - rows))
    titles = [f"{title} *" if title == view.sort else title for title in _COLUMNS]
    table = plain_table(*titles)
    for name in names[first : first + rows]:
        state = document["tables"][name]
        style = "reverse" if name == view.selected else ""
        cells = [
            value_text(state.get(field)) for field in _COLUMNS.values() if field != "lag_seconds"
        ]
        lag = seconds_text(state.get("lag_seconds"))
        table.add_row(Text(printable(name)), *cells[1:], lag, style=style)
    if len(names) <= rows:
        return table
    return Group(table, Text(f"tables {first + 1} to {first + rows} of {len(names)}", "dim"))


def table_detail(document: Document, name: str) -> RenderableType:
    """Return the view of one table: its state, its newest commits and its schema changes.

    If the document has no such table, the view states that.
    """
    state = document["tables"].get(name)
    if state is None:
        return Text(f"{printable(name)}: no longer in the status of the daemon")
    recent = document["recent"]
    values = Table(box=None, show_header=False, pad_edge=False)
    for title, value in (
        ("snapshot", value_text(state["snapshot_id"])),
        ("committed", value_text(state["committed_at"])),
        ("last result", value_text(state["result"])),
        ("schema", value_text(state["schema_id"])),
        ("rows since start", value_text(state["rows"])),
        ("files since start", value_text(state["files"])),
        ("lag", seconds_text(state.get("lag_seconds"))),
    ):
        values.add_row(title, value)
    batches = plain_table("batch", "at", "snapshot", "seconds")
    for batch in [batch for batch in recent["batches"] if name in batch["snapshots"]][
        :_SHOWN_BATCHES
    ]:
        total = value_text(batch["seconds"].get("total"))
        snapshot = value_text(batch["snapshots"][name])
        batches.add_row(value_text(batch["batch_id"]), utc_text(batch["at"]), snapshot, total)
    changes = [
        Text(f"{utc_text(change['at'])} schema {change['schema_id']}: {printable(change['what'])}")
        for change in recent["schemas"]
        if change["table"] == name
    ]
    return Group(Text(printable(name), "bold"), values, Text(""), batches, *changes)


def plain_table(first: str, *others: str) -> Table:
    """Return a console table without rows, with these column titles.

    The first column is for names, the others are for numbers, aligned to the right.
    """
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.add_column(first)
    for name in others:
        table.add_column(name, justify="right")
    return table


def value_text(value: Any) -> str:  # noqa: ANN401  (a value of JSON)
    """Format a value of the status document: a float with one decimal, None as -."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.1f}"
    return printable(str(value))


def seconds_text(value: float | None) -> str:
    """Format a duration in seconds with one decimal and its unit; an unknown one is -."""
    return "-" if value is None else f"{value:.1f} s"


def _position(names: Sequence[str], view: TablesView) -> int:
    return names.index(view.selected) if view.selected in names else 0
