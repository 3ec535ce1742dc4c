"""Comparisons that are programs of their own, as rows of the whole table: reading, compaction.

Each compares ingestd with its peers in one go, checks that all of them found or left the same rows,
and ends with a line of JSON.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.process import MeteredProcess

ROOT = Path(__file__).resolve().parents[1]


def reading(rows: int, scratch: Path, timeout: float) -> dict[str, Any]:
    """`bench.read` of this many keys: how many times faster ingestd is than each peer."""
    figures = _last_line("bench.read", ["--rows", str(rows)], scratch, timeout)
    ratios = {
        peer: one["wall"] for table in figures["tables"] for peer, one in table["ratios"].items()
    }
    return {"times_faster": ratios, **figures}


def compacting(rows: int, scratch: Path, timeout: float) -> dict[str, Any]:
    """`bench.compaction` of five runs of this many rows: rows a second, memory, amplification."""
    figures = _last_line("bench.compaction", ["--rows", str(rows)], scratch, timeout)
    ours, java = figures["compactors"]["ingestd"], figures["compactors"]["java"]
    return {"times_faster": {"java": ours["rows_per_second"] / java["rows_per_second"]}, **figures}


def growing(scale: str, scratch: Path, timeout: float) -> list[dict[str, Any]]:
    """`bench.growth` of a scale: a point for each size of each dimension."""
    return _lines("bench.growth", [scale], scratch, timeout)


def _last_line(
    module: str, arguments: list[str], scratch: Path, timeout: float
) -> Mapping[str, Any]:
    return _lines(module, arguments, scratch, timeout)[-1]


def _lines(
    module: str, arguments: list[str], scratch: Path, timeout: float
) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", module, *arguments]
    temporary = {"TMPDIR": str(scratch)}
    log = scratch / f"{module}.log"
    with MeteredProcess(command, log, folder=ROOT, environment=temporary) as process:
        process.finish(timeout)
    return process.documents()
