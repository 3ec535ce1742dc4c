"""Rows without a place in the source's log, on both sides of a statement about their columns."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from ingestd.cdc.base import ChangeBatch, RecordChunk, SourceTable
from ingestd.ingest.schemas.column_history import (
    COLUMN_HISTORY_OPTION,
    ProvenChange,
    StatementOrigin,
    apply_renames,
    column_history_text,
    read_column_history,
)
from ingestd.ingest.values.source_points import MAX_SKEW_MS
from ingestd.paimon.spec.data_types import DataType

TEXT = DataType("STRING")
HERE = StatementOrigin(time=1005, topic="t", partition=0, offset=12)


def rows(*positions: int, **columns: list[str | None]) -> ChangeBatch:
    """A row for each position at offsets from 10 on."""
    count = len(positions)
    return ChangeBatch(
        source=SourceTable("d", None, "t"),
        columns=pa.table(columns),
        types=dict.fromkeys(columns, TEXT),
        primary_keys=(),
        row_kind=np.zeros(count, np.int8),
        offset=np.arange(10, 10 + count, dtype=np.int64),
        position=np.array(positions, np.int64),
        snapshot_row=np.zeros(count, np.bool_),
        unavailable={},
    )


def chunk(*times: int, partition: int = 0) -> RecordChunk:
    offsets = np.arange(10, 10 + len(times), dtype=np.int64)
    stamps = np.array(times, np.int64)
    return RecordChunk("t", partition, offsets, stamps, [], [], None)


def test_in_one_topic_partition_the_offset_decides() -> None:
    batch = rows(-1, -1, -1, -1, x=["a", "b", "c", "d"], id=["1", "2", "3", "4"])
    here = chunk(1005, 1005, 1005, 1005)
    done = apply_renames(batch, (ProvenChange(0, "x", "", HERE),), here)
    assert done.columns["x"].to_pylist() == [None, None, "c", "d"]
    done = apply_renames(batch, (ProvenChange(0, "x", "y", HERE),), here)
    assert done.columns["x"].to_pylist() == [None, None, "c", "d"]
    assert done.columns["y"].to_pylist() == ["a", "b", None, None]


@pytest.mark.parametrize("position", [0, 700])
def test_between_topic_partitions_the_time_decides_and_nothing_is_lost_in_doubt(
    position: int,
) -> None:
    batch = rows(-1, -1, -1, x=["a", "b", "c"], id=["1", "2", "3"])
    there = chunk(1004, 1005, 1006, partition=1)
    done = apply_renames(batch, (ProvenChange(position, "x", "", HERE),), there)
    assert done.columns["x"].to_pylist() == [None, "b", "c"]


def test_in_doubt_a_renamed_column_keeps_what_the_row_has_under_the_new_name() -> None:
    batch = rows(-1, -1, x=["a", "b"], y=[None, "other"])
    there = chunk(1005, 1005, partition=1)
    done = apply_renames(batch, (ProvenChange(0, "x", "y", HERE),), there)
    assert done.columns["y"].to_pylist() == ["a", "other"]
    assert done.columns["x"].to_pylist() == [None, "b"]


def test_positions_come_before_records_where_both_have_one() -> None:
    batch = rows(600, 800, x=["a", "b"], id=["1", "2"])
    there = chunk(2000, 1, partition=1)
    done = apply_renames(batch, (ProvenChange(700, "x", "", HERE),), there)
    assert done.columns["x"].to_pylist() == [None, "b"]


MINUTES = 3 * MAX_SKEW_MS


def test_rows_from_before_positions_began_again_are_older_than_a_later_statement() -> None:
    """Their topic partition lags, and their positions are those of the log before."""
    batch = rows(900, 800, x=["a", "b"], id=["1", "2"])
    there = chunk(1005, 1005 + 2 * MINUTES, partition=1)
    at = StatementOrigin(1005 + MINUTES, "ddl", 0, 3)
    done = apply_renames(batch, (ProvenChange(700, "x", "y", at),), there)
    assert done.columns["y"].to_pylist() == ["a", None]
    assert done.columns["x"].to_pylist() == [None, "b"]
    done = apply_renames(batch, (ProvenChange(700, "x", "", at),), there)
    assert done.columns["x"].to_pylist() == [None, "b"]


def test_a_column_that_was_dropped_and_added_again_is_kept_after_positions_began_again() -> None:
    batch = rows(5, 6, x=["a", "b"], id=["1", "2"])
    there = chunk(1005, 1005 + MINUTES, partition=1)
    done = apply_renames(batch, (ProvenChange(700, "x", "", HERE),), there)
    assert done.columns["x"].to_pylist() == [None, "b"]


def test_a_row_that_is_sent_again_later_has_the_new_name_of_a_column() -> None:
    batch = rows(5, x=["a"], id=["1"])
    there = chunk(1005 + MINUTES, partition=1)
    done = apply_renames(batch, (ProvenChange(700, "x", "y", HERE),), there)
    assert done.columns["y"].to_pylist() == ["a"]


def test_a_value_under_the_old_name_beside_one_under_the_new_name_is_not_lost() -> None:
    batch = rows(5, x=["other"], y=["renamed"])
    done = apply_renames(batch, (ProvenChange(700, "x", "y", HERE),), chunk(1005, partition=1))
    assert done.columns.to_pylist() == [{"x": "other", "y": "renamed"}]


def test_a_column_may_go_and_come_back_again_and_again() -> None:
    def gone(offset: int) -> ProvenChange:
        return ProvenChange(0, "x", "", StatementOrigin(1000, "t", 0, offset))

    batch = rows(-1, -1, -1, x=["a", "b", "c"], id=["1", "2", "3"])
    column_history = read_column_history(
        {COLUMN_HISTORY_OPTION: column_history_text([gone(12), gone(11)])}, "t"
    )
    assert column_history == (gone(11), gone(12))
    done = apply_renames(batch, column_history, chunk(1000, 1000, 1000))
    assert done.columns["x"].to_pylist() == [None, None, "c"]


def test_what_an_older_version_noted_counts_rows_without_a_place_as_older() -> None:
    column_history = read_column_history({COLUMN_HISTORY_OPTION: '[[30, "x", "y"]]'}, "t")
    batch = rows(-1, -1, x=["a", "b"], y=[None, "z"])
    done = apply_renames(batch, column_history, chunk(1, 9999))
    assert done.columns["y"].to_pylist() == ["a", "z"]
    assert done.columns["x"].to_pylist() == [None, "b"]


def test_a_row_has_a_renamed_column_under_the_name_of_its_time() -> None:
    columns = {"x": ["a", None, "c", None], "y": [None, None, None, "d"]}
    lacking = {
        "x": np.array([False, True, False, True]),
        "y": np.array([True, True, True, False]),
    }
    batch = replace(rows(-1, -1, -1, -1, **columns), lacking=lacking)
    done = apply_renames(batch, (ProvenChange(0, "x", "y", HERE),), chunk(1005, 1005, 1005, 1005))
    assert done.lacks("y").tolist() == [False, True, True, False]
    assert done.lacks("x").tolist() == [True, True, False, True]
    assert done.filter(np.array([True, False, False, True])).lacks("y").tolist() == [False, False]
