from hypothesis import given
from hypothesis import strategies as st

from ingestd.kafka.offset_ranges import OffsetRange, sample_ranges


def test_a_short_log_is_taken_whole() -> None:
    found = sample_ranges("s", {"t": {0: 5}}, {"t": {0: 9}}, 10)
    assert found == [OffsetRange("s", "t", 0, 5, 9)]


def test_of_a_long_log_the_oldest_and_the_newest_are_taken() -> None:
    found = sample_ranges("s", {"t": {0: 100}}, {"t": {0: 200}}, 5)
    assert found == [OffsetRange("s", "t", 0, 100, 103), OffsetRange("s", "t", 0, 198, 200)]


def test_an_empty_log_gives_nothing() -> None:
    assert sample_ranges("s", {"t": {0: 7}}, {"t": {0: 7}}, 5) == []


def test_the_bound_holds_for_each_topic_by_itself() -> None:
    begin = {"a": {0: 0, 1: 0}, "b": {0: 0}}
    end = {"a": {0: 50, 1: 50}, "b": {0: 50}}
    found = sample_ranges("s", begin, end, 4)
    assert sum(one.rows for one in found if one.topic == "a") == 4
    assert {one.partition for one in found if one.topic == "a"} == {0, 1}
    assert sum(one.rows for one in found if one.topic == "b") == 4


@given(
    st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), min_size=1, max_size=6),
    st.integers(1, 60),
)
def test_a_sample_is_bounded_inside_of_the_logs_and_without_repeats(
    logs: list[tuple[int, int]], limit: int
) -> None:
    begin = {"t": {number: first for number, (first, _) in enumerate(logs)}}
    end = {"t": {number: first + size for number, (first, size) in enumerate(logs)}}
    found = sample_ranges("s", begin, end, limit)
    taken = [(one.partition, at) for one in found for at in range(one.start, one.until)]
    assert len(taken) == len(set(taken)) == min(limit, sum(size for _, size in logs))
    assert all(begin["t"][number] <= at < end["t"][number] for number, at in taken)
