import random

import pytest

from ingestd.daemon.restarts import RestartBudget, RestartPolicy


class Longest(random.Random):
    def uniform(self, a: float, b: float) -> float:
        return b


def budget(attempts: int = 100, window: float = 1e9) -> RestartBudget:
    return RestartBudget(RestartPolicy(attempts, window, 1.0, 10.0), Longest())


def test_waits_double_up_to_the_bound() -> None:
    one = budget()
    assert [one.next_wait(0) for _ in range(6)] == [1, 2, 4, 8, 10, 10]


def test_waits_fall_back_after_a_batch_that_went_through() -> None:
    one = budget()
    assert [one.next_wait(0), one.next_wait(1)] == [1, 2]
    one.succeeded()
    assert one.next_wait(2) == 1


def test_a_thousand_failures_in_a_row_are_no_overflow() -> None:
    one = budget(attempts=5000)
    assert {one.next_wait(n) for n in range(2000)} == {1, 2, 4, 8, 10}


def test_the_budget_ends_even_if_batches_go_through_in_between() -> None:
    one = budget(attempts=3)
    for now in range(3):
        assert one.next_wait(now) is not None
        one.succeeded()
    assert one.next_wait(3) is None


def test_old_restarts_are_forgiven() -> None:
    one = budget(attempts=2, window=60)
    assert one.next_wait(0) is not None
    assert one.next_wait(30) is not None
    assert one.next_wait(59) is None
    assert one.next_wait(60) is not None
    assert one.next_wait(61) is None


def test_what_does_not_count_is_waited_out_for_ever_and_leaves_the_budget() -> None:
    one = budget(attempts=1)
    assert {one.next_wait(now, counts=False) for now in range(50)} == {1, 2, 4, 8, 10}
    assert one.next_wait(50) is not None
    assert one.next_wait(51) is None
    assert one.next_wait(52, counts=False) is not None


def test_no_attempts_means_no_restart() -> None:
    assert budget(attempts=0).next_wait(0) is None


def test_many_daemons_do_not_come_back_at_once() -> None:
    waits = {RestartBudget(RestartPolicy(), random.Random(seed)).next_wait(0) for seed in range(20)}
    assert len(waits) > 10
    assert all(wait is not None and 0.75 <= wait <= 1.0 for wait in waits)


@pytest.mark.parametrize("initial", [0.0, 100.0])
def test_the_bound_holds_for_the_first_wait_too(initial: float) -> None:
    one = RestartBudget(RestartPolicy(10, 600, initial, 5.0), Longest())
    assert one.next_wait(0) == min(initial, 5.0)
