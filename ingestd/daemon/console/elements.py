"""HTML elements of the console: tables, numbers, and times."""

import html
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

UNKNOWN = "–"


def text(value: object) -> str:
    """Return `str(value)` with the special characters of HTML escaped, including quotes."""
    return html.escape(str(value))


def number(value: float | None) -> str:
    """Format a number without decimals, with commas between thousands; a dash for None."""
    return UNKNOWN if value is None else f"{value:,.0f}"


def change(document: Mapping[str, Any], before: str, after: str) -> str:
    """Format two numbers of a document as "BEFORE to AFTER", with a dash for a missing one.

    `before` and `after` are their keys.
    """
    return f"{number(document.get(before))} to {number(document.get(after))}"


def time_tag(at: float | str | None) -> str:
    """Format a time as an HTML time element in UTC; a dash for None.

    The time is given in seconds since 1970, or in ISO 8601 in UTC.
    """
    if at is None:
        return UNKNOWN
    moment = datetime.fromisoformat(at) if isinstance(at, str) else datetime.fromtimestamp(at, UTC)
    return f'<time datetime="{moment:%Y-%m-%dT%H:%M:%SZ}">{moment:%Y-%m-%d %H:%M:%S}</time>'


def table(
    anchor: str,
    title: str,
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    nothing: str,
    *,
    numbers: Sequence[str] = (),
    long: Sequence[str] = (),
) -> str:
    """Return a section with a table of HTML cells, or with the text `nothing` if there are no rows.

    `anchor` is the HTML id of the section, and `head` has the names of the columns; each row has a
    cell for each of them, of which the first is the row's header. Columns in `numbers` are aligned
    to the right; only cells of columns in `long` have several lines.
    """
    kinds = [
        ' class="number"' if name in numbers else ' class="long"' if name in long else ""
        for name in head
    ]
    body = "".join(
        f'<tr><th scope="row">{first}</th>'
        + "".join(f"<td{kind}>{cell}</td>" for kind, cell in zip(kinds[1:], cells, strict=True))
        + "</tr>"
        for first, *cells in rows
    )
    columns = "".join(
        f'<th scope="col"{kind}>{text(name)}</th>' for kind, name in zip(kinds, head, strict=True)
    )
    inside = (
        f'<div class="wide" tabindex="0" role="region" aria-labelledby="{anchor}"><table><thead>'
        f"<tr>{columns}</tr></thead><tbody>{body}</tbody></table></div>"
        if body
        else f'<p class="empty">{text(nothing)}</p>'
    )
    return f'<section><h2 id="{anchor}">{text(title)}</h2>{inside}</section>'
