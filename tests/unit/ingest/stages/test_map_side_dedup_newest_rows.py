"""Rows that no later row of their key follows, and where nothing else counts."""

import numpy as np
import pyarrow as pa
import pytest

from ingestd.ingest.rows.blobs import HASH, KIND, POSITION, UNAVAILABLE_PREFIX
from ingestd.ingest.stages.map_side_dedup import (
    can_be_left_out,
    keeps_newest,
    newest_rows,
    with_reached_positions,
)
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.data_types import DataType, RowKind
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable


def table(
    keys: tuple[str, ...] = ("id",), partitions: tuple[str, ...] = (), **options: str
) -> FileStoreTable:
    columns = [("id", DataType("INT")), ("day", DataType("STRING"))]
    named = {name.replace("_", "-"): value for name, value in options.items()}
    schema = new_schema(columns, keys, partitions, {"bucket": "1", **named}, 0)
    return FileStoreTable("/t", schema, MemoryFileIO(), "lake.t")


@pytest.mark.parametrize("bucket", ["-1", "4"])
def test_a_plain_table_keeps_the_newest_row_of_a_key(bucket: str) -> None:
    assert keeps_newest(table(bucket=bucket))
    assert keeps_newest(table(bucket=bucket, changelog_producer="lookup"))


@pytest.mark.parametrize(
    "options",
    [
        {"merge_engine": "partial-update"},
        {"merge_engine": "aggregation"},
        {"merge_engine": "first-row"},
        {"changelog_producer": "input"},
        {"sequence.field": "day"},
        {"rowkind.field": "day"},
        {"ignore_delete": "true"},
        {"ignore_update_before": "true"},
        {"bucket": "-2"},
    ],
    ids=str,
)
def test_tables_to_which_older_rows_mean_something_get_them_all(options: dict[str, str]) -> None:
    assert not keeps_newest(table(**options))


def test_rows_without_a_key_or_of_keys_across_partitions_all_count() -> None:
    assert not keeps_newest(table((), bucket="-1"))
    assert not keeps_newest(table(("id",), ("day",), bucket="-1"))
    assert keeps_newest(table(("id", "day"), ("day",), bucket="-1"))


@pytest.mark.parametrize("hashed", [True, False])
def test_the_last_row_of_each_key_stays_where_it_stands(hashed: bool) -> None:
    rows = pa.table({"id": pa.array([1, 2, 1, 3, 2, 1], pa.int32()), "day": ["x"] * 6})
    if hashed:
        rows = rows.append_column(HASH, pa.array([7, 8, 7, 9, 8, 7], pa.int32()))
    assert newest_rows(table(), rows).tolist() == [3, 4, 5]


def test_other_keys_of_the_same_hash_stay() -> None:
    ids = pa.array([1, 2, 1, 1], pa.int32())
    rows = pa.table({"id": ids, "day": ["x"] * 4, HASH: pa.array([5] * 4, pa.int32())})
    assert newest_rows(table(), rows).tolist() == [0, 1, 3]


def test_the_partition_is_part_of_the_key() -> None:
    target = table(("day", "id"), ("day",))
    rows = pa.table({"id": pa.array([1, 1, 1], pa.int32()), "day": ["x", "y", "x"]})
    rows = rows.append_column(HASH, pa.array([5, 5, 5], pa.int32()))
    assert newest_rows(target, rows).tolist() == [0, 1, 2]
    assert newest_rows(target, rows.take([0, 2, 1])).tolist() == [1, 2]


def test_rows_in_chunks_are_one() -> None:
    part = pa.table({"id": pa.array([1, 2], pa.int32()), "day": ["x", "y"]})
    assert newest_rows(table(), pa.concat_tables([part, part])).tolist() == [2, 3]


def test_no_row_is_left_out_where_cells_or_rows_before_changes_may_be_asked_for() -> None:
    kinds = pa.array([RowKind.INSERT, RowKind.DELETE], pa.int8())
    rows = pa.table({"id": [1, 2], KIND: kinds})
    assert can_be_left_out(rows)
    marks = pa.array([False, True])
    assert not can_be_left_out(rows.append_column(f"{UNAVAILABLE_PREFIX}day", marks))
    before = pa.array([RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER], pa.int8())
    assert not can_be_left_out(pa.table({"id": [1, 2], KIND: before}))


def test_positions_say_how_far_the_log_had_got_in_a_slot() -> None:
    rows = pa.table({"id": [1, 2, 3, 4, 5], POSITION: [9, 3, -1, 8, 12]})
    found = with_reached_positions(rows, np.array([0, 1, 1, 0, 0]))
    assert found.column(POSITION).to_pylist() == [9, 3, 3, 9, 12]


def test_rows_without_positions_stay_as_they_are() -> None:
    rows = pa.table({"id": [1, 2]})
    assert with_reached_positions(rows, np.array([0, 0])) is rows
