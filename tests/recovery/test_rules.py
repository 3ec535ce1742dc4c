"""Each rule of the design, left out alone, breaks a life that is sound with it."""

import os

import pytest

from tests.recovery.daemon import Daemon
from tests.recovery.judge import BrokenError
from tests.recovery.lives import life, new_world, random_life, worlds
from tests.recovery.process import Driver
from tests.recovery.rules import RULES

LONG = os.environ.get("INGESTD_LONG") == "1"
DRIVER = Driver(Daemon)
FIRST_BROKEN = {
    "complete-record": 427,
    "absent-is-later": 127,
    "topic-id": 6,
    "leader-epoch": 5,
    "origin": 40,
    "founding-commit": 2,
    "sources-recorded": 1,
    "met-recorded": 9794,
    "claims-bound": 0,
    "claims-whole-tables": 129,
    "claims-checksum": 2,
    "fresh-checkpoint": 1,
    "record-of-any-user": 1,
    "one-snapshot": 572,
    "mark": 5489,
    "made-again": 1071,
    "routing-recorded": 82,
    "names": 0,
    "finished-recorded": 187,
    "base-by-identity": 0,
    "fed-topics": 58,
    "lagging-topic": 46,
    "passed-topic": 0,
    "dead-letters-exempt": 124,
    "unread-topic-reported": 10,
    "losses-by-table": 4,
    "letter-first": 250,
    "claims-after-acceptance": 436,
    "maintenance-copies": 198,
    "other-records-copied": 34,
    "overwrite-reported": 8,
    "copy-marks-overwrite": 72,
    "other-pipeline": 8,
    "other-pipeline-unfed": 1440,
    "formerly-replaces": 572,
    "planned-losses-reopen": 245,
}
"""The number of the first life by chance that breaks without the rule."""


DIRECTED = {"accepted-everywhere": "run roll_back_to_first die_at_2 truncate_log"}
"""Lives that chance finds only among more than ten thousand; the policy is `earliest`."""


def test_every_rule_is_left_out_somewhere() -> None:
    assert FIRST_BROKEN.keys() | DIRECTED.keys() == RULES.keys()


@pytest.mark.parametrize("rule", FIRST_BROKEN)
def test_a_life_without_the_rule_breaks(rule: str) -> None:
    seed = FIRST_BROKEN[rule]
    random_life(worlds(DRIVER), DRIVER, seed)
    with pytest.raises(BrokenError):
        random_life(worlds(DRIVER, [rule]), DRIVER, seed)


@pytest.mark.parametrize("rule", DIRECTED)
def test_a_directed_life_without_the_rule_breaks(rule: str) -> None:
    names = DIRECTED[rule].split()
    life(new_world(DRIVER, policy="earliest"), DRIVER, names)
    with pytest.raises(BrokenError):
        life(new_world(DRIVER, policy="earliest", off=[rule]), DRIVER, names)


@pytest.mark.skipif(not LONG, reason="tens of thousands of lives; INGESTD_LONG=1 runs them")
@pytest.mark.parametrize("rule", FIRST_BROKEN)
def test_no_life_before_it_breaks(rule: str) -> None:
    """The number of lives that it takes to find that a rule is missing."""
    begin = worlds(DRIVER, [rule])
    for seed in range(FIRST_BROKEN[rule]):
        random_life(begin, DRIVER, seed)
