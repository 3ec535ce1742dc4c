"""Write the page of data formats: a table of their descriptors, and collected messages.

For each message: what Flink CDC makes of it, what ingestd does, and why.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ingestd.cdc.base import format_descriptors

_CDC = Path(__file__).resolve().parents[1] / "tests" / "golden" / "cdc"
SAMPLES = (_CDC / "samples", _CDC / "avro_samples")
_INTRODUCTION = """# Data formats

Written by `make docs`. A source has one of these formats. *Event time* is whether messages state
when the source made a change (`op_ts`, freshness metrics), *log position* whether they state its
position in the log of the source database (`ordering: source-position`). A schema registry is
required, optional (a schema id may precede the JSON) or not used.
"""
_MESSAGES = """## Message by message

Left is what the parsers of Paimon's Flink CDC (1.3.1) make of a message,
run on that message; right is what ingestd makes of it, which a test compares with the decoder.
The messages are in `tests/golden/cdc/*samples`. Rows are `kind(values)` below the columns with
their types; `(unchanged)` is a value that the source left out and that keeps what it was.
"""
_COLUMN = re.compile(r"     (.*?) : (.*?)  cdc=(.*)  -> (.*)")


def cdc_formats_page() -> str:
    """Return the whole page."""
    java = _java_results()
    formats = {sample["name"]: sample["format"] for sample in _documents("samples.jsonl")}
    lines = [_INTRODUCTION, *_descriptors(), "", _MESSAGES]
    rows: dict[str, list[str]] = {}
    for found in _documents("expected.jsonl"):
        name = found["name"]
        cells = [name, "; ".join(java[name]), "; ".join(found["ingestd"]), found["why"]]
        rows.setdefault(formats[name], []).append(f"| {' | '.join(map(_escaped, cells))} |")
    for data_format, table in sorted(rows.items()):
        lines += [f"### {data_format}", "", "| message | Flink CDC | ingestd | why |"]
        lines += ["|---|---|---|---|", *table, ""]
    return "\n".join(lines)


def _descriptors() -> Iterator[str]:
    """Yield the lines of a table with one row for each data format."""
    heads = ("format", "messages of", "schema registry", "event time", "log position")
    heads += ("truncates", "schema changes", "type mappings")
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    for format_descriptor in sorted(format_descriptors(), key=lambda one: one.name):
        flags = (
            format_descriptor.event_time,
            format_descriptor.source_position,
            format_descriptor.truncates,
            format_descriptor.schema_changes,
        )
        mappings = ", ".join(f"`{name}`" for name in sorted(format_descriptor.type_mapping))
        cells = (
            f"`{format_descriptor.name}`",
            format_descriptor.description,
            format_descriptor.registry,
            *("yes" if flag else "" for flag in flags),
            mappings,
        )
        yield f"| {' | '.join(cells)} |"


def _documents(name: str) -> Iterator[Any]:
    for folder in SAMPLES:
        yield from map(json.loads, (folder / name).read_text("utf-8").splitlines())


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|").replace("<", "&lt;") or " "


def _java_results() -> dict[str, list[str]]:
    """What the Java parsers made of each message, one entry a row."""
    results: dict[str, list[str]] = {}
    text = "\n".join((folder / "paimon-1.3.1.txt").read_text("utf-8") for folder in SAMPLES)
    for part in text.split("### ")[1:]:
        head, *body = part.splitlines()
        name = head.rpartition(" [")[0]
        results[name] = _rows(body)
    return results


def _rows(body: list[str]) -> list[str]:
    found: list[str] = []
    kind, types, values = "", list[str](), list[str]()
    for line in [*body, "  end"]:
        match = _COLUMN.fullmatch(line)
        if match:
            types.append(f"{match[1]} {match[2]}")
            values.append(match[4])
            continue
        if kind:
            head = f"key {kind.split(' ')[1].removeprefix('pk=')}: {', '.join(types)}"
            if head not in found:
                found.append(head)
            found.append(f"{kind.rpartition(' ')[2]}({', '.join(values)})")
        kind, types, values = "", [], []
        if " pk=" in line:
            kind = line.strip()
        elif line.strip() not in ("end", ""):
            found.append(line.strip().removeprefix("THROWS ").replace("(no rows)", "no rows"))
    return found
