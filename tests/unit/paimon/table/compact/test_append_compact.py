import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ingestd.errors import CommitConflictError
from ingestd.paimon.casts.rows_json import sorted_json_lines
from ingestd.paimon.spec.binary_row import EMPTY_ROW
from ingestd.paimon.spec.data_types import SEQUENCE_NUMBER
from ingestd.paimon.table.commit.table_commit import commit
from ingestd.paimon.table.compact.table_compact import compact_table, plan_compaction
from ingestd.paimon.table.files.deletion_vectors import write_deletion_vectors
from ingestd.paimon.table.metadata.file_store_scan import live_files
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.read.table_read import index_entries, read_table
from ingestd.paimon.table.verify.table_verify import verify
from ingestd.paimon.table.write.commit_message import CommitMessage, ManifestCommittable
from ingestd.paimon.table.write.table_write import data_file_names, write_bucket
from tests.support.native_tables import NOW_MS, native_table, put, rows_table

COLUMNS = [("k", "INT"), ("v", "STRING")]
VECTORS = {"deletion-vectors.enabled": "true"}


def new(folder: Path, commits: int, **options: str) -> FileStoreTable:
    given = {name.replace("_", "-"): value for name, value in options.items()}
    table = native_table(folder, COLUMNS, options=given)
    for n in range(commits):
        put(table, [{"k": 10 * n + i, "v": f"v{n}"} for i in range(10)])
    return table


def keys(table: FileStoreTable) -> list[int]:
    lines = sorted_json_lines(read_table(table), table.schema.fields)
    return sorted(json.loads(line)["k"] for line in lines)


def files(table: FileStoreTable) -> list[Any]:
    return [e.file for e in live_files(table, latest_snapshot(table.io, table.paths))]


def vectors(
    table: FileStoreTable, deleted: dict[int, list[int]], *, replaces: tuple[str, ...] = ()
) -> None:
    """Delete rows (positions by number of the file) in one new index file."""
    names = [file.file_name for file in files(table)]
    given = {names[n]: np.array(rows, np.int64) for n, rows in deleted.items()}
    entry = write_deletion_vectors(table, EMPTY_ROW, 0, given)
    message = CommitMessage(
        EMPTY_ROW, 0, -1, new_index_files=(entry,), removed_index_files=replaces
    )
    # No one but a compaction commits vectors here: an empty one will do.
    message = dataclasses.replace(message, compact_before=(files(table)[-1],))
    moved = dataclasses.replace(
        files(table)[-1], creation_time_ms=1, file_name="data-moved.parquet"
    )
    table.io.write_new(
        f"{table.path}/bucket-0/data-moved.parquet",
        table.io.read_bytes(f"{table.path}/bucket-0/{files(table)[-1].file_name}"),
    )
    message = dataclasses.replace(message, compact_after=(moved,))
    state = load_state(table)
    commit(table, "dv", ManifestCommittable(1, (message,)), state=state, now_ms=NOW_MS)


def test_small_files_are_put_together_when_there_are_enough(tmp_path: Path) -> None:
    table = new(tmp_path, 4)
    assert compact_table(table, now_ms=NOW_MS).status == "nothing"
    put(table, [{"k": 77, "v": "x"}])
    before = keys(table)
    result = compact_table(table, now_ms=NOW_MS)
    assert [(bucket.files_before, bucket.files_after) for bucket in result.buckets] == [(5, 1)]
    assert keys(table) == before
    assert verify(table) == []


def test_a_full_compaction_takes_two(tmp_path: Path) -> None:
    table = new(tmp_path, 2)
    assert compact_table(table, now_ms=NOW_MS, full=True).status == "compacted"
    assert compact_table(table, now_ms=NOW_MS, full=True).status == "nothing"
    assert len(files(table)) == 1


def test_large_files_are_left_alone(tmp_path: Path) -> None:
    table = new(tmp_path, 6, target_file_size="1 b")
    assert plan_compaction(table, now_ms=NOW_MS) == []
    assert plan_compaction(table, now_ms=NOW_MS, full=True) == []


