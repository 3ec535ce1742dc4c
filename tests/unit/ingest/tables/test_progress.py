"""What a table says of the stream it holds, and what a batch means to it."""

import pytest

from ingestd.errors import FormatError, UnsupportedError
from ingestd.ingest.settings.context import Feed
from ingestd.ingest.tables.progress import (
    Gap,
    Partial,
    Skip,
    Span,
    Step,
    TableProgress,
    TopicProgress,
    Whole,
    advance,
    decode_properties,
    encode_properties,
    furthest,
    judge,
    start_offsets,
)
from ingestd.kafka.ranges import OffsetRange

FEED = Feed("src", "db", "shop", "orders")


def step(*ranges: OffsetRange, topics: tuple[str, ...] = ("t",), **more: object) -> Step:
    return Step(
        job="job",
        epoch=2,
        batch="7",
        ranges=ranges,
        topics=frozenset(("src", topic) for topic in topics),
        **more,  # type: ignore[arg-type]
    )


def test_record_survives_the_properties_of_a_snapshot() -> None:
    progress = TableProgress(
        job="job",
        epoch=3,
        batch="query/9",
        sources={"src": {"t": TopicProgress("uuid", {0: Span(5, 9), 12: Span(0, 0)})}},
        rows={"written": 4, "rejected": 1},
        truncated=77,
        feeds=frozenset({FEED, Feed("src", None, None, "t")}),
        position=1 << 60,
    )
    assert decode_properties(encode_properties(progress), "snapshot-1") == progress


def test_smallest_record_survives_too() -> None:
    progress = TableProgress("job", 0, "", {})
    assert decode_properties(encode_properties(progress), "snapshot-1") == progress


def test_properties_of_other_writers_are_no_record() -> None:
    assert decode_properties({"other": "1"}, "snapshot-1") is None


@pytest.mark.parametrize(
    "change",
    [
        {"ingestd.src": "{"},
        {"ingestd.src": '{"s": 3}'},
        {"ingestd.epoch": "x"},
        {"ingestd.v": "one"},
        {"ingestd.rows": "[]"},
    ],
)
def test_damaged_record_names_the_snapshot(change: dict[str, str]) -> None:
    properties = encode_properties(TableProgress("job", 0, "", {})) | change
    with pytest.raises(FormatError, match="snapshot-1"):
        decode_properties(properties, "snapshot-1")


def test_record_of_a_newer_version_is_refused() -> None:
    properties = encode_properties(TableProgress("job", 0, "", {})) | {"ingestd.v": "9"}
    with pytest.raises(UnsupportedError, match="version 9"):
        decode_properties(properties, "snapshot-1")


def test_first_step_holds_the_ranges_of_feeding_topics_only() -> None:
    first = advance(
        None,
        step(
            OffsetRange("src", "t", 0, 5, 9),
            OffsetRange("src", "t", 1, 0, 4),
            OffsetRange("src", "other", 0, 0, 4),
            topic_ids={("src", "t"): "id"},
        ),
    )
    assert first.sources == {"src": {"t": TopicProgress("id", {0: Span(5, 9), 1: Span(0, 4)})}}


def test_later_steps_keep_every_partition_that_ever_fed_the_table() -> None:
    first = advance(None, step(OffsetRange("src", "t", 0, 0, 9), OffsetRange("src", "t", 1, 0, 4)))
    second = advance(
        first,
        step(OffsetRange("src", "t", 1, 4, 6), OffsetRange("src", "u", 0, 0, 3), topics=("u",)),
    )
    assert second.sources["src"]["t"].spans == {0: Span(9, 9), 1: Span(4, 6)}
    assert second.sources["src"]["u"].spans == {0: Span(0, 3)}
    assert second.covered == {"src": {"t": {0: 9, 1: 6}, "u": {0: 3}}}


def test_parts_of_a_split_range_are_one_span() -> None:
    parts = (OffsetRange("src", "t", 0, 10, 20), OffsetRange("src", "t", 0, 0, 10))
    assert advance(None, step(*parts)).sources["src"]["t"].spans == {0: Span(0, 20)}


def test_partly_held_range_counts_for_its_new_part_and_offsets_never_go_back() -> None:
    first = advance(None, step(OffsetRange("src", "t", 0, 0, 9)))
    partly = advance(first, step(OffsetRange("src", "t", 0, 4, 12)))
    assert partly.sources["src"]["t"].spans == {0: Span(9, 12)}
    replay = advance(partly, step(OffsetRange("src", "t", 0, 4, 9)))
    assert replay.covered["src"]["t"] == {0: 12}


def test_topic_id_stays_when_it_is_not_asked_again() -> None:
    ids = {("src", "t"): "id"}
    first = advance(None, step(OffsetRange("src", "t", 0, 0, 9), topic_ids=ids))
    second = advance(first, step(OffsetRange("src", "t", 0, 9, 10)))
    assert second.sources["src"]["t"].topic_id == "id"


def test_truncates_feeds_and_positions_only_grow() -> None:
    first = advance(None, step(truncated=50, feeds=frozenset({FEED}), position=60))
    second = advance(first, step(truncated=None, position=-1))
    assert (second.truncated, second.feeds, second.position) == (50, {FEED}, 60)
    assert advance(second, step(truncated=40)).truncated == 50
    assert advance(second, step(truncated=70)).truncated == 70


@pytest.mark.parametrize(
    ("covered", "verdict"),
    [
        (None, Whole()),
        (10, Whole()),
        (20, Skip()),
        (25, Skip()),
        (15, Partial(15)),
        (7, Gap(7, 10)),
    ],
)
def test_range_is_judged_by_what_the_table_holds(covered: int | None, verdict: object) -> None:
    assert judge(OffsetRange("src", "t", 0, 10, 20), covered) == verdict


def test_new_checkpoint_starts_at_the_least_advanced_table_that_knows_a_partition() -> None:
    one = {"src": {"t": {0: 10, 1: 5}}}
    other = {"src": {"t": {0: 7}, "u": {0: 3}}}
    assert start_offsets([one, other]) == {"src": {"t": {0: 7, 1: 5}, "u": {0: 3}}}
    assert furthest(one, other) == {"src": {"t": {0: 10, 1: 5}, "u": {0: 3}}}
    assert start_offsets([]) == {}
