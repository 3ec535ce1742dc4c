"""A measured compaction compacts what was requested, and its report is complete."""

import json
import sys
from pathlib import Path

import pytest

from bench.compaction import compact_here, measure
from bench.read import make_table

ROWS = 300


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    make_table(tmp_path, 2 * ROWS, 1, [ROWS] * 5)
    return tmp_path


def test_a_compaction_is_reported_with_time_and_memory(
    warehouse: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compact_here([str(warehouse)])
    told = json.loads(capsys.readouterr().out)
    assert told.keys() == {"wall", "cpu", "peak_kb"}
    assert told["wall"] > 0
    assert told["peak_kb"] > 10_000
    with pytest.raises(SystemExit, match="nothing was compacted"):
        compact_here([str(warehouse)])


def test_what_is_left_and_what_was_written_is_measured(warehouse: Path) -> None:
    program = [sys.executable, "-m", "bench.compaction", "--here"]
    found = measure(program, [warehouse], 5 * ROWS)
    # Half of the keys in each of five runs: all but 1/32 are in some.
    assert ROWS * 1.8 < found["rows"] < ROWS * 2
    assert 0 < found["write_amplification"] < 1
    assert found["rows_per_second"] > 0


def test_a_program_that_fails_is_no_measurement(warehouse: Path) -> None:
    with pytest.raises(SystemExit, match="failed"):
        measure([sys.executable, "-c", "raise ValueError"], [warehouse], 1)
