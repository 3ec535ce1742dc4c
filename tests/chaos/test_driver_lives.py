"""Random lives of a pipeline: whatever happens, no record is lost in silence, none is there twice.

Starts, planning, batches, commits and tables are real, over files in memory and brokers made of
lists; see `tests/support/driver_lives.py` for the promise. A life takes about 50 ms. With
INGESTD_LONG=1 there are 20,000, and every ordered pair of actions after a life of some batches.
"""

import os
from collections.abc import Iterator
from itertools import chain, product
from random import Random

import pytest

from ingestd.errors import IngestdError
from tests.chaos.driver_rules import RULES
from tests.support.driver_actions import ACTIONS, drawn, play
from tests.support.driver_lives import BrokenError, World, born, rejected
from tests.support.fast_driver import fast_driver

pytestmark = pytest.mark.chaos
LONG = "INGESTD_LONG" in os.environ
LIVES = 20_000 if LONG else 400
PAIRS = len(ACTIONS) ** 2 if LONG else 100
MOST = 2000
"""At most this many lives are played to find that a rule is missing."""
KNOWN = (3, 724, 179, 97, 68, 56, 50, 34)
"""Seeds of lives that found that some rule was missing; they are played first."""
Kind = tuple[str, str, int]
Births = dict[Kind, World]


@pytest.fixture(scope="module")
def births() -> Iterator[Births]:
    """Pipelines that have read several batches, by start mode, policy and number of buckets."""
    with fast_driver():
        yield {
            ("earliest-offset", "fail", -1): born(),
            ("earliest-offset", "fail", 2): born(buckets=2),
            ("earliest-offset", "earliest", -1): born(policy="earliest"),
            ("earliest-offset", "latest", -1): born(policy="latest"),
            ("latest-offset", "fail", -1): born("latest-offset"),
        }


def _broken(births: Births, seed: int, added: float = 0) -> str | None:
    """What is wrong with a random life, if anything is."""
    kind, names = drawn(Random(seed), sorted(births), added)
    try:
        play(births[kind].copy(), names)
    except BrokenError as error:
        return f"seed {seed}, {kind}, {names}: {error}"
    return None


def test_in_no_random_life_a_record_is_lost_in_silence_or_there_twice(births: Births) -> None:
    found = [_broken(births, seed, 0.3) for seed in range(LIVES)]
    assert [one for one in found if one is not None] == []


def test_after_no_pair_of_actions_a_record_is_lost_in_silence_or_there_twice(
    births: Births,
) -> None:
    pairs = sorted(product(ACTIONS, ACTIONS))
    Random(0).shuffle(pairs)
    found = []
    for one, other in pairs[:PAIRS]:
        try:
            world = births["earliest-offset", "fail", -1].copy()
            play(world, [one, "produce", "run_one_batch", other])
        except BrokenError as error:
            found.append(f"{one}, {other}: {error}")
    assert found == []


@pytest.mark.parametrize("rule", RULES)
def test_lives_find_that_a_rule_of_the_recovery_is_missing(births: Births, rule: str) -> None:
    """Or they would prove nothing."""
    with RULES[rule]():
        for seed in chain(KNOWN, range(MOST)):
            try:
                broken = _broken(births, seed)
            except (IngestdError, AssertionError) as error:  # as a daemon would end
                broken = repr(error)
            if broken is not None:
                print(f"{rule}: found by the life of seed {seed}: {broken[:200]}")
                return
    raise AssertionError(f"{MOST} lives did not need it")


def test_unread_records_of_each_partition_of_an_ended_topic_are_named(births: Births) -> None:
    """One partition concerns the dead-letter table, the other a table that does not exist."""
    life = (
        "rename_source, roll_back_letters, drop_orders, move_warehouse, produce, "
        "beside create_orders_again_shorter, produce, roll_back_letters, truncate_orders"
    )
    play(births["latest-offset", "fail", -1].copy(), life.split(", "))


@pytest.mark.parametrize(
    ("kind", "life"),
    [
        (
            ("latest-offset", "fail", -1),
            "produce, die_publish.linked_1, die_publish.linked_1, rename_source, lose_claims, "
            "add_item_topic, refresh_records, die_schema.chosen_1",
        ),
        (
            ("earliest-offset", "latest", -1),
            "produce, beside produce_orders, produce, beside roll_back_users, clock_behind, "
            "rename_source",
        ),
        (
            ("earliest-offset", "fail", -1),
            "produce, produce, produce, run_to_end, roll_back_users, split_source",
        ),
    ],
)
def test_dead_letters_of_a_renamed_source_are_not_written_again(
    births: Births, kind: Kind, life: str
) -> None:
    """Records are read again after a crash or a rollback, under another name of their source."""
    play(births[kind].copy(), life.split(", "))


@pytest.mark.parametrize(
    ("kind", "life"),
    [
        (
            ("latest-offset", "fail", -1),
            "produce, die_hint.written_1, foreign_expiry_of_records",
        ),
        (
            ("earliest-offset", "fail", 2),
            "die_snapshot.published_1, foreign_expiry_of_records, die_claims.written_1, "
            "add_partition",
        ),
    ],
)
def test_rows_are_not_written_again_after_another_writer_expired_their_commit(
    births: Births, kind: Kind, life: str
) -> None:
    """The daemon ended after a commit, before it wrote the claims file."""
    world = play(births[kind].copy(), life.split(", "))
    assert any("the rows of a later commit would be written again" in one for one in world.trace)


def test_a_table_goes_on_if_its_topic_gets_a_source_of_its_own(births: Births) -> None:
    world = births["earliest-offset", "fail", -1].copy()
    for actions in (["split_source", "produce"], ["split_source", "produce"]):
        play(world, actions)
        assert all(number < 0 for _, number in rejected(world.home))


@pytest.mark.parametrize(
    "life",
    [
        "run_to_end, create_orders_table_again, produce, beside create_orders_table_again",
        "produce, drop_orders, beside create_orders_table_again",
    ],
)
def test_a_table_that_is_created_again_before_its_first_commit_does_not_get_lost_files(
    births: Births, life: str
) -> None:
    world = play(births["earliest-offset", "fail", -1].copy(), life.split(", "))
    assert "CommitConflictError" in world.trace
