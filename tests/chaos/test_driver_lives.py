"""Random lives of a pipeline: whatever happens, no record is lost in silence, none is there twice.

Starts, planning, batches, commits and tables are real, over files in memory and brokers made of
lists; see `tests/support/driver_lives.py` for the promise. With INGESTD_LONG=1 there are thousands
of lives, and every ordered pair of actions after a life of some batches.
"""

import os
from collections.abc import Iterator
from itertools import product
from random import Random

import pytest

from tests.support.driver_actions import ACTIONS, drawn, play
from tests.support.driver_lives import BrokenError, World, born, fast_driver

pytestmark = pytest.mark.chaos
LONG = "INGESTD_LONG" in os.environ
LIVES = 2000 if LONG else 60
PAIRS = len(ACTIONS) ** 2 if LONG else 40
MOST = 400
"""So many lives at most may pass until a rule that is missing is found."""


@pytest.fixture(scope="module")
def births() -> Iterator[dict[tuple[str, str], World]]:
    """Pipelines that have read several batches, by start mode and policy."""
    with fast_driver():
        kinds = (
            ("earliest-offset", "fail"),
            ("earliest-offset", "earliest"),
            ("earliest-offset", "latest"),
            ("latest-offset", "fail"),
        )
        yield {kind: born(*kind) for kind in kinds}  # type: ignore[arg-type]


def _broken(births: dict[tuple[str, str], World], seed: int) -> str | None:
    """What is wrong with a random life, if anything is."""
    kind, names = drawn(Random(seed), sorted(births))
    try:
        play(births[kind].copy(), names)
    except BrokenError as error:
        return f"seed {seed}, {kind}, {names}: {error}"
    return None


def test_in_no_random_life_a_record_is_lost_in_silence_or_there_twice(
    births: dict[tuple[str, str], World],
) -> None:
    found = [_broken(births, seed) for seed in range(LIVES)]
    assert [one for one in found if one is not None] == []


def test_after_no_pair_of_actions_a_record_is_lost_in_silence_or_there_twice(
    births: dict[tuple[str, str], World],
) -> None:
    pairs = sorted(product(ACTIONS, ACTIONS))
    Random(0).shuffle(pairs)
    found = []
    for one, other in pairs[:PAIRS]:
        try:
            world = births["earliest-offset", "fail"].copy()
            play(world, [one, "produce", "run_one_batch", other])
        except BrokenError as error:
            found.append(f"{one}, {other}: {error}")
    assert found == []
