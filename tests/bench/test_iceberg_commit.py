"""Commits that are measured are those of tables with and without Iceberg metadata."""

from pathlib import Path

from bench.iceberg_commit import Cost, measure, ratios


def test_every_way_is_measured_as_often_and_writes_what_it_says(tmp_path: Path) -> None:
    costs = measure(tmp_path, files=3, pairs=2, commits=1)
    assert {name: len(own) for name, own in costs.items()} == dict.fromkeys(
        ("without", "threads", "waiting"), 2
    )
    assert all(cost.wall_ms > 0 and cost.cpu_ms > 0 for own in costs.values() for cost in own)
    hints = {path.parts[-3]: path.read_text() for path in tmp_path.rglob("version-hint.text")}
    assert hints == {"threads": "6", "waiting": "6"}


def test_ratios_are_quartiles_of_the_pairs() -> None:
    costs = {
        "without": [Cost(1, 2), Cost(2, 2), Cost(4, 2)],
        "threads": [Cost(2, 3), Cost(2, 2), Cost(40, 4)],
    }
    assert ratios(costs) == {"threads": {"wall": [1.5, 2.0, 6.0], "cpu": [1.25, 1.5, 1.75]}}
