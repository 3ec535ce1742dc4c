import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestd.paimon.table.retention.expire_plan import (
    Retention,
    Window,
    changelogs_end,
    snapshots_end,
)

ALL = 2**31 - 1
NOW = 1_000_000


def ends(window: Window, retention: Retention, ages: dict[int, int] | None = None) -> int:
    return snapshots_end(window, retention, NOW, lambda one: NOW - (ages or {}).get(one, NOW))


@pytest.mark.parametrize(
    ("retention", "end"),
    [
        (Retention(1, ALL, 0, 50), 20),
        (Retention(5, ALL, 0, 50), 16),
        (Retention(30, ALL, 0, 50), 0),
        (Retention(1, ALL, 0, 3), 4),
        (Retention(1, 5, 2 * NOW, 50), 16),
        (Retention(1, ALL, 2 * NOW, 50), 1),
    ],
)
def test_the_oldest_go_up_to_a_number_a_time_and_a_limit(retention: Retention, end: int) -> None:
    assert max(ends(Window(1, 20), retention), 0) == max(end, 0) or end == 0


def test_a_snapshot_stays_as_long_as_its_successor_is_young() -> None:
    ages = {1: 900, 2: 800, 3: 50, 4: 0}
    retention = Retention(1, ALL, 100, 50)
    assert ends(Window(1, 4), retention, ages) == 2


def test_what_others_need_stays() -> None:
    assert ends(Window(1, 20, held_from=7), Retention(1, 3, 0, 50)) == 7
    assert ends(Window(1, 20, held_from=99), Retention(1, ALL, 0, 50)) == 20


@given(
    st.integers(1, 30), st.integers(0, 40), st.integers(1, 20), st.integers(0, 30),
    st.integers(1, 60), st.integers(0, 500), st.data(),
)  # fmt: skip
def test_neither_too_many_nor_too_few_stay(
    earliest: int, span: int, least: int, more: int, limit: int, time_ms: int, data: st.DataObject
) -> None:
    latest = earliest + span
    ages = sorted(data.draw(st.lists(st.integers(0, 500), min_size=span + 1, max_size=span + 1)))
    times = {earliest + at: NOW - age for at, age in enumerate(reversed(ages))}
    retention = Retention(least, least + more, time_ms, limit)
    end = max(snapshots_end(Window(earliest, latest), retention, NOW, times.get), earliest)
    assert latest - end + 1 >= min(least, span + 1)
    assert end - earliest <= limit
    for index in range(earliest, end):
        beyond_most = index <= latest - retention.num_max
        assert beyond_most or NOW - times[index + 1] > time_ms
    cut_by_limit = end - earliest == limit
    if not cut_by_limit:
        assert latest - end + 1 <= retention.num_max


def test_the_newest_changelog_never_goes() -> None:
    window = Window(1, 20)
    end = changelogs_end(window, 9, Retention(1, ALL, 0, 50), NOW, lambda _: 0)
    assert end == 9
    assert changelogs_end(window, 9, Retention(15, ALL, 0, 50), NOW, lambda _: 0) == 6
    assert changelogs_end(window, 9, Retention(1, ALL, NOW, 50), NOW, lambda _: NOW) == 1
