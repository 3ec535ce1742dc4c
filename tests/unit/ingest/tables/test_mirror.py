"""The mirror speaks for a table only as long as the table was not turned back."""

from dataclasses import replace

import pytest

from ingestd.errors import FormatError
from ingestd.ingest.tables.mirror import (
    Mirror,
    SnapshotMark,
    TableHistory,
    at_most,
    decode_mirror,
    effective_coverage,
    encode_mirror,
    finished_offsets,
    holds,
)
from ingestd.ingest.tables.progress import Span, TableProgress, TopicProgress

MARK = SnapshotMark(5, 1000, 3)
UNTIL = {"src": {"t": {0: 30}, "u": {0: 8}}}
MIRROR = Mirror("job", {"lake.a": MARK, "lake.empty": None}, UNTIL)
UNTOUCHED = TableHistory(newest=MARK, latest_id=5, time_of_marked=1000)


def test_mirror_survives_its_file() -> None:
    assert decode_mirror(encode_mirror(MIRROR), "file") == MIRROR


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"version": 2}', b"\xff"])
def test_damaged_file_is_named(data: bytes) -> None:
    with pytest.raises(FormatError, match=r"file.*delete"):
        decode_mirror(data, "file")


@pytest.mark.parametrize(
    ("history", "verdict"),
    [
        (UNTOUCHED, True),
        (replace(UNTOUCHED, newest=SnapshotMark(7, 1200, 4), latest_id=7), True),
        (TableHistory(newest=None, latest_id=90, time_of_marked=None), True),
        (replace(UNTOUCHED, latest_id=4), False),
        (replace(UNTOUCHED, latest_id=None), False),
        (replace(UNTOUCHED, time_of_marked=1001), False),
        (replace(UNTOUCHED, newest=SnapshotMark(3, 900, 2)), False),
        (replace(UNTOUCHED, newest=SnapshotMark(6, 1100, 2), latest_id=6), False),
    ],
    ids=[
        "untouched",
        "went on",
        "our snapshots expired",
        "rolled back",
        "created anew",
        "rolled back and written again",
        "our snapshot is gone",
        "another history of the same length",
    ],
)
def test_mirror_holds(history: TableHistory, verdict: bool) -> None:
    assert holds(MIRROR, "lake.a", history) is verdict


def test_table_without_snapshot_then_misses_nothing() -> None:
    assert holds(MIRROR, "lake.empty", TableHistory(None, None, None))


def test_table_that_the_mirror_does_not_name_is_not_spoken_for() -> None:
    assert not holds(MIRROR, "lake.new", UNTOUCHED)


def test_mirror_advances_the_partitions_of_a_table_and_adds_none() -> None:
    own = {"src": {"t": {0: 10, 1: 4}}}
    assert effective_coverage(own, MIRROR, "lake.a", UNTOUCHED) == {"src": {"t": {0: 30, 1: 4}}}
    ahead = {"src": {"t": {0: 40}}}
    assert effective_coverage(ahead, MIRROR, "lake.a", UNTOUCHED) == ahead


def test_table_that_nothing_ever_fed_covers_nothing() -> None:
    assert effective_coverage({}, MIRROR, "lake.empty", TableHistory(None, None, None)) == {}


def test_what_was_finished_is_known_from_the_mirror_or_from_the_batch_behind_it() -> None:
    def record(**spans: tuple[int, int]) -> TableProgress:
        topics = {topic: TopicProgress(None, {0: Span(*span)}) for topic, span in spans.items()}
        return TableProgress("job", 1, "0", {"s": topics})

    records = [record(a=(10, 20), b=(5, 5)), None, record(a=(30, 40))]
    assert finished_offsets({}, records) == {"s": {"a": {0: 30}, "b": {0: 5}}}
    until = {"s": {"a": {0: 40}, "c": {0: 1}}}
    assert finished_offsets(until, records) == {"s": {"a": {0: 40}, "b": {0: 5}, "c": {0: 1}}}


def test_offsets_are_bounded_where_a_bound_is_known() -> None:
    held = {"s": {"a": {0: 10, 1: 4}, "b": {0: 7}}}
    assert at_most(held, {"s": {"a": {0: 3, 1: 9}}}) == {"s": {"a": {0: 3, 1: 4}, "b": {0: 7}}}


def test_mirror_that_does_not_hold_is_left_out() -> None:
    own = {"src": {"t": {0: 10}}}
    back = replace(UNTOUCHED, latest_id=4)
    assert effective_coverage(own, MIRROR, "lake.a", back) == own
    assert effective_coverage(own, None, "lake.a", UNTOUCHED) == own
