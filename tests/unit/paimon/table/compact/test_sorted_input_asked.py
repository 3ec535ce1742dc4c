"""Sources that are not compacted but asked for older rows: what of them is read, and what comes."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from ingestd.errors import FormatError
from ingestd.paimon.format.base import BatchSize
from ingestd.paimon.spec.binary_row import EMPTY_ROW
from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.table.compact import sorted_input
from ingestd.paimon.table.compact.sorted_input import POSITION, BucketInput, Source
from ingestd.paimon.table.files.data_files import SYSTEM_FIELDS, DataFileReader, live_path
from ingestd.paimon.table.metadata.file_store_scan import live_files
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from tests.support.native_tables import native_table, put

Pair = tuple[str, int]
COLUMNS = [("a", "STRING"), ("b", "INT"), ("v", "INT")]


def table_of(folder: Path, *files: Sequence[Pair]) -> FileStoreTable:
    table = native_table(folder, COLUMNS, keys=["a", "b"], options={"bucket": "1"})
    for pairs in files:
        put(table, [{"a": a, "b": b, "v": n} for n, (a, b) in enumerate(pairs)])
    return table


def files_of(table: FileStoreTable) -> list[DataFileMeta]:
    entries = live_files(table, latest_snapshot(table.io, table.paths))
    return sorted((entry.file for entry in entries), key=lambda file: file.max_sequence_number)


def source(table: FileStoreTable, level: int, *files: DataFileMeta, picked: bool = False) -> Source:
    return Source(level, files, (*SYSTEM_FIELDS, *table.schema.fields), picked)


def grouped(table: FileStoreTable, file: DataFileMeta, rows: int) -> Path:
    """A file in row groups of this many rows."""
    path = Path(live_path(table, EMPTY_ROW, 0, file))
    pq.write_table(pq.read_table(path), path, row_group_size=rows, store_schema=False)
    return path


def damaged(path: Path, group: int) -> None:
    """The pages of the last column of a row group are no pages any longer."""
    metadata = pq.read_metadata(path)
    chunk = metadata.row_group(group).column(metadata.num_columns - 1)
    place = chunk.dictionary_page_offset or chunk.data_page_offset
    content = bytearray(path.read_bytes())
    content[place : place + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    path.write_bytes(content)


def found(table: FileStoreTable, sources: list[Source]) -> dict[int, list[Pair]]:
    """The keys that each source gives."""
    given = BucketInput(DataFileReader(table), EMPTY_ROW, 0, ("a", "b"), row_positions=True)
    keys: dict[int, list[Pair]] = {number: [] for number in range(len(sources))}
    for block in given.blocks(sources):
        assert any(sources[number].picked for number, _ in block)
        for number, part in block:
            pairs = zip(part.column("a").to_pylist(), part.column("b").to_pylist(), strict=True)
            keys[number] += pairs
            # A position is that of the row in its whole file.
            assert part.column(POSITION).to_pylist() == part.column("v").to_pylist()
    return keys


def pairs(*numbers: int) -> list[Pair]:
    return [(f"k{number:04}", number) for number in numbers]


def test_files_without_a_key_that_is_compacted_are_not_opened(tmp_path: Path) -> None:
    bounds = [range(10), range(10, 20), range(20, 30), range(30, 40)]
    table = table_of(tmp_path, *(pairs(*numbers) for numbers in bounds), pairs(12, 35, 60))
    *older, new = files_of(table)
    for gone in (older[0], older[2]):
        Path(live_path(table, EMPTY_ROW, 0, gone)).unlink()
    keys = found(table, [source(table, 0, new, picked=True), source(table, 3, *older)])
    assert keys == {0: pairs(12, 35, 60), 1: pairs(12, 35)}


def test_row_groups_without_a_key_that_is_compacted_are_not_decoded(tmp_path: Path) -> None:
    table = table_of(tmp_path, pairs(*range(100)), pairs(27, 71))
    old, new = files_of(table)
    path = grouped(table, old, 10)
    for group in (0, 1, 3, 6, 9):
        damaged(path, group)
    sources = [source(table, 0, new, picked=True), source(table, 3, old)]
    assert found(table, sources) == {0: pairs(27, 71), 1: pairs(27, 71)}
    damaged(path, 7)
    with pytest.raises(FormatError):
        found(table, sources)


def test_of_row_groups_without_any_of_the_keys_only_keys_are_decoded(tmp_path: Path) -> None:
    irregular, even = range(1, 200, 2), range(0, 200, 2)
    table = table_of(tmp_path, pairs(*irregular), pairs(*sorted([*even, 71])))
    old, new = files_of(table)
    path = grouped(table, old, 10)
    for group in (0, 1, 2, 4, 5, 9):
        # The last column is none of the key's.
        damaged(path, group)
    sources = [source(table, 0, new, picked=True), source(table, 3, old)]
    assert found(table, sources)[1] == pairs(71)


def test_a_file_of_another_number_of_rows_is_reported_though_groups_were_left_out(
    tmp_path: Path,
) -> None:
    table = table_of(tmp_path, pairs(*range(40)), pairs(2, 35))
    old, new = files_of(table)
    grouped(table, old, 10)
    wrong = dataclasses.replace(old, row_count=50)
    with pytest.raises(FormatError, match="has 40 rows, expected 50"):
        found(table, [source(table, 0, new, picked=True), source(table, 3, wrong)])


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
@pytest.mark.parametrize("rows", [2, 5, 1000])
def test_older_rows_of_all_keys_come_whatever_batches_and_row_groups_are(
    size: int, rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(size * rows)

    def some(low: int, high: int, count: int) -> list[Pair]:
        numbers = np.sort(random.choice(np.arange(low, high), count, replace=False)).tolist()
        # Keys that share their first column, so that bounds of row groups do.
        return [(f"k{number // 8:03}", number) for number in numbers]

    files = [some(0, 60, 25), some(60, 120, 40), some(0, 120, 30), some(5, 110, 9), some(40, 90, 4)]
    table = table_of(tmp_path, *files)
    stored = files_of(table)
    for file in stored:
        grouped(table, file, rows)
    monkeypatch.setattr(sorted_input, "batch_size", lambda _: BatchSize(1 << 20, size))
    keys = found(
        table,
        [
            source(table, 0, stored[4], picked=True),
            source(table, 3, *stored[:2]),
            source(table, 1, stored[3], picked=True),
            source(table, 4, stored[2]),
        ],
    )
    compacted = {*files[3], *files[4]}
    assert (keys[0], keys[2]) == (files[4], files[3])
    for number, older in ((1, [*files[0], *files[1]]), (3, files[2])):
        assert keys[number] == sorted(keys[number])
        assert set(older) & compacted <= set(keys[number]) <= set(older)


def test_older_rows_of_few_keys_come_in_few_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_of(tmp_path, pairs(*range(200)), pairs(*range(0, 200, 20)))
    old, new = files_of(table)
    sources = [source(table, 0, new, picked=True), source(table, 3, old)]
    given = BucketInput(DataFileReader(table), EMPTY_ROW, 0, ("a", "b"))
    monkeypatch.setattr(sorted_input, "batch_size", lambda _: BatchSize(1 << 20, 10))
    assert [[part.num_rows for _, part in block] for block in given.blocks(sources)] == [[10, 10]]
    # As many as memory is there for.
    monkeypatch.setattr(sorted_input, "batch_size", lambda _: BatchSize(1, 10))
    assert len(list(given.blocks(sources))) > 5
