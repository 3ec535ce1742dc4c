"""The page of collected messages: what Flink CDC makes of each, what ingestd does, and why."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_CDC = Path(__file__).resolve().parents[1] / "tests" / "golden" / "cdc"
SAMPLES = (_CDC / "samples", _CDC / "avro_samples")
_INTRODUCTION = """# Data formats, message by message

Written by `make docs`. Left is what the parsers of Paimon's Flink CDC (1.3.1) make of a message,
run on that message; right is what ingestd makes of it, which a test compares with the decoder.
The messages are in `tests/golden/cdc/*samples`. Rows are `kind(values)` below the columns with
their types; `(unchanged)` is a value that the source left out and that keeps what it was.
"""
_COLUMN = re.compile(r"     (.*?) : (.*?)  cdc=(.*)  -> (.*)")


def cdc_formats_page() -> str:
    """The whole page."""
    java = _java_results()
    formats = {sample["name"]: sample["format"] for sample in _documents("samples.jsonl")}
    lines = [_INTRODUCTION]
    rows: dict[str, list[str]] = {}
    for found in _documents("expected.jsonl"):
        name = found["name"]
        cells = [name, "; ".join(java[name]), "; ".join(found["ingestd"]), found["why"]]
        rows.setdefault(formats[name], []).append(f"| {' | '.join(map(_escaped, cells))} |")
    for data_format, table in sorted(rows.items()):
        lines += [f"## {data_format}", "", "| message | Flink CDC | ingestd | why |"]
        lines += ["|---|---|---|---|", *table, ""]
    return "\n".join(lines)


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
