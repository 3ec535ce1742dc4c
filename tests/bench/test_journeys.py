"""The journeys run, and no reader has to walk further than before."""

import subprocess
import sys
from pathlib import Path

import pytest

from ingestd.cdc.native_module import native_module

ROOT = Path(__file__).resolve().parents[2]
FURTHEST = {
    "Debezium JSON record to Parquet row": (30, 61, 8, 30, 0),
    "commit with conflict and retry": (8, 20, 19, 23, 0),
    "merged read": (12, 32, 20, 22, 0),
    "parameter chunk from JsonChanges.decode": (16, 18, 11, 12, 0),
    "parameter ranges from decode_ranges": (19, 41, 8, 13, 0),
}
"""Modules, all modules, stack, returns and calls back up; lower them when a journey is shorter."""


@pytest.mark.skipif(native_module() is None, reason="the native reader is not built")
def test_no_journey_is_longer_than_it_was() -> None:
    command = [sys.executable, "-m", "bench.journeys"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    lines = [line.strip("| ").split(" | ") for line in run.stdout.splitlines()[2:]]
    figures = {name: tuple(map(int, numbers)) for name, *numbers in lines}
    assert figures.keys() == FURTHEST.keys()
    longer = {
        name: numbers
        for name, numbers in figures.items()
        if any(now > most for now, most in zip(numbers, FURTHEST[name], strict=True))
    }
    assert longer == {}
