"""What a batch remembers of its ranges and of its time."""

from typing import Any, cast

import pytest

from ingestd.ingest.tables.batch_span import BatchSpan
from ingestd.kafka.offset_ranges import OffsetRange
from ingestd.spark.batch import Batch

A, B = OffsetRange("s", "a", 0, 5, 9), OffsetRange("s", "b", 0, 1, 2)


class Listener:
    """Hears of phases."""

    def __init__(self) -> None:
        self.phases: list[str] = []

    def phase(self, name: str, seconds: float) -> None:
        self.phases.append(name)


def batch(listener: Listener | None = None) -> Batch:
    """One of two topics, with a loss in one."""
    client_errors: Any = listener or Listener()
    return Batch(3, [A, B], BatchSpan(), 0.0, client_errors, cast("Any", None))


def test_the_time_of_a_phase_is_added_up_and_reported_even_if_it_fails() -> None:
    listener = Listener()
    one = batch(listener)
    with one.phase("stages"):
        first = one.seconds.get("stages", 0.0)
    with pytest.raises(KeyError), one.phase("stages"):
        raise KeyError
    assert one.seconds["stages"] > first
    assert listener.phases == ["stages", "stages"]
