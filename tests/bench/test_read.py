"""Readers of one table take turns, and what they need is compared."""

from pathlib import Path

from bench.read import make_table, ratios
from bench.table_readers import Figures, in_turns


def test_a_reader_is_measured_round_by_round(tmp_path: Path) -> None:
    make_table(tmp_path, 100, 2)
    found = in_turns(["ingestd"], tmp_path, 2)["ingestd"]
    assert found.rows == 100
    assert found.sum > 0
    assert len(found.walls) == len(found.cpus) == 2
    assert found.peak_mib > 10


def test_others_are_compared_with_ingestd() -> None:
    ours = Figures(10, 5, (2.0, 1.0, 3.0), (1.0, 1.0, 2.0), 100)
    java = Figures(10, 5, (4.0, 3.0, 5.0), (6.0, 5.0, 7.0), 300)
    assert ratios({"ingestd": ours, "java": java}) == {
        "java": {"wall": 3.0, "median": 2.0, "cpu": 5.0}
    }
    assert "cores 0.67" in ours.line(10)
