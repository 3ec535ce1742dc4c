"""A topic whose first records are of another data format is found before it is drained."""

from collections import Counter

from ingestd.ingest.settings.wrong_format import (
    WrongFormatDetector,
    WrongFormatThreshold,
    batch_without,
)
from ingestd.ingest.values.counts import Counts
from ingestd.kafka.offset_ranges import BatchOffsets, SourcePartition

SHOP = ("shop", "orders")


def read(records: int, rejected: int, look: str = "debezium-json") -> Counts:
    halves = {0: records // 2, 1: records - records // 2}
    return Counts(
        records=Counter({SourcePartition(*SHOP, one): count for one, count in halves.items()}),
        unusable=Counter({SHOP: rejected}),
        looks=Counter({(*SHOP, look): min(rejected, 20)}),
    )


def test_a_topic_that_is_rejected_is_set_aside_with_its_likely_format() -> None:
    detector = WrongFormatDetector(WrongFormatThreshold())
    [found] = detector.judge(read(100, 95))
    assert (found.source, found.topic, found.records, found.rejected) == (*SHOP, 100, 95)
    message = found.message("canal-json")
    assert "95 of its first 100 records, which look like debezium-json" in message
    assert "sources.shop.format" in message


def test_too_few_records_are_no_verdict_and_later_ones_complete_it() -> None:
    detector = WrongFormatDetector(WrongFormatThreshold())
    assert detector.judge(read(60, 60)) == []
    [found] = detector.judge(read(60, 60))
    assert (found.records, found.rejected) == (120, 120)


def test_a_topic_that_was_fine_is_judged_no_more() -> None:
    detector = WrongFormatDetector(WrongFormatThreshold())
    assert detector.judge(read(100, 94)) == []
    assert detector.judge(read(10_000, 10_000)) == []


def test_other_limits() -> None:
    assert WrongFormatDetector(WrongFormatThreshold(records=0)).judge(read(500, 500)) == []
    [found] = WrongFormatDetector(WrongFormatThreshold(records=10, ratio=0.5)).judge(read(10, 5))
    assert "which look like" not in found.message("debezium-json")


def test_a_batch_without_a_topic_has_neither_its_start_nor_its_end() -> None:
    def offsets(at: int) -> dict[str, dict[str, dict[int, int]]]:
        return {"shop": {"orders": {0: at}, "items": {0: at}}}

    following = BatchOffsets(offsets(5), offsets(9))
    batch = BatchOffsets(offsets(0), offsets(5), following=following)
    left = batch_without(batch, {SHOP}, {})
    assert [(range_.topic, range_.start, range_.until) for range_ in left.ranges()] == [
        ("items", 0, 5)
    ]
    assert left.following is not None
    assert [range_.topic for range_ in left.following.ranges()] == ["items"]
    assert batch_without(batch, (), {}) is batch


def test_a_batch_goes_up_to_what_cannot_be_read_and_not_beyond() -> None:
    def batch(start: int, until: int) -> BatchOffsets:
        return BatchOffsets({"shop": {"orders": {0: start}}}, {"shop": {"orders": {0: until}}})

    ends = {("shop", "orders", 0): 5}
    assert batch_without(batch(3, 9), (), ends).until == {"shop": {"orders": {0: 5}}}
    assert batch_without(batch(5, 9), (), ends).ranges() == []
    assert batch_without(batch(9, 12), (), ends).all_ranges() == []
    assert batch_without(batch(0, 4), (), ends).until == {"shop": {"orders": {0: 4}}}