def test_bins_hold_about_two_files(tmp_path: Path) -> None:
    options = {"source.split.open-file-cost": "1 kb", "target-file-size": "2 kb"}
    table = new(tmp_path, 7, **options)
    sizes = [len(plan.inputs) for plan in plan_compaction(table, now_ms=NOW_MS, full=True)]
    assert sum(sizes) in (6, 7)
    assert max(sizes) <= 4


def put_numbered(table: FileStoreTable, first: int) -> None:
    """Ten rows in one bucket, numbered as they follow each other there."""
    rows = rows_table(table.schema, [{"k": first + i, "v": "v"} for i in range(10)])
    numbers = pa.array(np.arange(first, first + 10))
    rows = rows.append_column(SEQUENCE_NUMBER, numbers)
    names = data_file_names(table)
    message = write_bucket(table, EMPTY_ROW, 0, rows, new_name=names)
    state = load_state(table)
    commit(table, "u", ManifestCommittable(first + 1, (message,)), state=state, now_ms=NOW_MS)


def test_buckets_keep_the_order_of_their_rows(tmp_path: Path) -> None:
    table = new(tmp_path, 0, bucket="1", bucket_key="v")
    for n in range(7):
        put_numbered(table, 10 * n)
    result = compact_table(table, now_ms=NOW_MS)
    assert [(bucket.files_before, bucket.files_after) for bucket in result.buckets] == [(5, 1)]
    after = sorted(files(table), key=lambda file: file.min_sequence_number)
    assert [file.row_count for file in after] == [50, 10, 10]
    assert after[0].max_sequence_number < after[1].min_sequence_number
    assert compact_table(table, now_ms=NOW_MS, full=True).status == "compacted"
    assert read_table(table).column("k").to_pylist() == list(range(70))
    assert verify(table) == []


def test_deleted_rows_are_left_out_and_so_are_their_vectors(tmp_path: Path) -> None:
    table = new(tmp_path, 3, **VECTORS)
    vectors(table, {0: [0, 1, 2], 1: [9]})
    assert len(keys(table)) == 26
    # Of the first file much is deleted; both share an index file.
    result = compact_table(table, now_ms=NOW_MS)
    assert [(bucket.rows_before, bucket.rows_after) for bucket in result.buckets] == [(20, 16)]
    assert len(keys(table)) == 26
    snapshot = latest_snapshot(table.io, table.paths)
    assert snapshot is not None
    assert list(index_entries(table, snapshot)) == []
    assert verify(table) == []


def test_vectors_of_files_that_stay_are_kept(tmp_path: Path) -> None:
    table = new(tmp_path, 3, target_file_size="500 b", **VECTORS)
    vectors(table, {0: [0, 1, 2], 1: [9]})
    result = compact_table(table, now_ms=NOW_MS)
    assert [(bucket.rows_before, bucket.rows_after) for bucket in result.buckets] == [(10, 7)]
    assert len(keys(table)) == 26
    snapshot = latest_snapshot(table.io, table.paths)
    assert snapshot is not None
    assert [entry.row_count for entry in index_entries(table, snapshot)] == [1]
    assert verify(table) == []


def test_vectors_that_somebody_else_replaced_are_a_conflict(tmp_path: Path) -> None:
    table = new(tmp_path, 3, **VECTORS)
    with pytest.raises(CommitConflictError, match="index-none was replaced"):
        vectors(table, {0: [0]}, replaces=("index-none",))


def test_files_that_are_clustered_step_by_step_are_left_to_that_job(tmp_path: Path) -> None:
    table = native_table(tmp_path, COLUMNS, options={"clustering.incremental": "true"})
    for k in range(6):
        put(table, [{"k": k}])
    for full in (False, True):
        assert compact_table(table, now_ms=NOW_MS, full=full).status == "nothing"
    assert keys(table) == [0, 1, 2, 3, 4, 5]
