"""Sorting with a bound on memory gives what sorting in memory gives."""

import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from ingestd.errors import StorageError
from ingestd.paimon.table.rewrite import sort_compact
from ingestd.paimon.table.rewrite.sort_compact import ByAll, ByColumns, sample_of, sorted_rows

NAMES = ("a", "s")


class Rows:
    """Some rows, given in parts of seven."""

    def __init__(self, rows: list[tuple[int | None, str | None]]) -> None:
        self.table = pa.table(
            {
                "a": pa.array([row[0] for row in rows], pa.int32()),
                "s": pa.array([row[1] for row in rows], pa.string()),
                "n": np.arange(len(rows)),
            }
        )

    def read(self) -> Iterator[pa.Table]:
        for start in range(0, self.table.num_rows, 7):
            yield self.table.slice(start, 7)

    def sorted(self, order: sort_compact.SortOrder, size: int | None = None) -> list[pa.Table]:
        sample = sample_of(self.read, self.table.num_rows)
        size = self.table.nbytes if size is None else size
        return list(sorted_rows(self.read, sample, size, order))


def drawn(count: int) -> Rows:
    draw = random.Random(count)
    texts = [None, "", "abcdefgh", "abcdefghZ", "abcdefghA", "z"]
    return Rows([(draw.choice([None, -3, 0, 8]), draw.choice(texts)) for _ in range(count)])


@pytest.mark.parametrize("memory", [100, 1_000, 1 << 20])
def test_rows_come_in_order_however_little_memory_there_is(
    memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = drawn(500)
    wanted = rows.table.take(ByColumns(NAMES).order(rows.table))
    monkeypatch.setattr(sort_compact, "MEMORY", memory)
    found = pa.concat_tables(rows.sorted(ByColumns(NAMES)))
    assert found.select(NAMES).to_pylist() == wanted.select(NAMES).to_pylist()
    assert np.sort(found.column("n").to_numpy()).tolist() == list(range(500))


def test_parts_are_no_larger_than_memory_even_if_all_rows_are_alike(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sort_compact, "MEMORY", 400)
    rows = Rows([(1, "x")] * 300)
    parts = rows.sorted(ByColumns(NAMES))
    assert len(parts) > 10
    assert max(part.num_rows for part in parts) < 60
    assert sum(part.num_rows for part in parts) == 300


def test_rows_that_are_wider_than_was_thought_are_not_sorted_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sort_compact, "MEMORY", 1_000)
    rows = drawn(500)
    wanted = rows.table.take(ByColumns(NAMES).order(rows.table))
    parts = rows.sorted(ByColumns(NAMES), size=0)
    assert max(part.nbytes for part in parts) < rows.table.nbytes // 3
    assert pa.concat_tables(parts).select(NAMES).to_pylist() == wanted.select(NAMES).to_pylist()


def test_rows_near_in_all_columns_are_near_in_z_order(monkeypatch: pytest.MonkeyPatch) -> None:
    grid = [(x, f"{y:03}") for x in range(32) for y in range(32)]
    random.Random(1).shuffle(grid)
    rows = Rows(list(grid))
    monkeypatch.setattr(sort_compact, "MEMORY", 2_000)
    order = ByAll.of(["a", "s"], sample_of(rows.read, len(grid)))
    found = pa.concat_tables(rows.sorted(order))
    assert np.sort(found.column("n").to_numpy()).tolist() == list(range(len(grid)))
    for start in range(0, len(grid), 64):
        part = found.slice(start, 64)
        spans = [len(set(part.column(name).to_pylist())) for name in ("a", "s")]
        # A sixteenth of the rows is a quarter of each column's values, give or take a step.
        assert max(spans) <= 12


def test_a_sample_is_spread_over_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sort_compact, "SAMPLE_ROWS", 10)
    numbers = sample_of(drawn(100).read, 100).column("n").to_pylist()
    assert numbers == list(range(0, 100, 10))


def test_a_disk_that_cannot_be_used_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sort_compact, "MEMORY", 100)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "not there"))
    with pytest.raises(StorageError, match=r"not there.*TMPDIR"):
        drawn(100).sorted(ByColumns(NAMES))


def test_a_disk_that_is_full_is_named_even_if_only_closing_a_file_shows_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sort_compact, "MEMORY", 1_000)
    full = lambda **_: Path("/dev/full").open("r+b")  # noqa: E731, SIM115  (closed by the sort)
    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with pytest.raises(StorageError, match="make room"):
        drawn(300).sorted(ByColumns(NAMES))
