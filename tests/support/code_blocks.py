"""Every block of code on the pages that people follow, found as a reader finds it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^(```|~~~)(\w*)\s*$")
LISTED = re.compile(r"^\s*(?:[-*]|\d+\.) ")


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """A block: its page, the heading that it is under, its language ("" if indented), its text."""

    page: str
    heading: str
    language: str
    text: str

    @property
    def first(self) -> str:
        """The first line, which distinguishes a block from others of its heading."""
        return self.text.partition("\n")[0]


def followed_pages() -> list[Path]:
    """What people follow; decisions (docs/adr) and the changelog are history, not instructions."""
    fixed = [
        "README.md",
        "CONTRIBUTING.md",
        "bench/README.md",
        "helm/ingestd/README.md",
        "native/README.md",
        "paimon/README.md",
    ]
    return [*(ROOT / name for name in fixed), *sorted((ROOT / "docs").glob("*.md"))]


def code_blocks(page: Path) -> list[CodeBlock]:
    """The blocks of a page, fenced or indented by four spaces, in order."""
    name = page.relative_to(ROOT).as_posix() if page.is_relative_to(ROOT) else page.name
    return list(_blocks(name, page.read_text("utf-8").splitlines()))


def _blocks(page: str, lines: list[str]) -> Iterator[CodeBlock]:
    heading, at = "", 0
    while at < len(lines):
        fence = FENCE.match(lines[at])
        if fence:
            end = lines.index(fence[1], at + 1)
            yield CodeBlock(page, heading, fence[2] or "-", _text(lines[at + 1 : end]))
            at = end + 1
        elif _indented(lines, at):
            end = at
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            yield CodeBlock(page, heading, "", _text([line[4:] for line in lines[at:end]]))
            at = end
        else:
            if lines[at].startswith("#"):
                heading = lines[at].lstrip("# ")
            at += 1


def _indented(lines: list[str], at: int) -> bool:
    """Four spaces after an empty line or a heading; in a list they go on with its text."""
    if not lines[at].startswith("    ") or not lines[at].strip():
        return False
    before = lines[at - 1] if at else ""
    above = next((line for line in reversed(lines[:at]) if line.strip()), "")
    return (not before.strip() or before.startswith("#")) and not LISTED.match(above)


def _text(lines: list[str]) -> str:
    return "\n".join(lines).strip("\n") + "\n"


def shown(page: str, first: str) -> CodeBlock:
    """The one block of a page whose first line begins so."""
    (found,) = (
        code_block for code_block in code_blocks(ROOT / page) if code_block.first.startswith(first)
    )
    return found
