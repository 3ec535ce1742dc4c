"""The source's side towards Spark, without Spark and without a broker."""

import json
import pickle

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from ingestd.kafka.planner import Planner
from ingestd.kafka.properties import KafkaSource
from ingestd.kafka.ranges import BatchOffsets, OffsetRange, encode
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
BATCH = encode(BatchOffsets({"a": {"t": {0: 3, 1: 5}}}, {"a": {"t": {0: 9, 1: 5}}}))


def reader(max_offsets: dict[str, int]) -> OffsetRangeReader:
    source = OffsetRangeSource(source_options(SOURCES, max_offsets, START))
    return pickle.loads(pickle.dumps(source)).streamReader(None)


def test_a_batch_becomes_one_partition_and_one_row_for_each_range() -> None:
    one = reader({})
    partitions = one.partitions(one.initialOffset(), BATCH)
    assert [partition.range for partition in partitions] == [OffsetRange("a", "t", 0, 3, 9)]
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


def test_options_carry_everything_in_one_text() -> None:
    document = json.loads(source_options(SOURCES, {"a": 7}, START)[OPTION])
    assert [KafkaSource.from_document(one) for one in document["sources"]] == [*SOURCES.values()]
    assert document["max_offsets"] == {"a": 7}
    assert document["start"] == {"a": {"t": {"0": 3}}}
