"""The order of changes: by time if their records are far apart, else by position."""

import numpy as np
import pytest

from ingestd.ingest.values.source_points import (
    MAX_SKEW_MS,
    NO_POINT,
    SourcePoint,
    is_after,
    last_truncate,
    later_point,
)

NOW = 1_700_000_000_000
POINT = SourcePoint(100, NOW)


@pytest.mark.parametrize(
    ("other", "later"),
    [
        (SourcePoint(101, NOW), True),
        (SourcePoint(100, NOW + MAX_SKEW_MS), False),
        (SourcePoint(99, NOW), False),
        (SourcePoint(101, NOW - MAX_SKEW_MS), True),
        (SourcePoint(101, NOW - MAX_SKEW_MS - 1), False),
        (SourcePoint(5, NOW + MAX_SKEW_MS), False),
        (SourcePoint(5, NOW + MAX_SKEW_MS + 1), True),
        (SourcePoint(101), True),
        (SourcePoint(99), False),
    ],
)
def test_positions_decide_unless_the_records_are_far_apart(other: SourcePoint, later: bool) -> None:
    assert other.is_after(POINT) is later
    masks = is_after(np.array([other.position]), np.array([other.time]), POINT)
    assert masks.tolist() == [later]
    assert later_point(POINT, other) == (other if later else POINT)


def test_positions_decide_if_the_time_of_the_point_is_unknown() -> None:
    positions, times = np.array([99, 101]), np.array([NOW, 5])
    assert is_after(positions, times, SourcePoint(100)).tolist() == [False, True]
    assert SourcePoint(101, 5).is_after(SourcePoint(100))


def test_every_position_is_after_no_point() -> None:
    assert SourcePoint(0).is_after(NO_POINT)
    assert not NO_POINT.is_after(NO_POINT)


def test_of_two_truncates_the_later_one_counts() -> None:
    assert last_truncate(None, None) is None
    assert last_truncate(POINT, None) == last_truncate(None, POINT) == POINT
    assert last_truncate(POINT, SourcePoint(5, NOW + 2 * MAX_SKEW_MS)) == (5, NOW + 2 * MAX_SKEW_MS)
    assert last_truncate(POINT, SourcePoint(200, NOW - 1)) == (200, NOW)


def test_truncates_whose_order_is_a_circle_are_added_in_an_end() -> None:
    circle = [SourcePoint(position, NOW + time) for position, time in ((9, 0), (5, 50), (1, 100))]
    circle = [point._replace(time=NOW + (point.time - NOW) * 1000) for point in circle]
    assert [circle[0].is_after(circle[1]), circle[1].is_after(circle[2])] == [True, True]
    assert circle[2].is_after(circle[0])
    applied, added = circle[0], 0
    while later := [point for point in circle if point.is_after(applied)]:
        applied, added = last_truncate(applied, later[0]) or applied, added + 1
        assert added < len(circle)
