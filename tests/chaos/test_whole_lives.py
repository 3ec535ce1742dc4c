"""Whole lives of a pipeline: real broker, processes, Spark and files, and Java as the reader.

One in each run, in which tables are restored from a backup, commands of errors are run and a
process dies; with INGESTD_LONG=1 two hundred. INGESTD_LIVES=FIRST:COUNT takes others.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from ingestd.dev.broker import DevBroker
from tests.chaos.whole_lives import play_whole, whole_actions
from tests.support.driver_lives import BrokenError
from tests.support.kafka_broker import running_broker
from tests.support.oracle import Oracle

pytestmark = [pytest.mark.chaos, pytest.mark.slow, pytest.mark.timeout(36_000)]
LONG = "INGESTD_LONG" in os.environ
FIRST, COUNT = map(int, os.environ.get("INGESTD_LIVES", "0:200" if LONG else "1:1").split(":"))
KINDS = (
    ("earliest-offset", "fail"),
    ("earliest-offset", "earliest"),
    ("earliest-offset", "latest"),
    ("latest-offset", "fail"),
)


@pytest.fixture
def broker() -> Iterator[DevBroker]:
    """A broker of its own: a life reads and deletes topics by a pattern that others match too."""
    with running_broker() as running:
        yield running


def drawn(seed: int) -> tuple[tuple[str, str], list[str]]:
    """How a life begins, and what happens in it."""
    random, actions = Random(seed), whole_actions()
    deaths = [name for name in actions if name.startswith(("die", "kill"))]
    others = [name for name in actions if name not in deaths]
    beside = [
        other for other in others if not other.startswith(("run", "rename", "policy", "another"))
    ]
    names = []
    for _ in range(random.randrange(2, 5)):
        which = random.random()
        if which < 0.3:
            names.append(random.choice(deaths))
        elif which < 0.4:
            names.append(f"beside {random.choice(beside)}")
        else:
            names.append(random.choice(others))
    return random.choice(KINDS), names


def test_in_no_whole_life_a_record_is_lost_in_silence_or_there_twice(
    tmp_path: Path, broker: DevBroker, oracle: Oracle
) -> None:
    broken = []
    for seed in range(FIRST, FIRST + COUNT):
        kind, names = drawn(seed)
        outcome = "sound"
        try:
            play_whole(tmp_path / str(seed), broker, oracle, kind, names)
        except BrokenError as error:
            outcome = f"BROKEN: {error}"
            broken.append(f"{seed}: {kind} {names}: {error}")
        print(f"life {seed}: {names}: {outcome}", flush=True)
    assert broken == []
