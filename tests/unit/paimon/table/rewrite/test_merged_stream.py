"""The merged rows of a bucket, piece by piece, are those that readers get."""

from typing import Any

import pyarrow as pa
import pytest

from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.table.compact.compact_bucket import CompactBucket
from ingestd.paimon.table.compact.table_compact import compact_table
from ingestd.paimon.table.metadata.file_store_scan import live_files
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.read.table_read import read_table
from ingestd.paimon.table.rewrite.merged_stream import bucket_rows, merged_runs
from tests.support.native_tables import NOW_MS, native_table, put

COLUMNS = [("id", "INT"), ("v", "STRING")]


def bucket_of(table: FileStoreTable) -> CompactBucket:
    state = load_state(table)
    files = live_files(table, latest_snapshot(table.io, table.paths))
    (partition,) = {entry.partition for entry in files}
    index = (*state.index_entries.values(), *state.repeated_index_entries)
    return CompactBucket(table, partition, 0, 1, tuple(entry.file for entry in files), index)


def streamed(table: FileStoreTable) -> list[dict[str, Any]]:
    parts = list(bucket_rows(bucket_of(table)))
    return pa.concat_tables(parts).select(table.schema.field_names).to_pylist()


@pytest.mark.parametrize("engine", ["deduplicate", "partial-update"])
def test_rows_are_merged_in_key_order_without_the_deleted_ones(engine: str) -> None:
    options = {"bucket": "1", "merge-engine": engine, "partial-update.remove-record-on-delete":
               "true"} if engine == "partial-update" else {"bucket": "1"}  # fmt: skip
    table = native_table("/w", COLUMNS, keys=["id"], options=options, io=MemoryFileIO())
    put(table, [{"id": n, "v": "a"} for n in (5, 1, 3)])
    compact_table(table, now_ms=NOW_MS, full=True)
    put(table, [{"id": 1, "v": "b"}, {"id": 3, "v": None, "_kind": 3}])
    put(table, [{"id": 0, "v": "c"}])
    assert streamed(table) == read_table(table).to_pylist()
    assert [row["id"] for row in streamed(table)] == [0, 1, 5]


def test_rows_of_append_tables_come_in_their_order() -> None:
    options = {"bucket": "1", "bucket-key": "id"}
    table = native_table("/w", COLUMNS, options=options, io=MemoryFileIO())
    put(table, [{"id": n, "v": "a"} for n in (5, 1)])
    put(table, [{"id": 5, "v": "b"}])
    assert [row["v"] for row in streamed(table)] == ["a", "a", "b"]
    assert [row["id"] for row in streamed(table)] == [5, 1, 5]


def test_runs_are_merged_by_key() -> None:
    table = native_table("/w", COLUMNS, keys=["id"], options={"bucket": "1"}, io=MemoryFileIO())
    put(table, [{"id": n, "v": "a"} for n in (1, 4)])
    put(table, [{"id": n, "v": "b"} for n in (2, 3)])
    bucket = bucket_of(table)
    found = pa.concat_tables(list(merged_runs(bucket, [[file] for file in bucket.files])))
    assert found.column("id").to_pylist() == [1, 2, 3, 4]
    assert found.column("v").to_pylist() == ["a", "b", "b", "a"]
