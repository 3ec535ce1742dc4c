"""Cutting, splitting and encoding of offsets."""

import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingestd.kafka.offset_ranges import (
    BatchOffsets,
    OffsetRange,
    Offsets,
    covers,
    cut,
    decode,
    encode,
    parse_offset_log,
    ranges_between,
    split,
)

NAMES = st.sampled_from(["a", "b", "orders.v1", "ü"])
BACKLOGS = st.dictionaries(
    NAMES, st.dictionaries(st.integers(0, 5), st.integers(0, 300), min_size=1), max_size=4
)
PARTITIONS = st.dictionaries(st.integers(0, 40), st.integers(0, 2**62), max_size=4)
OFFSETS = st.dictionaries(NAMES, st.dictionaries(NAMES, PARTITIONS, max_size=3), max_size=2)


def begin_and_end(backlog: dict[str, dict[int, int]], first: int = 7) -> tuple[Offsets, Offsets]:
    start = {"s": {topic: dict.fromkeys(parts, first) for topic, parts in backlog.items()}}
    end = {
        "s": {
            topic: {one: first + rows for one, rows in parts.items()}
            for topic, parts in backlog.items()
        }
    }
    return start, end


def rows_of(start: Offsets, end: Offsets) -> Counter[tuple[str, int]]:
    return Counter({(one.topic, one.partition): one.rows for one in ranges_between(start, end)})


@given(BACKLOGS, st.integers(1, 500))
def test_a_cut_keeps_the_limit_and_the_ends_and_makes_progress(
    backlog: dict[str, dict[int, int]], limit: int
) -> None:
    start, end = begin_and_end(backlog)
    taken = rows_of(start, cut(start, end, limit))
    whole = rows_of(start, end)
    assert taken <= whole
    assert taken.total() == min(limit, whole.total())


