"""The batch after the current one, which is decoded early only if all its topics are known."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ingestd.ingest.settings.pipeline_settings import BatchLimits
from ingestd.kafka.offset_ranges import BatchOffsets
from ingestd.spark.micro_batch import MicroBatch
from ingestd.spark.prefetch import Prefetch
from tests.support import registries


@pytest.fixture
def followed(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[list[str]]]:
    """The topics of each batch of which stage 1 was submitted early."""
    submitted: list[list[str]] = []

    def follow(_: object, __: object, groups: list[list[Any]]) -> None:
        submitted.append([offset_range.topic for group in groups for offset_range in group])

    monkeypatch.setattr(Prefetch, "follow", follow)
    return submitted


@pytest.mark.parametrize(("new", "expected"), [("orders", [["orders", "orders"]]), ("late", [])])
def test_a_following_batch_with_a_topic_that_no_batch_has_read_is_not_decoded_early(
    tmp_path: Path, followed: list[list[str]], new: str, expected: list[list[str]]
) -> None:
    """The key of a topic is asked for when its first batch starts; before, it has no tables."""
    limits = BatchLimits(small_batch_records=0)
    settings = registries.pipeline_of(tmp_path, limits=limits)
    registry = registries.open_registry(settings)
    registry.keys = {("src", "orders"): "id-orders"}
    spark: Any = SimpleNamespace(defaultParallelism=2)
    nothing: Any = None
    batch = MicroBatch(spark, settings, registry, nothing, nothing, nothing)
    start, until = {"src": {new: {0: 0}}}, {"src": {new: {0: 10}}}
    current: Any = SimpleNamespace(following=BatchOffsets(start, until))
    batch._follow(current)
    assert followed == expected
