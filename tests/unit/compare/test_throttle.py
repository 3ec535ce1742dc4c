"""No second has more rows than the rate, but for the statement that exceeds it alone."""

from ingestd.compare.throttle import Throttle
from tests.support.clock import Clock


def test_rows_are_read_at_the_rate() -> None:
    time = Clock(100.0)
    throttle = Throttle(1000, time, time.sleep)
    for _ in range(20):
        throttle.took(500)
    assert time.now - 100 == 10
    assert throttle.rows == 10_000


def test_time_that_passed_gives_a_second_of_credit_at_most() -> None:
    time = Clock(100.0)
    throttle = Throttle(1000, time, time.sleep)
    time.now += 3600
    before = time.now
    throttle.took(1000)
    assert time.now == before
    throttle.took(5000)
    assert time.now == before + 5