@given(BACKLOGS, st.integers(1, 500))
def test_a_cut_gives_no_topic_less_than_an_even_share(
    backlog: dict[str, dict[int, int]], limit: int
) -> None:
    start, end = begin_and_end(backlog)
    taken, whole = rows_of(start, cut(start, end, limit)), rows_of(start, end)
    waiting = {
        topic: sum(parts.values()) for topic, parts in backlog.items() if any(parts.values())
    }
    for topic, size in waiting.items():
        got = sum(rows for (name, _), rows in taken.items() if name == topic)
        assert got >= min(size, limit // len(waiting))
        busy = [one for (name, one) in whole if name == topic]
        for one in busy:
            assert taken[topic, one] >= min(whole[topic, one], got // len(busy))


@settings(deadline=None)
@given(BACKLOGS, st.integers(1, 50))
def test_batch_after_batch_reaches_the_end(backlog: dict[str, dict[int, int]], limit: int) -> None:
    start, end = begin_and_end(backlog)
    here, batches = start, 0
    while here != end:
        here = cut(here, end, limit)
        batches += 1
    assert batches == -(-rows_of(start, end).total() // limit)


def test_without_a_limit_everything_is_taken() -> None:
    start, end = begin_and_end({"a": {0: 10, 1: 0}})
    assert cut(start, end, None) == end


def test_a_limit_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="no progress"):
        cut({}, {}, 0)


def test_a_partition_without_a_start_or_going_backwards_is_refused() -> None:
    with pytest.raises(ValueError, match="no start offset of s/t/0"):
        ranges_between({"s": {}}, {"s": {"t": {0: 1}}})
    with pytest.raises(ValueError, match="s/t/0 ends at 1, before 2"):
        ranges_between({"s": {"t": {0: 2}}}, {"s": {"t": {0: 1}}})


@given(st.lists(st.integers(1, 2000), max_size=12), st.integers(1, 8))
def test_a_split_covers_all_rows_once_in_balanced_groups(sizes: list[int], parts: int) -> None:
    ranges = [OffsetRange("s", "t", i, 100 * i, 100 * i + n) for i, n in enumerate(sizes)]
    groups = split(ranges, parts)
    flat = [one for group in groups for one in group]
    assert len(groups) <= parts
    assert all(groups)
    assert all(one.rows > 0 for one in flat)
    merged: list[OffsetRange] = []
    for one in flat:
        if merged and merged[-1].partition == one.partition:
            assert merged[-1].until == one.start
            before = merged.pop()
            one = OffsetRange("s", "t", one.partition, before.start, one.until)
        merged.append(one)
    assert merged == ranges
    room = -(-sum(sizes) // parts)
    assert all(sum(one.rows for one in group) <= room * 1.2 + 1 for group in groups)


def test_one_long_range_is_shared_by_all_parts() -> None:
    groups = split([OffsetRange("s", "t", 0, 0, 1000)], 4)
    assert [[(one.start, one.until) for one in group] for group in groups] == [
        [(0, 250)],
        [(250, 500)],
        [(500, 750)],
        [(750, 1000)],
    ]


def test_a_border_near_by_is_taken_instead_of_a_crumb() -> None:
    ranges = [OffsetRange("s", "t", 0, 0, 98), OffsetRange("s", "t", 1, 0, 102)]
    assert split(ranges, 2) == [[ranges[0]], [ranges[1]]]


@given(OFFSETS, OFFSETS)
def test_encoded_offsets_come_back_as_the_same_text(start: Offsets, until: Offsets) -> None:
    text = json.dumps(encode(BatchOffsets(start, until)))
    assert decode(json.loads(text)) == BatchOffsets(start, until)
    assert json.dumps(encode(decode(json.loads(text)))) == text


@pytest.mark.parametrize(
    "document", [{}, {"v": 1, "start": {}, "until": {}}, {"v": 2, "start": {}, "until": {"s": 3}}]
)
def test_other_documents_are_refused(document: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="offsets"):
        decode(document)


OFFSET_LOG = (
    'v1\n{"batchWatermarkMs":0,"batchTimestampMs":1795261607273,"conf":{}}\n'
    '{"v": 2, "start": {"s": {"t": {"0": 3}}}, "until": {"s": {"t": {"0": 9}}}}'
)


def test_the_log_of_a_batch_holds_its_ranges() -> None:
    assert parse_offset_log(OFFSET_LOG).ranges() == [OffsetRange("s", "t", 0, 3, 9)]


@pytest.mark.parametrize(
    "text", ["", "v1", OFFSET_LOG[:-4], OFFSET_LOG.replace("v1", "v9"), OFFSET_LOG + "\n{}"]
)
def test_a_damaged_log_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_offset_log(text)


def test_leader_epochs_travel_with_the_batch_but_for_zeros() -> None:
    batch = BatchOffsets({"s": {}}, {"s": {}}, {"s": {"t": {0: 3, 1: 0}}})
    assert decode(json.loads(json.dumps(encode(batch)))).epochs == {"s": {"t": {0: 3}}}
    assert "epochs" not in encode(BatchOffsets({}, {}, {"s": {"t": {0: 0}}}))


def test_idle_partitions_have_empty_ranges() -> None:
    batch = BatchOffsets({"s": {"t": {0: 3, 1: 5}}}, {"s": {"t": {0: 9, 1: 5}}})
    assert batch.ranges() == [OffsetRange("s", "t", 0, 3, 9)]
    assert batch.all_ranges() == [OffsetRange("s", "t", 0, 3, 9), OffsetRange("s", "t", 1, 5, 5)]


def test_the_batch_that_follows_travels_with_the_batch() -> None:
    following = BatchOffsets({"s": {"t": {0: 9}}}, {"s": {"t": {0: 12}}})
    batch = BatchOffsets({"s": {"t": {0: 3}}}, {"s": {"t": {0: 9}}}, following=following)
    assert decode(json.loads(json.dumps(encode(batch)))) == batch
    assert "following" not in encode(following)


def test_offsets_are_covered_when_all_of_them_are_reached() -> None:
    wanted = {"s": {"t": {0: 5, 1: 0}}}
    assert covers({"s": {"t": {0: 5}}}, wanted)
    assert not covers({"s": {"t": {0: 4, 1: 9}}}, wanted)
    assert not covers({}, wanted)
