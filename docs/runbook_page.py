"""The runbook of the console: two sections of alerts.md as HTML, see `runbook`."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

_SECTIONS = ("Symptoms", "Alerts")


def runbook(page: Path) -> str:
    """Return symptoms and alerts as HTML with ids, without links to other pages.

    An id is the heading, or the class of the error that a row of the symptoms begins with, in lower
    case. A table is a region that can be scrolled and is labelled by its heading.
    """
    parts = re.split(r"^(?=## )", page.read_text("utf-8"), flags=re.MULTILINE)
    chosen = [part for part in parts if part.startswith(tuple(f"## {name}" for name in _SECTIONS))]
    parser = MarkdownIt("commonmark").enable("table")
    tokens = list(_with_ids(parser.parse("".join(chosen))))
    html: str = parser.renderer.render(tokens, parser.options, {})
    return html


def _with_ids(tokens: Sequence[Token]) -> Iterator[Token]:
    heading, used = "", set[str]()
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        if token.type == "heading_open" and following is not None:
            heading = following.content.lower().replace(" ", "-")
            token.attrSet("id", heading)
        elif token.type == "table_open":
            region = f'<div class="wide" tabindex="0" role="region" aria-labelledby="{heading}">'
            yield Token("html_block", "", 0, content=region)
        elif token.type == "td_open" and following is not None:
            error = re.match(r"`(\w+Error)`", following.content)
            if error and error[1] not in used:
                used.add(error[1])
                token.attrSet("id", error[1].lower())
        elif token.type == "inline":
            token.children = list(_without_foreign_links(token.children or []))
        yield token
        if token.type == "table_close":
            yield Token("html_block", "", 0, content="</div>")


def _without_foreign_links(tokens: Sequence[Token]) -> Iterator[Token]:
    """Replace links to other pages by their text and the path of the page."""
    path = ""
    for token in tokens:
        if token.type == "link_open" and not str(token.attrs["href"]).startswith("#"):
            path = str(token.attrs["href"]).partition("#")[0]
        elif token.type == "link_close" and path:
            yield Token("text", "", 0, content=f" (docs/{path})")
            path = ""
        else:
            yield token
