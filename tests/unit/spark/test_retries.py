"""What could not be read is tried again, less and less often, until it can be or a limit is met."""

import pytest

from ingestd.errors import PolicyStopError, SourceError
from ingestd.kafka.ranges import OffsetRange, Place
from ingestd.spark.retries import Retries, Tried
from tests.support.clock import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock(0.0)


LEFT = OffsetRange("shop", "orders", 3, 10, 20)


class Process:
    """A try that ends when it is told to."""

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

    def __call__(self, left: OffsetRange) -> Process:
        self.made.append(Process())
        return self.made[-1]


def test_waits_grow_and_outlive_a_run(clock: Clock) -> None:
    known: dict[Place, Tried] = {}
    starter = Starter()
    for wait in (60, 120, 240):
        retries = Retries(starter, known, None, clock)
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
    assert known["shop", "orders", 3].due == clock.now + 3600
    retries.add(OffsetRange("shop", "orders", 3, 15, 20))
    assert known["shop", "orders", 3].due == clock.now + 60, "it came further"


def test_what_can_be_read_again_starts_the_query_again(clock: Clock) -> None:
    starter = Starter()
    retries = Retries(starter, {}, None, clock)
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
    retries = Retries(starter, {}, 2, clock)
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
    retries = Retries(starter, {}, None, clock)
    retries.add(LEFT)
    clock.now += 60
    retries.poll()
    retries.close()
    assert starter.made[0].killed
