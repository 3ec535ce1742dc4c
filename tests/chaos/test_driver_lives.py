"""Random lives of a pipeline: whatever happens, no record is lost in silence, none is there twice.

Starts, planning, batches, commits and tables are real, over files in memory and brokers made of
lists; see `tests/support/driver_lives.py` for the promise. A life takes about 50 ms. With
INGESTD_LONG=1 there are 20,000, and every ordered pair of actions after a life of some batches.
"""

import os
from collections.abc import Iterator, Mapping
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
LIVES = 20_000 if LONG else 120
PAIRS = len(ACTIONS) ** 2 if LONG else 40
MOST = 2000
"""At most this many random lives are played to find that a rule is missing."""
AGAIN = 60
"""Which digit of the claims file an action changes depends on the actions before it."""
Kind = tuple[str, str, int]
Births = dict[Kind, World]
USUAL, LATE = ("earliest-offset", "fail", -1), ("latest-offset", "fail", -1)
EARLIEST, LATEST = (("earliest-offset", policy, -1) for policy in ("earliest", "latest"))
NEEDED_BY: Mapping[str, tuple[Kind, str]] = {
    "each log is read on from the least advanced table": (LATE, "roll_back_as_latest"),
    "batches that a death cut off are not finished": (
        LATE,
        "drop_users, produce, die_dead-letters.committed_1, die_snapshot.published_1",
    ),
    "rows that a table has are left out": (LATE, "roll_back_as_latest"),
    "topics that were created again or deleted are noticed": (
        EARLIEST,
        "create_orders_again_shorter",
    ),
    "records that expired unread are named": (LATEST, "truncate_log_and_grow"),
    "logs are compared with what was read of them": (LATEST, "truncate_log_and_grow"),
    "another pipeline on the same tables is refused": (LATE, "rename_pipeline_unnoticed"),
    "a renamed source is the same source": (LATEST, "rename_source, truncate_log_and_grow"),
    "a record is looked for in all snapshots that are left": (LATE, "produce"),
    "a table without a record is for a person to decide": (LATE, "foreign_expiry_of_records"),
    "claims hold for one record of a table": (LATE, "roll_back_as_latest"),
    "dropped tables are named": (LATE, "drop_users"),
    "overwrites by other programs are named": (LATE, "beside foreign_overwrite"),
    "claims have a checksum": (USUAL, "change_claims_digit"),
}
"""For each rule a short life that needs it, which random lives have found."""


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
    """Or they would prove nothing. The known life is sound with the rule, and is played first."""
    kind, known = NEEDED_BY[rule]
    play(births[kind].copy(), known.split(", "))
    again = ((kind, ["policy_fail"] * number + known.split(", ")) for number in range(AGAIN))
    others = (drawn(Random(seed), sorted(births)) for seed in range(MOST))
    with RULES[rule]():
        for number, (kind, names) in enumerate(chain(again, others)):
            try:
                play(births[kind].copy(), names)
            except (IngestdError, AssertionError) as error:  # as a daemon would end
                print(f"{rule}: found by life {number}, {kind}, {names}: {str(error)[:200]}")
                return
    raise AssertionError(f"{AGAIN + MOST} lives did not need it")


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
