from pathlib import Path

import numpy as np
import pytest

from ingestd.paimon.format.base import BatchSize
from ingestd.paimon.spec.binary_row import EMPTY_ROW
from ingestd.paimon.table.compact import sorted_input as compact_input
from ingestd.paimon.table.compact.sorted_input import (
    FILE,
    POSITION,
    BucketInput,
    Source,
    batch_size,
)
from ingestd.paimon.table.compact.table_compact import compact_table
from ingestd.paimon.table.files.data_files import SYSTEM_FIELDS, DataFileReader
from ingestd.paimon.table.files.deletion_vectors import DeletionVectors
from ingestd.paimon.table.metadata.file_store_scan import live_files
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.read.table_read import index_entries
from tests.support.native_tables import NOW_MS, native_table, put

COLUMNS = [("a", "STRING"), ("b", "DOUBLE"), ("v", "INT")]


def table_of(folder: Path, runs: list[list[tuple[str, float]]]) -> FileStoreTable:
    table = native_table(folder, COLUMNS, keys=["a", "b"], options={"bucket": "1"})
    for run in runs:
        put(table, [{"a": a, "b": b, "v": n} for n, (a, b) in enumerate(run)])
    return table


def sources_of(table: FileStoreTable) -> list[Source]:
    fields = (*SYSTEM_FIELDS, *table.schema.fields)
    entries = live_files(table, latest_snapshot(table.io, table.paths))
    return [Source(0, (entry.file,), fields) for entry in entries]


def given(table: FileStoreTable, *, row_positions: bool = False) -> BucketInput:
    return BucketInput(DataFileReader(table), EMPTY_ROW, 0, ("a", "b"), row_positions=row_positions)


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_a_key_is_in_one_block_only_whatever_the_batches_are(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(size)
    texts = ["", "a", "ab", "é", "𝄞", "longer than seven"]
    runs = [
        [(texts[random.integers(6)], float(random.integers(-3, 4))) for _ in range(12)]
        for _ in range(4)
    ]
    table = table_of(tmp_path, runs)
    monkeypatch.setattr(compact_input, "batch_size", lambda _: BatchSize(1 << 20, size))
    reached: tuple[bytes, float] | None = None
    rows = 0
    for block in given(table).blocks(sources_of(table)):
        parts = [part.select(["a", "b"]).to_pylist() for _, part in block]
        for part in parts:
            keys = [(row["a"].encode(), row["b"]) for row in part]
            assert keys == sorted(set(keys))
            assert len(keys) <= size
            assert reached is None or keys[0] > reached
        reached = max((one["a"].encode(), one["b"]) for part in parts for one in part)
        rows += sum(map(len, parts))
    assert rows == sum(len(set(run)) for run in runs)


def test_rows_show_their_place_if_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_of(tmp_path, [[("a", float(n)) for n in range(5)]])
    (source,) = sources_of(table)
    monkeypatch.setattr(compact_input, "batch_size", lambda _: BatchSize(1 << 20, 2))
    blocks = list(given(table, row_positions=True).blocks([source]))
    assert [part.column(POSITION).to_pylist() for ((_, part),) in blocks] == [[0, 1], [2, 3], [4]]
    assert {value for ((_, part),) in blocks for value in part.column(FILE).to_pylist()} == {0}
    assert FILE not in next(given(table).blocks([source]))[0][1].column_names


def test_sources_without_rows_have_no_blocks(tmp_path: Path) -> None:
    table = table_of(tmp_path, [[("a", 1.0)]])
    assert list(given(table).blocks([])) == []


def test_the_wider_rows_are_and_the_more_runs_the_fewer_rows_are_in_a_block(tmp_path: Path) -> None:
    narrow = table_of(tmp_path / "n", [[("a", float(n)) for n in range(600)]])
    wide = table_of(tmp_path / "w", [[("a" * 50_000, float(n)) for n in range(600)]])
    (few,), (one,) = sources_of(narrow), sources_of(wide)
    more = [part.num_rows for ((_, part),) in given(narrow).blocks([few])]
    sizes = [part.num_rows for ((_, part),) in given(wide).blocks([one])]
    assert max(sizes) <= (16 << 20) // 50_000 < max(more)
    assert sum(sizes) == sum(more) == 600
    assert batch_size(5).memory == batch_size(1).memory // 5
    assert batch_size(10**9).fitting(100) == 1


def test_a_batch_whose_rows_are_all_deleted_does_not_end_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"bucket": "1", "deletion-vectors.enabled": "true", "num-levels": "4"}
    table = native_table(tmp_path, COLUMNS, keys=["a", "b"], options=options)
    for count in (20, 2):
        put(table, [{"a": "a", "b": float(n), "v": n} for n in range(count)])
        compact_table(table, now_ms=NOW_MS, full=count == 20)
    newest = latest_snapshot(table.io, table.paths)
    assert newest is not None
    reader = DataFileReader(table, DeletionVectors.of(table, index_entries(table, newest)))
    (source,) = (one for one in sources_of(table) if one.files[0].row_count == 20)
    monkeypatch.setattr(compact_input, "batch_size", lambda _: BatchSize(1 << 20, 2))
    blocks = BucketInput(reader, EMPTY_ROW, 0, ("a", "b")).blocks([source])
    found = [v for block in blocks for _, part in block for v in part.column("v").to_pylist()]
    assert found == list(range(2, 20))
