"""Growth is measured where sizes take turns; the pipelines hold what they are said to hold."""

from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

import pytest

from bench import growing
from bench.growth import DIMENSIONS, SCALES, WARM_UP, Dimension, measured
from bench.one_process import DATABASE, Spent
from ingestd.paimon.catalog.base import Identifier
from ingestd.paimon.spec.snapshot import CommitKind
from ingestd.paimon.table.metadata.file_store_scan import live_files
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.metadata.table_state import load_state


@dataclass
class Turns:
    """Sides that write down whose turn it was, and cost their size times the turn."""

    taken: list[int] = field(default_factory=list)

    def make(self, _: Path, size: int) -> growing.Growing:
        turns, number = self, count()

        class Side:
            def step(self) -> Spent:
                turns.taken.append(size)
                return Spent(size * next(number), 1.0)

        return Side()


def test_sizes_take_turns_and_samples_are_means_of_their_steps() -> None:
    turns = Turns()
    points = measured("d", Dimension(turns.make, (1, 10), samples=2, steps=3, note="n"))
    assert turns.taken[2 * WARM_UP :] == [1, 10, 10, 1, 1, 10, 10, 1, 1, 10, 10, 1]
    assert [(point.size, point.samples) for point in points] == [
        (1, (3.0, 6.0)),
        (10, (30.0, 60.0)),
    ]
    assert [point.cpu_ms_per_batch for point in points] == [4.5, 45.0]


def test_every_dimension_is_measured_at_ten_times_a_size() -> None:
    for scale, dimensions in SCALES.items():
        assert dimensions.keys() == DIMENSIONS.keys(), scale
        for name, one in dimensions.items():
            assert any(10 * size in one.sizes for size in one.sizes if size) or 0 in one.sizes, name


@pytest.mark.parametrize("name", sorted(DIMENSIONS))
def test_every_dimension_runs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growing, "PARTITIONS", 20)
    small = replace(SCALES["quick"][name], sizes=(1, 3), samples=1, steps=1)
    points = measured(name, small)
    assert [point.size for point in points] == [1, 3]
    assert all(point.cpu_ms_per_batch > 0 for point in points)


def test_made_up_files_are_never_opened_and_a_compaction_takes_what_batches_bring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growing, "PARTITIONS", 20)
    side = growing.maintenance(tmp_path / "t", 50)
    assert isinstance(side, growing.Maintained)
    side.step()
    table = side.bench.catalog.get_table(Identifier(DATABASE, "t"))
    newest = latest_snapshot(table.io, table.paths)
    assert newest is not None
    assert newest.commit_kind == CommitKind.COMPACT
    entries = live_files(table, newest)
    made_up = [entry for entry in entries if entry.file.level == growing.HIGHEST_LEVEL]
    assert (len(made_up), len(entries) - len(made_up)) == (50, growing.TOUCHED)
    assert len(load_state(table).index_entries) == 20
