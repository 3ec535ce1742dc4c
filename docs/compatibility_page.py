"""The tables of compatibility.md that say which reader reads what: from the tests' own results."""

import json
from collections.abc import Mapping
from pathlib import Path

RESULTS = Path(__file__).resolve().parent / "compatibility.json"

_Results = Mapping[str, Mapping[str, str]]
_WRITTEN = (
    "ingestd", "Java", "Java fsck", "Java appends", "Java compacts", "Java 2.0",
    "Java 2.0 continues", "pypaimon", "paimon-rust",
)  # fmt: skip
_READ = ("ingestd", "pypaimon", "paimon-rust")
_YES = "yes"


def written_table() -> str:
    """Tables that ingestd wrote: one row a capability, one column a judge."""
    return _table("capability, written by ingestd", _results("written"), _WRITTEN)


def read_table() -> str:
    """Tables that Java wrote: one row a table, one column a reader."""
    return _table("table, written by Java", _results("read"), _READ)


def _results(part: str) -> _Results:
    found: _Results = json.loads(RESULTS.read_text(encoding="utf-8"))[part]
    return found


def _table(title: str, results: _Results, judges: tuple[str, ...]) -> str:
    notes: list[str] = []
    lines = [f"| {title} | {' | '.join(judges)} |", "|---" * (len(judges) + 1) + "|"]
    for name, found in sorted(results.items()):
        cells = [_cell(found.get(judge, ""), notes) for judge in judges]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", *(f"{n}. {note}" for n, note in enumerate(notes, 1))]).rstrip()


def _cell(outcome: str, notes: list[str]) -> str:
    if outcome in (_YES, ""):
        return outcome
    words = outcome.removeprefix("no: ")
    if words not in notes:
        notes.append(words)
    return f"no ({notes.index(words) + 1})"
