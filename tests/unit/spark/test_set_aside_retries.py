"""What could not be read is tried again, less and less often, until it can be or a limit is met."""

import pytest

from ingestd.errors import PolicyStopError, SourceError
from ingestd.ingest.settings.error_policy import UnreadablePolicy
from ingestd.kafka.offset_ranges import OffsetRange
from ingestd.spark.set_aside import KnownRanges, QueryRetries
from tests.support.clock import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock(0.0)


LEFT = OffsetRange("shop", "orders", 3, 10, 20)


class Process:
    """A try that ends when the test says so."""

    def __init__(self) -> None:
        self.code: int | None = None
        self.killed = False

    def poll(self) -> int | None:
        return self.code

    def kill(self) -> None:
        self.killed = True

    def wait(self) -> int:
        return -9


class Starter:
    def __init__(self) -> None:
        self.made: list[Process] = []
        self.asked: list[int] = []

    def __call__(self, left: OffsetRange) -> Process:
        self.asked.append(left.start)
        self.made.append(Process())
        return self.made[-1]


def test_waits_grow_and_outlive_a_run(clock: Clock) -> None:
    known = KnownRanges()
    starter = Starter()
    for wait in (60, 120, 240):
        retries = QueryRetries(starter, known, UnreadablePolicy(), clock)
        retries.add(LEFT)
        tries = len(starter.made)
        clock.now += wait - 1
        retries.poll()
        assert len(starter.made) == tries
        clock.now += 1
        retries.poll()
        assert len(starter.made) == tries + 1
    for _ in range(10):
        retries.add(LEFT)
    assert known.tried["shop", "orders", 3].due == clock.now + 3600
    retries.add(OffsetRange("shop", "orders", 3, 15, 20))
    assert known.tried["shop", "orders", 3].due == clock.now + 60, "it came further"


def test_what_can_be_read_again_starts_the_query_again(clock: Clock) -> None:
    starter = Starter()
    retries = QueryRetries(starter, KnownRanges(), UnreadablePolicy(), clock)
    retries.add(LEFT)
    clock.now += 60
    retries.poll()
    retries.poll()
    starter.made[0].code = 3
    retries.poll()
    clock.now += 120
    retries.poll()
    starter.made[1].code = 0
    with pytest.raises(SourceError, match=r"orders/3 .* read again at offset 10"):
        retries.poll()


def test_a_limit_ends_it(clock: Clock) -> None:
    starter = Starter()
    retries = QueryRetries(starter, KnownRanges(), UnreadablePolicy(2), clock)
    retries.add(LEFT)
    retries.poll()
    clock.now += 60
    retries.poll()
    starter.made[0].code = 3
    retries.poll()
    with pytest.raises(PolicyStopError, match=r"2 times.*errors\.max-unreadable-tries"):
        retries.poll()


def test_a_try_ends_with_its_run(clock: Clock) -> None:
    starter = Starter()
    retries = QueryRetries(starter, KnownRanges(), UnreadablePolicy(), clock)
    retries.add(LEFT)
    clock.now += 60
    retries.poll()
    retries.close()
    assert starter.made[0].killed


@pytest.mark.parametrize("first_good", [11, 12, 13, 17, 19, 20])
def test_the_policy_gives_up_what_cannot_be_read_and_nothing_more(
    clock: Clock, first_good: int
) -> None:
    known, starter = KnownRanges(), Starter()
    retries = QueryRetries(starter, known, UnreadablePolicy(2, "dead-letter"), clock)
    retries.add(LEFT)
    assert not retries.is_deciding
    retries.add(LEFT)
    assert retries.is_deciding
    with pytest.raises(SourceError, match=rf"offsets 10 to {first_good}.*on-unreadable"):
        for _ in range(40):
            retries.poll()
            starter.made[-1].code = 0 if starter.asked[-1] >= first_good else -6
    assert known.given_up == {
        ("shop", "orders", 3): OffsetRange("shop", "orders", 3, 10, first_good)
    }
    assert len(starter.made) <= 8
