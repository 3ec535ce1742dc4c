"""Rows are put in the order of their offsets, whatever order their blobs come in."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from ingestd.ingest.rows.blobs import (
    KIND,
    OFFSET,
    POSITION,
    UNAVAILABLE_PREFIX,
    Blob,
    BlobOrigin,
    Report,
    UnsentRows,
    encode_abort_marker,
    encode_report,
    receive,
)
from ingestd.ingest.schemas.discovery import TableTruncate
from ingestd.ingest.settings.context import QualifiedSourceTable
from ingestd.ingest.stages.map_side_dedup import split_by_slot
from ingestd.ingest.stages.write_stage import RANK, runs


def blob(
    offsets: list[int],
    partition: int = 0,
    topic: str = "t",
    table: str = "lake.a",
    positions: list[int] | None = None,
    kinds: list[int] | None = None,
    **extra: list[bool],
) -> Blob:
    columns = {"id": pa.array(offsets), KIND: pa.array(kinds or [0] * len(offsets), pa.int8())}
    columns[OFFSET] = pa.array(offsets, pa.int64())
    if positions is not None:
        columns[POSITION] = pa.array(positions, pa.int64())
    columns |= {UNAVAILABLE_PREFIX + name: pa.array(marks) for name, marks in extra.items()}
    origin = BlobOrigin(table, "src", topic, partition, offsets[0])
    return UnsentRows(origin, pa.table(columns)).encoded()


def offsets_of(blobs: Sequence[Blob], max_bytes: int = 1 << 20) -> list[list[int]]:
    received = receive(blobs)
    return [run.column(OFFSET).to_pylist() for run in runs(received.rows["lake.a"], max_bytes)]


def test_blobs_are_ordered_by_topic_partition_and_offset() -> None:
    blobs = [blob([7, 8]), blob([0], 1), blob([1, 2]), blob([0], 0, "s"), blob([4], 10)]
    assert offsets_of(blobs) == [[0, 1, 2, 7, 8, 0, 4]]


def test_interleaved_blobs_of_one_chunk_are_merged_by_offset() -> None:
    blobs = [blob([1, 4, 6]), blob([2, 3, 7]), blob([5]), blob([8, 9])]
    assert offsets_of(blobs) == [[1, 2, 3, 4, 5, 6, 7, 8, 9]]


def test_rows_of_one_record_keep_their_order() -> None:
    assert offsets_of([blob([3, 3, 4]), blob([4, 4])]) == [[3, 3, 4, 4, 4]]


def test_rows_that_go_by_their_ranks_are_not_moved() -> None:
    received = receive([blob([1, 4, 6]), blob([2, 3])])
    (run,) = runs(received.rows["lake.a"], 1 << 20, by_number=True)
    assert run.column(OFFSET).to_pylist() == [1, 4, 6, 2, 3]
    assert run.column(RANK).to_pylist() == [0, 3, 4, 1, 2]


def test_left_out_cells_put_rows_in_order_in_any_case() -> None:
    received = receive([blob([1, 4], doc=[False, True]), blob([2, 3])])
    (run,) = runs(received.rows["lake.a"], 1 << 20, by_number=True)
    assert run.column(OFFSET).to_pylist() == [1, 2, 3, 4]


def test_many_bytes_make_several_runs_whose_ranks_keep_the_order() -> None:
    blobs = [blob([1, 5]), blob([2, 6]), blob([7]), blob([8])]
    assert offsets_of(blobs, max_bytes=1) == [[1, 5], [2, 6], [7], [8]]
    received = receive(blobs)
    found = [run.column(RANK).to_pylist() for run in runs(received.rows["lake.a"], 1)]
    assert found == [[0, 2], [1, 3], [4], [5]]


@pytest.mark.parametrize("max_bytes", [1, 60, 200, 1 << 20])
def test_runs_in_turn_hold_the_ranks_one_after_another(max_bytes: int) -> None:
    """Whatever blobs and topic partitions the rows are in."""
    blobs = [
        blob([3, 4, 5], positions=[30, 40, 50]),
        blob([0, 2], positions=[1, 20]),
        blob([1], positions=[10]),
        blob([7, 8, 8, 9], partition=1, positions=[5, 35, 35, 45]),
    ]
    found = list(runs(receive(blobs).rows["lake.a"], max_bytes, by_number=True))
    ranks = [sorted(run.column(RANK).to_pylist()) for run in found]
    assert [rank for one in ranks for rank in one] == list(range(10))
    assert (len(found) > 1) == (max_bytes < 1 << 20)
    by_rank = sorted(
        (rank, position)
        for run in found
        for rank, position in zip(
            run.column(RANK).to_pylist(), run.column(POSITION).to_pylist(), strict=True
        )
    )
    assert [position for _, position in by_rank] == [1, 5, 10, 20, 30, 35, 35, 40, 45, 50]


def test_large_rows_that_stand_together_do_not_make_a_large_run() -> None:
    def sized(offset: int, size: int) -> Blob:
        columns = {"id": pa.array(["x" * size]), KIND: pa.array([0], pa.int8())}
        columns[OFFSET] = pa.array([offset], pa.int64())
        return UnsentRows(BlobOrigin("lake.a", "src", "t", 0, offset), pa.table(columns)).encoded()

    blobs = [sized(n, 2000 if 10 <= n < 14 else 10) for n in range(40)]
    found = list(runs(receive(blobs).rows["lake.a"], 2500, by_number=True))
    assert [rank for run in found for rank in run.column(RANK).to_pylist()] == list(range(40))
    texts = [run.column("id").to_pylist() for run in found]
    assert max(sum(map(len, text)) for text in texts) < 2500 + 2000
    assert len(found) < 8


def test_source_position_decides_between_partitions() -> None:
    blobs = [
        blob([10, 11, 12], 0, positions=[100, 300, 500]),
        blob([50, 51, 52], 1, positions=[200, 300, 400]),
    ]
    assert offsets_of(blobs) == [[10, 50, 11, 51, 52, 12]]


@pytest.mark.parametrize("kept", [False, True])
def test_the_delete_of_an_update_precedes_its_insert(kept: bool) -> None:
    """Also if it is kept as an update, but no row overtakes another of its partition."""
    insert = blob([1, 2], 0, positions=[20, 30])
    kinds = [0, 2 if kept else 3, 0, 2 if kept else 3]
    marks = {"": [False, True, False, True]} if kept else {}
    delete = blob([5, 6, 7, 8], 1, positions=[10, 20, 30, 30], kinds=kinds, **marks)
    assert offsets_of([insert, delete]) == [[5, 6, 1, 2, 7, 8]]


def test_repeats_within_a_partition_stay_where_they_are() -> None:
    blobs = [
        blob([1, 2, 3, 4], 0, positions=[100, 300, 100, 300]),
        blob([8, 9], 1, positions=[200, 400]),
    ]
    assert offsets_of(blobs) == [[1, 8, 2, 3, 4, 9]]


def test_rows_without_position_follow_the_row_before_them() -> None:
    blobs = [
        blob([1, 2, 3], 0, positions=[100, -1, 300]),
        blob([8], 1, positions=[200]),
        blob([5, 6], 2),
    ]
    assert offsets_of(blobs) == [[5, 6, 1, 2, 8, 3]]


def test_left_out_cells_keep_all_rows_in_one_run() -> None:
    blobs = [blob([1]), blob([2]), blob([3], doc=[True])]
    assert offsets_of(blobs, max_bytes=1) == [[1, 2, 3]]
    received = receive(blobs)
    (run,) = runs(received.rows["lake.a"], 1)
    assert run.column(UNAVAILABLE_PREFIX + "doc").to_pylist() == [None, None, True]


def test_blobs_of_a_task_are_sorted_out_by_table() -> None:
    report = Report(
        source_tables={"lake.a": frozenset({QualifiedSourceTable("src", None, None, "a")})}
    )
    received = receive([blob([1]), blob([1], table="lake.b"), encode_report(report)])
    assert sorted(received.rows) == ["lake.a", "lake.b"]
    assert received.reports == (report,)
    assert not received.is_aborted


@pytest.mark.parametrize(
    "extra",
    [
        encode_abort_marker(),
        encode_report(
            Report(
                runs_again=True,
                truncates=(
                    TableTruncate(
                        "lake.a", QualifiedSourceTable("src", None, None, "a"), None, "t", 0, 3
                    ),
                ),
            )
        ),
    ],
    ids=["abort marker", "report"],
)
def test_batch_that_runs_again_is_aborted(extra: bytes) -> None:
    assert receive([blob([1]), extra]).is_aborted


def test_rows_are_split_by_slot_in_their_order() -> None:
    rows = pa.table({"x": [0, 1, 2, 3, 4]})
    parts = split_by_slot(rows, np.array([2, 0, 2, 0, 1]))
    assert [(slot, part.column("x").to_pylist()) for slot, part in parts] == [
        (0, [1, 3]),
        (1, [4]),
        (2, [0, 2]),
    ]
    assert split_by_slot(rows.slice(0, 0), np.array([], np.int64)) == []
    ((slot, same),) = split_by_slot(rows, np.full(5, 3))
    assert (slot, same.num_rows) == (3, 5)
