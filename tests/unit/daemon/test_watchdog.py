"""A query that neither begins a batch nor finds that there is nothing to do is overdue."""

from prometheus_client import REGISTRY

from ingestd.daemon.watchdog import PER_SOURCE_SECONDS, STUCK_SECONDS, Watchdog
from tests.support.clock import Clock


def test_it_is_overdue_when_no_round_came_for_too_long(clock: Clock) -> None:
    watchdog = Watchdog(clock, clock, 3600)
    clock.now += STUCK_SECONDS
    assert not watchdog.is_overdue
    clock.now += 1
    assert watchdog.is_overdue
    assert not watchdog.has_polled
    watchdog.done()
    assert watchdog.has_polled
    assert not watchdog.is_overdue
    assert REGISTRY.get_sample_value("ingestd_last_poll_timestamp_seconds") == clock.now


def test_patience_may_be_less(clock: Clock) -> None:
    watchdog = Watchdog(clock, clock, 5)
    clock.now += 6
    assert watchdog.is_overdue
    assert watchdog.seconds == 6


def test_many_sources_are_asked_in_turn_and_may_all_be_slow(clock: Clock) -> None:
    watchdog = Watchdog(clock, clock, 3600, 6)
    clock.now += STUCK_SECONDS + 5 * PER_SOURCE_SECONDS
    assert not watchdog.is_overdue
    clock.now += 1
    assert watchdog.is_overdue
    hasty = Watchdog(clock, clock, 5, 6)
    clock.now += 6
    assert hasty.is_overdue


def test_a_round_that_is_put_off_on_purpose_is_not_overdue(clock: Clock) -> None:
    watchdog = Watchdog(clock, clock, 5)
    watchdog.hold(held=True)
    clock.now += 1000
    assert not watchdog.is_overdue
    watchdog.hold(held=False)
    clock.now += 6
    assert watchdog.is_overdue


def test_a_query_that_is_started_again_has_its_time(clock: Clock) -> None:
    watchdog = Watchdog(clock, clock, 5)
    watchdog.hold(held=True)
    clock.now += 100
    watchdog.started()
    assert (watchdog.has_polled, watchdog.seconds) == (False, 0)
    clock.now += 6
    assert watchdog.is_overdue


def test_time_that_the_start_took_is_not_counted(clock: Clock) -> None:
    watchdog = Watchdog(clock, clock, 5)
    clock.now += 100
    watchdog.opened()
    assert not watchdog.is_overdue
    assert not watchdog.has_polled
    clock.now += 6
    assert watchdog.is_overdue
