"""Times of tasks become those of their batch, in whatever order they come."""

from itertools import permutations

from ingestd.ingest.values.batch_times import BatchTimes, EventSpan
from ingestd.kafka.offset_ranges import SourcePartition

HERE = SourcePartition("s", "t", 0)
THERE = SourcePartition("s", "t", 1)


def task(events: dict[str, int], reached: dict[SourcePartition, tuple[int, int]]) -> BatchTimes:
    times = BatchTimes()
    for table, time in events.items():
        times.note_event(table, time)
    for where, (offset, time) in reached.items():
        times.note_reached(where, offset, time)
    return times


def test_oldest_and_newest_of_a_table_are_those_of_all_tasks() -> None:
    tasks = [
        task({"db.a": 5, "db.b": 7}, {HERE: (10, 900)}),
        task({"db.a": 2}, {HERE: (12, 800), THERE: (3, 700)}),
        task({"db.a": 9}, {}),
    ]
    for order in permutations(tasks):
        whole = BatchTimes()
        for one in order:
            whole.add(one)
        assert whole.events == {"db.a": EventSpan(2, 9), "db.b": EventSpan(7, 7)}
        assert whole.reached == {HERE: (12, 800), THERE: (3, 700)}


def test_adding_leaves_the_other_as_it_was() -> None:
    one, other = task({"db.a": 5}, {}), task({"db.a": 7}, {HERE: (1, 1)})
    one.add(other)
    assert other.events == {"db.a": EventSpan(7, 7)}


def test_the_furthest_offset_counts_not_the_largest_time() -> None:
    times = task({}, {HERE: (10, 900)})
    times.note_reached(HERE, 11, 100)
    times.note_reached(HERE, 9, 999)
    assert times.reached[HERE] == (11, 100)
