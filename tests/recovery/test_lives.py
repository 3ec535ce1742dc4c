"""The design of recovery, lived: every order of a few actions, and long lives by chance.

With INGESTD_LONG=1 every order of up to four actions, and 200,000 lives by chance.
"""

import os
import random
from collections import Counter

import pytest

from tests.recovery.actions import ACTIONS
from tests.recovery.daemon import Daemon
from tests.recovery.lives import every_life, life, new_world, random_life, tally, worlds
from tests.recovery.process import Driver

LONG = os.environ.get("INGESTD_LONG") == "1"
DRIVER = Driver(Daemon)


@pytest.mark.parametrize(
    ("latest", "policy"), [(True, "fail"), (False, "fail"), (True, "earliest"), (False, "latest")]
)
def test_every_order_of_two_actions(latest: bool, policy: str) -> None:
    world = new_world(DRIVER, latest=latest, policy=policy)
    counts = tally(every_life(world, DRIVER, 2))
    assert counts.total() > 2000
    assert counts["sound"] > counts.total() * 3 // 4


@pytest.mark.parametrize("length", [3, 4])
def test_a_sample_of_orders_of_more_actions(length: int) -> None:
    begin = worlds(DRIVER)
    counts = Counter(random_life(begin, DRIVER, seed, length) for seed in range(600))
    assert counts["sound"] > 300


def test_lives_by_chance() -> None:
    begin = worlds(DRIVER)
    lives = 200_000 if LONG else 1000
    counts = Counter(random_life(begin, DRIVER, seed) for seed in range(lives))
    print(counts)
    assert {"sound", "offsets-lost", "topic-lost", "other-pipeline", "record-lost"} <= set(counts)


@pytest.mark.skipif(not LONG, reason="millions of lives; INGESTD_LONG=1 runs them")
@pytest.mark.timeout(12 * 3600)
@pytest.mark.parametrize("first", list(ACTIONS))
def test_every_order_of_four_actions_by_its_first(first: str) -> None:
    world = new_world(DRIVER)
    if ACTIONS[first](world, DRIVER):
        print(first, tally(every_life(world, DRIVER, 3, (first,))))


def test_a_life_is_the_same_again() -> None:
    names = random.Random(1).choices(list(ACTIONS), k=8)
    world = new_world(DRIVER)
    assert life(world, DRIVER, names) == life(world, DRIVER, names)
