"""A query that neither begins a batch nor finds that there is nothing to do is overdue."""

from prometheus_client import REGISTRY

from ingestd.daemon.rounds import ASKING_SECONDS, STUCK_SECONDS, Rounds
from tests.support.clock import Clock


def test_it_is_overdue_when_no_round_came_for_too_long(clock: Clock) -> None:
    rounds = Rounds(clock, clock, 3600)
    clock.now += STUCK_SECONDS
    assert not rounds.is_overdue
    clock.now += 1
    assert rounds.is_overdue
    assert not rounds.any
    rounds.done()
    assert rounds.any
    assert not rounds.is_overdue
    assert REGISTRY.get_sample_value("ingestd_last_round_timestamp_seconds") == clock.now


def test_patience_may_be_less(clock: Clock) -> None:
    rounds = Rounds(clock, clock, 5)
    clock.now += 6
    assert rounds.is_overdue
    assert rounds.seconds == 6


def test_many_sources_are_asked_in_turn_and_may_all_be_slow(clock: Clock) -> None:
    rounds = Rounds(clock, clock, 3600, 6)
    clock.now += STUCK_SECONDS + 5 * ASKING_SECONDS
    assert not rounds.is_overdue
    clock.now += 1
    assert rounds.is_overdue
    hasty = Rounds(clock, clock, 5, 6)
    clock.now += 6
    assert hasty.is_overdue


def test_a_round_that_is_put_off_on_purpose_is_not_overdue(clock: Clock) -> None:
    rounds = Rounds(clock, clock, 5)
    rounds.hold(held=True)
    clock.now += 1000
    assert not rounds.is_overdue
    rounds.hold(held=False)
    clock.now += 6
    assert rounds.is_overdue


def test_a_query_that_is_started_again_has_its_time(clock: Clock) -> None:
    rounds = Rounds(clock, clock, 5)
    rounds.hold(held=True)
    clock.now += 100
    rounds.started()
    assert (rounds.any, rounds.seconds) == (False, 0)
    clock.now += 6
    assert rounds.is_overdue


def test_time_that_the_start_took_is_not_counted(clock: Clock) -> None:
    rounds = Rounds(clock, clock, 5)
    clock.now += 100
    rounds.opened()
    assert not rounds.is_overdue
    assert not rounds.any
    clock.now += 6
    assert rounds.is_overdue
