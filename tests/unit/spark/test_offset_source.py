"""The source's side towards Spark, without Spark and without a broker."""

import json
import pickle
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from ingestd.errors import SourceError
from ingestd.ingest.recovery.start import StartPositions
from ingestd.kafka.offset_ranges import BatchOffsets, OffsetRange, Offsets, decode, encode
from ingestd.kafka.planner import Planner
from ingestd.kafka.properties import KafkaSource
from ingestd.spark.offset_source import (
    OPTION,
    OffsetRangeReader,
    OffsetRangeSource,
    source_options,
)

SOURCES = {
    "a": KafkaSource("a", ("t",), properties={"bootstrap.servers": "h:1", "sasl.password": "p"}),
    "b": KafkaSource("b", (), "x.*", properties={"bootstrap.servers": "h:2"}),
}
START = {"a": {"t": {0: 3}}}
EPOCHS = {"a": {"t": {0: 2}}}
COVERED = {"a": {"t": {0: 8}}}
BATCH = encode(BatchOffsets({"a": {"t": {0: 3, 1: 5}}}, {"a": {"t": {0: 9, 1: 5}}}))


def reader(max_offsets: dict[str, int]) -> OffsetRangeReader:
    source = OffsetRangeSource(
        source_options(SOURCES, max_offsets, StartPositions(START, EPOCHS, COVERED))
    )
    return pickle.loads(pickle.dumps(source)).streamReader(None)


def test_a_batch_becomes_one_partition_and_one_row_for_each_range() -> None:
    one = reader({})
    partitions = one.partitions(one.initialOffset(), BATCH)
    assert [partition.range for partition in partitions] == [OffsetRange("a", "t", 0, 3, 9)]
    assert decode(one.initialOffset()) == BatchOffsets(START, START)
    assert list(one.read(partitions[0])) == [("a", "t", 0, 3, 9)]
    assert one.partitions(BATCH, BATCH) == []


def test_the_read_limit_is_that_of_all_sources() -> None:
    assert reader({"a": 10, "b": 5}).getDefaultReadLimit() == ReadMaxRows(15)
    assert reader({"a": 10}).getDefaultReadLimit() == ReadMaxRows(1 << 62)


def test_nothing_new_gives_the_start_back_as_the_same_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[object, bool]] = []

    def next_batch(_: Planner, reached: object, *, bounded: bool) -> BatchOffsets | None:
        asked.append((reached, bounded))
        return None

    monkeypatch.setattr(Planner, "next_batch", next_batch)
    text = json.dumps(BATCH)
    one = reader({"a": 1})
    assert json.dumps(one.latestOffset(json.loads(text), ReadMaxRows(1))) == text
    one.latestOffset(json.loads(text), ReadAllAvailable())
    assert asked == [({"a": {"t": {0: 9, 1: 5}}}, True), ({"a": {"t": {0: 9, 1: 5}}}, False)]


class Log:
    """A planner over one topic partition; notes what it was asked."""

    def __init__(self, end: int, limit: int) -> None:
        self.end, self.limit = end, limit
        self.asked: list[int] = []

    def next_batch(self, _: Planner, reached: Offsets, *, bounded: bool) -> BatchOffsets | None:
        start = reached.get("a", {}).get("t", {}).get(0, 0)
        self.asked.append(start)
        until = min(self.end, start + self.limit) if bounded else self.end
        if start == 9:
            raise SourceError("the brokers are silent")
        return None if until == start else batch(start, until)


def batch(start: int, until: int, following: BatchOffsets | None = None) -> BatchOffsets:
    """One of a single topic partition."""
    return BatchOffsets({"a": {"t": {0: start}}}, {"a": {"t": {0: until}}}, {}, following)


def planned(one: OffsetRangeReader, document: dict[str, Any]) -> BatchOffsets:
    """What follows on a batch, as it was written down."""
    return decode(json.loads(json.dumps(one.latestOffset(document, ReadMaxRows(3)))))


def test_a_whole_batch_says_which_whole_batch_follows_and_keeps_to_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = Log(end=8, limit=3)
    monkeypatch.setattr(Planner, "next_batch", lambda *asked, **how: log.next_batch(*asked, **how))
    one = reader({"a": 3})
    first = planned(one, encode(batch(0, 0)))
    assert first == batch(0, 3, batch(3, 6))
    log.end = 7  # whatever the brokers say by now
    assert planned(one, encode(first)) == batch(3, 6)  # the rest is no whole batch
    assert log.asked == [0, 3, 6]
    log.end = 20
    assert planned(one, encode(batch(6, 6))) == batch(6, 9)  # an error there is reported later
    with pytest.raises(SourceError):
        planned(one, encode(batch(6, 9)))


def test_a_batch_that_follows_is_kept_for_that_place_only(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log(end=100, limit=3)
    monkeypatch.setattr(Planner, "next_batch", lambda *asked, **how: log.next_batch(*asked, **how))
    one = reader({"a": 3})
    assert planned(one, encode(batch(0, 0))).following == batch(3, 6)
    assert planned(one, encode(batch(10, 10))) == batch(10, 13, batch(13, 16))
    everything = decode(one.latestOffset(encode(batch(0, 13)), ReadAllAvailable()))
    assert everything == batch(13, 100)


def test_a_batch_below_the_limit_is_followed_by_none(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log(end=2, limit=3)
    monkeypatch.setattr(Planner, "next_batch", lambda *asked, **how: log.next_batch(*asked, **how))
    assert planned(reader({"a": 3}), encode(batch(0, 0))) == batch(0, 2)
    assert log.asked == [0]


def test_options_carry_everything_in_one_text() -> None:
    document = json.loads(
        source_options(SOURCES, {"a": 7}, StartPositions(START, EPOCHS, COVERED))[OPTION]
    )
    assert [KafkaSource.from_document(source) for source in document["sources"]] == [
        *SOURCES.values()
    ]
    assert document["max_offsets"] == {"a": 7}
    assert document["start"] == {"a": {"t": {"0": 3}}}
    assert document["epochs"] == {"a": {"t": {"0": 2}}}
    assert document["covered"] == {"a": {"t": {"0": 8}}}
