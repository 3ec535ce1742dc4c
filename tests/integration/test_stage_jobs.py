"""What the jobs of a batch have Spark's own classes do: how a shuffle writes its pairs."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext

from ingestd.ingest.settings.context import BatchContext, RoutingConfig
from ingestd.kafka.offset_ranges import OffsetRange
from ingestd.spark.pyspark_internals import (
    submit_map_stage,
    use_java_serializer,
    wait_for_stage,
)
from ingestd.spark.stages import decoded
from ingestd.spark.startup.session import build_session

pytestmark = pytest.mark.integration

GROUPS = [[OffsetRange("s", "t", 0, 0, 5)], [OffsetRange("s", "t", 0, 5, 10)]]
VIEW = BatchContext("p", "d", {}, RoutingConfig(), {}, "d.letters", slots=2)


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkContext]:
    session = build_session("test", {"spark.master": "local[2]"})
    yield session.sparkContext
    session.stop()


@pytest.mark.parametrize(
    ("folder", "serializer"), [("/a/folder", "JavaSerializer"), (None, "KryoSerializer")]
)
def test_names_are_shuffled_by_java_and_blobs_as_spark_does(
    spark: SparkContext, folder: str | None, serializer: str
) -> None:
    values: Any = decoded(spark, VIEW, GROUPS, folder)._jrdd
    shuffled = values.rdd().dependencies().head().rdd()
    chosen = shuffled.dependencies().head().serializer()
    assert chosen.getClass().getSimpleName() == serializer


def test_java_s_serializer_keeps_no_blobs_of_an_executor_that_serves_no_files(
    spark: SparkContext,
) -> None:
    """They have more bytes than the heap, which is spark.driver.memory."""

    def blobs(_: int) -> Iterator[tuple[int, bytes]]:
        return ((number % 2, bytes(1 << 20)) for number in range(700))

    pairs = spark.parallelize([0], 1).flatMap(blobs).partitionBy(2, int)
    use_java_serializer(spark, pairs)
    assert pairs.mapValues(len).values().sum() == 700 << 20


def test_a_stage_is_awaited_until_it_has_ended_well_or_not(
    spark: SparkContext, tmp_path: Path
) -> None:
    go_on = tmp_path / "go on"

    def waiting(number: int) -> Iterator[tuple[int, int]]:
        while not go_on.exists():
            time.sleep(0.01)
        yield number, 1

    pairs = spark.parallelize([0, 1], 2).flatMap(waiting).partitionBy(2)
    stages = [submit_map_stage(spark, pairs), submit_map_stage(spark, pairs.partitionBy(3))]
    assert not wait_for_stage(spark, stages[0], 0.1)
    stages[1].cancel()
    assert wait_for_stage(spark, stages[1], 60)
    go_on.touch()
    assert wait_for_stage(spark, stages[0], 60)
    assert pairs.count() == 2
