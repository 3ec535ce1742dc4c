"""Rows that a table contains, or that are older than a truncate, are dropped and counted."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from ingestd.cdc.base import ChangeBatch, RecordChunk
from ingestd.ingest.rows.conform import only_new
from ingestd.ingest.settings.context import TableContext
from ingestd.ingest.values.source_points import MAX_SKEW_MS, SourcePoint
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable

NOW = 1_700_000_000_000


@pytest.fixture
def target() -> TableContext:
    schema = new_schema([("k", DataType("INT"))], (), (), {"bucket": "-1"}, 1)
    return TableContext("db.t", FileStoreTable("/w/t", schema, MemoryFileIO(), "db.t"))


def dropped(
    target: TableContext, positions: list[int], times: list[int], partition: int = 1
) -> tuple[list[int], dict[str, int]]:
    """The offsets of the rows that are left, and the counts of the others."""
    offsets, count = np.arange(10, 10 + len(positions)), len(positions)
    keys, values = [None] * count, [b"{}"] * count
    chunk = RecordChunk("t", partition, offsets, NOW + np.array(times), keys, values, None)
    batch = ChangeBatch(
        source=(None, None, "t"),
        columns=pa.table({"k": pa.array(range(count), pa.int32())}),
        types={"k": DataType("INT")},
        primary_keys=(),
        row_kind=np.zeros(count, np.int8),
        offset=offsets,
        position=np.array(positions),
        snapshot_row=np.zeros(count, np.bool_),
        unavailable={},
    )
    new, counts = only_new("src", chunk, target, batch)
    return new.offset.tolist(), counts


def test_without_a_truncate_only_covered_rows_are_dropped(target: TableContext) -> None:
    held = replace(target, covered={"src": {"t": {1: 11}}})
    assert dropped(held, [1, 2], [0, 0]) == ([11], {"covered": 1, "truncated": 0})


def test_rows_up_to_the_point_of_a_truncate_are_dropped(target: TableContext) -> None:
    emptied = replace(target, truncate_before=SourcePoint(50, NOW))
    assert dropped(emptied, [49, 50, 51], [0, 0, 0]) == ([12], {"covered": 0, "truncated": 2})


def test_rows_of_positions_that_began_again_are_kept(target: TableContext) -> None:
    emptied, later = replace(target, truncate_before=SourcePoint(50, NOW)), MAX_SKEW_MS + 1
    assert dropped(emptied, [60, 1, 2], [later] * 3)[0] == [10, 11, 12]


def test_rows_before_a_truncate_in_its_partition_are_dropped_whatever_their_position(
    target: TableContext,
) -> None:
    emptied = replace(
        target,
        covered={"src": {"t": {1: 11}}},
        truncates={"src": {"t": {1: 13}}},
        truncate_before=SourcePoint(50, NOW),
    )
    counts = {"covered": 1, "truncated": 2}
    assert dropped(emptied, [20, 30, 40, -1, 60], [0] * 5) == ([13, 14], counts)
    assert dropped(emptied, [20, 30, 40, -1, 60], [0] * 5, partition=2)[0] == [14]
