"""The streaming source under a real Spark: bounds, replays, new topics, losses, a silent broker."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.cimpl import NewPartitions
from pyspark.errors.exceptions.captured import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from ingestd.dev.broker import DevBroker
from ingestd.errors import LogChangedError, OffsetLostError, SourceError
from ingestd.ingest.recovery.start import StartPositions
from ingestd.kafka.offset_ranges import OffsetRange, Offsets, parse_offset_log
from ingestd.kafka.properties import KafkaSource
from ingestd.spark.failure import raised_error
from ingestd.spark.offset_source import FORMAT, OffsetRangeSource, source_options
from ingestd.spark.startup.session import build_session
from tests.support.kafka_broker import (
    admin,
    delete_records,
    delete_topic,
    fresh_topic,
    produce,
    produce_transaction,
    source_of,
)

pytestmark = pytest.mark.integration

Batches = dict[int, list[OffsetRange]]


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = build_session("test", {"spark.master": "local[2]"})
    session.dataSource.register(OffsetRangeSource)
    yield session
    session.stop()


@pytest.mark.usefixtures("spark")
def test_a_session_leaves_no_python_of_its_own_to_later_processes() -> None:
    assert os.environ["PYSPARK_PYTHON"] == sys.executable


def run(
    spark: SparkSession,
    checkpoint: Path,
    source: KafkaSource,
    limit: int,
    *,
    start: Offsets | None = None,
    on_batch: Callable[[int], None] = lambda _: None,
) -> Batches:
    """Run until what was there is read; ranges by batch id, from the checkpoint and from Spark."""
    seen: Batches = {}

    def batch(rows: DataFrame, batch_id: int) -> None:
        text = (checkpoint / "offsets" / str(batch_id)).read_text()
        seen[batch_id] = parse_offset_log(text).ranges()
        assert sorted(OffsetRange(*row) for row in rows.collect()) == seen[batch_id]
        on_batch(batch_id)

    options = source_options(
        {source.name: source}, {source.name: limit}, StartPositions(start or {}, {}, {})
    )
    stream = spark.readStream.format(FORMAT).options(**options).load().writeStream
    stream = stream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    query = stream.foreachBatch(batch).start()
    try:
        assert query.awaitTermination(120)
    except StreamingQueryException as error:
        found = raised_error(str(error))
        if found is None:
            raise
        raise found from error
    finally:
        query.stop()
    return seen


def spans(batches: Batches) -> list[tuple[int, str, int, int, int]]:
    return [
        (number, range_.topic, range_.partition, range_.start, range_.until)
        for number, ranges in sorted(batches.items())
        for range_ in ranges
    ]


def test_a_run_ends_at_what_was_there_at_its_start(
    broker: DevBroker, spark: SparkSession, tmp_path: Path
) -> None:
    topic = fresh_topic(broker, 2)
    produce(broker, topic, [(None, b"x")] * 100, 0)
    produce(broker, topic, [(None, b"x")] * 20, 1)

    def more(batch_id: int) -> None:
        produce(broker, topic, [(None, b"late")] * 5, 0)

    first = run(spark, tmp_path / "ck", source_of(broker, topic), 60, on_batch=more)
    assert spans(first) == [(0, topic, 0, 0, 40), (0, topic, 1, 0, 20), (1, topic, 0, 40, 100)]
    second = run(spark, tmp_path / "ck", source_of(broker, topic), 60)
    assert spans(second) == [(2, topic, 0, 100, 110)]


def test_a_failed_batch_is_run_again_with_the_same_ranges(
    broker: DevBroker, spark: SparkSession, tmp_path: Path
) -> None:
    topic = fresh_topic(broker, 2)
    produce(broker, topic, [(None, b"x")] * 30, 0)
    source = source_of(broker, topic)

    def fail(batch_id: int) -> None:
        produce(broker, topic, [(None, b"later")] * 7, 1)
        if batch_id == 1:
            raise OffsetLostError("as if")

    with pytest.raises(OffsetLostError, match="as if"):
        run(spark, tmp_path / "ck", source, 20, on_batch=fail)
    again = run(spark, tmp_path / "ck", source, 1000)
    assert spans(again) == [(1, topic, 0, 20, 30), (2, topic, 1, 0, 14)]


def test_topics_and_partitions_that_appear_are_read_from_their_beginning(
    broker: DevBroker, spark: SparkSession, tmp_path: Path
) -> None:
    first = fresh_topic(broker, 1)
    produce(broker, first, [(None, b"x")] * 3)
    source = KafkaSource(
        "src", (), f"{first}(-b)?", properties={"bootstrap.servers": broker.bootstrap}
    )
    assert spans(run(spark, tmp_path / "ck", source, 100)) == [(0, first, 0, 0, 3)]
    client = admin(broker)
    client.create_partitions([NewPartitions(first, 2)])[first].result(30)
    broker.create_topic(f"{first}-b", 1)
    produce(broker, first, [(None, b"x")] * 2, 1)
    produce(broker, f"{first}-b", [(None, b"x")] * 4)
    found = run(spark, tmp_path / "ck", source, 100)
    assert spans(found) == [(1, first, 1, 0, 2), (1, f"{first}-b", 0, 0, 4)]


def test_a_query_begins_where_it_is_requested_to(
    broker: DevBroker, spark: SparkSession, tmp_path: Path
) -> None:
    topic = fresh_topic(broker)
    produce(broker, topic, [(None, b"x")] * 10)
    seed = {"src": {topic: {0: 6}}}
    found = run(spark, tmp_path / "ck", source_of(broker, topic), 100, start=seed)
    assert spans(found) == [(0, topic, 0, 6, 10)]


def test_markers_and_aborted_records_are_part_of_the_ranges(
    broker: DevBroker, spark: SparkSession, tmp_path: Path
) -> None:
    topic = fresh_topic(broker)
    produce_transaction(broker, topic, [(None, b"lost")], commit=False)
    found = run(spark, tmp_path / "ck", source_of(broker, topic), 100)
    assert spans(found) == [(0, topic, 0, 0, 2)]


def test_lost_offsets_and_deleted_topics_end_the_query_with_our_error(
    broker: DevBroker, spark: SparkSession, tmp_path: Path
) -> None:
    topic, other = fresh_topic(broker), fresh_topic(broker)
    produce(broker, topic, [(None, b"x")] * 10)
    source = source_of(broker, topic, other)
    run(spark, tmp_path / "ck", source, 5, start={"src": {topic: {0: 5}}})
    produce(broker, topic, [(None, b"x")] * 10)
    delete_records(broker, topic, 15)
    lost = f"{topic}/0 continues at 10, its log has 15 to 20"
    with pytest.raises(LogChangedError, match=lost):
        run(spark, tmp_path / "ck", source, 5)
    delete_topic(broker, topic)
    with pytest.raises(LogChangedError, match=f"topic {topic}, .* no longer exist"):
        run(spark, tmp_path / "ck", source, 5)


def test_a_broker_that_is_away_is_a_source_error(spark: SparkSession, tmp_path: Path) -> None:
    properties = {"bootstrap.servers": "127.0.0.1:1", "log_level": "0"}
    source = KafkaSource("src", ("t",), properties={**properties, "socket.timeout.ms": "1000"})
    with pytest.raises(SourceError, match=r"source src: 127\.0\.0\.1:1 did not report topics"):
        run(spark, tmp_path / "ck", source, 5)
