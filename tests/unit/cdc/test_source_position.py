"""Positions order the changes of a database's log and tell its rows apart."""

import numpy as np
import pytest

from ingestd.cdc.source_position import (
    SourcePosition,
    ordering_positions,
    position_of,
    positions,
    snapshot_mask,
)


def binlog(file: str | None, pos: int | str | None, row: int | None = 0) -> SourcePosition:
    return SourcePosition(snapshot="false", file=file, pos=pos, row=row)


def test_postgresql_is_ordered_by_lsn() -> None:
    sources = [SourcePosition(lsn=7), SourcePosition(lsn=None), SourcePosition(lsn=2**63 - 1)]
    assert positions(sources).tolist() == [7, -1, 2**63 - 1]
    assert positions(sources[::2]).tolist() == [7, 2**63 - 1]


def test_binary_log_is_ordered_by_file_position_and_row() -> None:
    ordered = [
        binlog("bin.000001", 4), binlog("bin.000001", 4, 1), binlog("bin.000001", 2**32 - 1, 4095),
        binlog("bin.000002", 4), binlog("bin.524287", 2**32 - 1, 4095),
    ]  # fmt: skip
    found = positions(ordered).tolist()
    assert found == sorted(set(found))
    assert found[0] > 0
    assert found == [position_of(source) for source in ordered]


def test_one_file_gives_the_same_positions_as_each_alone() -> None:
    sources = [binlog("bin.000009", 100 + n // 3, n % 3) for n in range(30)]
    assert positions(sources).tolist() == [position_of(source) for source in sources]
    assert len(set(positions(sources).tolist())) == 30


@pytest.mark.parametrize(
    "source",
    [
        binlog("bin.000001", 4, 4096),
        binlog("bin.000001", 2**32),
        binlog("bin.524288", 4),
        binlog("bin.000001", "4"),
        binlog("bin.000001", None),
        binlog("binlog", 4),
        binlog(None, 4),
        SourcePosition(lsn="00000027:00000ac0:0002"),
        SourcePosition(lsn=2**63),
        SourcePosition(lsn=2**64),
        SourcePosition(),
    ],
)
def test_what_has_no_number_is_unknown(source: SourcePosition) -> None:
    assert position_of(source) == -1
    assert positions([source, source]).tolist() == [-1, -1]


def test_rows_of_a_snapshot_share_its_position_and_are_older_than_what_follows() -> None:
    rows = [SourcePosition(snapshot="true", file="bin.000001", pos=4, row=0)] * 2
    sources = [binlog("bin.000001", 3, 4095), *rows, binlog("bin.000001", 4)]
    found = positions(sources)
    assert found[1] == found[2] == found[3]
    ordered = ordering_positions(found, snapshot_mask(sources)).tolist()
    assert ordered[0] <= ordered[1] == ordered[2] < ordered[3]
    unknown = np.array([-1, -1])
    assert (ordering_positions(unknown, np.array([True, False])) < 0).all()


def test_snapshot_marks_are_text_or_boolean() -> None:
    marks = ["false", False, None, "true", True, "first", "last_in_data_collection", "incremental"]
    sources = [SourcePosition(snapshot=mark) for mark in marks]  # type: ignore[arg-type]
    assert snapshot_mask(sources).tolist() == [False] * 3 + [True] * 5
    assert snapshot_mask(sources[:1]).dtype == np.bool_
