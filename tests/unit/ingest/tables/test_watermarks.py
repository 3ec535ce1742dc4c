"""Times of topic partitions, and what a table makes of them, by a clock that the test sets."""

import pytest

from ingestd.ingest.settings.watermark_rules import WatermarkRules
from ingestd.ingest.tables.watermarks import Watermarks
from ingestd.ingest.values.batch_times import BatchTimes
from ingestd.kafka.offset_ranges import SourcePartition

ZERO, ONE, TWO = (SourcePartition("s", "t", number) for number in range(3))
TABLE = "db.t"


class Clock:
    """Seconds that the test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def source_times(*reached: tuple[SourcePartition, int]) -> BatchTimes:
    times = BatchTimes()
    for where, time in reached:
        times.note_reached(where, time, time)
    return times


def column_times(table: str, *reached: tuple[SourcePartition, int]) -> BatchTimes:
    times = BatchTimes()
    for where, time in reached:
        times.note_column(table, where, time)
    return times


def test_the_slowest_partition_decides_less_the_delay(clock: Clock) -> None:
    rules = WatermarkRules("source", delay_ms=10)
    watermarks = Watermarks(lambda _: rules, clock)
    watermarks.note(source_times((ZERO, 500), (ONE, 300)))
    assert watermarks.of(TABLE, [ZERO, ONE].copy) == 289
    assert watermarks.of(TABLE, [ZERO].copy) == 489
    # Records that are older than others of their partition set nothing back.
    watermarks.note(source_times((ONE, 200)))
    assert watermarks.of(TABLE, [ZERO, ONE].copy) == 289


def test_a_partition_without_records_is_waited_for_until_it_is_idle(clock: Clock) -> None:
    rules = WatermarkRules("source", idle_seconds=60.0)
    watermarks = Watermarks(lambda _: rules, clock)
    watermarks.note(source_times((ZERO, 500)))
    assert watermarks.of(TABLE, [ZERO, ONE].copy) is None
    clock.now = 61.0
    watermarks.note(source_times((ZERO, 600)))
    assert watermarks.of(TABLE, [ZERO, ONE].copy) == 599
    # It is back with older records; then all are idle.
    watermarks.note(source_times((ONE, 400)))
    assert watermarks.of(TABLE, [ZERO, ONE].copy) == 399
    clock.now = 200.0
    assert watermarks.of(TABLE, [ZERO, ONE].copy) is None


def test_a_column_has_times_of_its_table_only(clock: Clock) -> None:
    rules = {TABLE: WatermarkRules("column", "at"), "db.u": WatermarkRules("column", "at")}
    watermarks = Watermarks(rules.get, clock)
    times = column_times(TABLE, (ZERO, 7), (ZERO, 5), (TWO, 9))
    times.add(column_times(TABLE, (TWO, 8)))
    watermarks.note(times)
    assert watermarks.of(TABLE, [ZERO, TWO].copy) == 6
    assert watermarks.of("db.u", [ZERO, TWO].copy) is None
    assert watermarks.of("db.without", [ZERO].copy) is None
