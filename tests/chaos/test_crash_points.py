"""SIGKILL at every named step of a batch, a commit and maintenance, for every kind of table.

Alone, and in chains in which every process dies while it makes good the death of the one before.
With INGESTD_LONG=1 every kind is killed each time it passes a step, not only the first time.
"""

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from ingestd.crash_points import CrashPoint
from tests.support.crash_kinds import KINDS
from tests.support.crash_runs import dies, finish, steps_of, wrong, wrong_for_java
from tests.support.crash_scene import Scene
from tests.support.oracle import Oracle

pytestmark = pytest.mark.chaos
LONG = "INGESTD_LONG" in os.environ
Steps = Mapping[str, Counter[CrashPoint]]


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> Steps:
    """How often an undisturbed life of each kind passes each step."""
    root = tmp_path_factory.mktemp("undisturbed")
    return {kind: Counter(steps_of(root / kind, kind)) for kind in KINDS}


def alone(steps: Steps, kind: str) -> Iterator[tuple[CrashPoint, int]]:
    """Steps at which to kill a kind alone, and which time: in short each step in one kind."""
    for index, point in enumerate(CrashPoint):
        by = [kind for kind in KINDS if point in steps[kind]]
        if LONG:
            yield from ((point, times) for times in range(1, steps[kind][point] + 1))
        elif by and by[index % len(by)] == kind:
            yield point, 1 + index % steps[kind][point]


def test_every_step_is_reached_by_some_kind_of_table(steps: Steps) -> None:
    reached = {point for passed in steps.values() for point in passed}
    assert reached == set(CrashPoint)


def test_every_step_is_killed_alone_in_some_kind_of_table(steps: Steps) -> None:
    assert {point for kind in KINDS for point, _ in alone(steps, kind)} == set(CrashPoint)


@pytest.mark.parametrize("kind", KINDS)
def test_a_process_that_dies_at_a_step_loses_and_doubles_nothing(
    tmp_path: Path, steps: Steps, kind: str
) -> None:
    for point, times in alone(steps, kind):
        scene = Scene(tmp_path / f"{point}-{times}", kind)
        assert dies(scene, point, times), (point, times)
        finish(scene)
        assert wrong(scene) == [], (point, times)


@pytest.mark.parametrize("kind", KINDS)
def test_processes_that_die_while_they_recover_lose_and_double_nothing(
    tmp_path: Path, steps: Steps, kind: str, oracle: Oracle
) -> None:
    parts = 1 if LONG else 2
    waiting = list(steps[kind])[list(KINDS).index(kind) % parts :: parts]
    for number in range(len(waiting)):
        scene = Scene(tmp_path / str(number), kind)
        left = [point for point in waiting if not dies(scene, point)]
        assert len(left) < len(waiting), f"never reached: {left}"
        waiting = left
        finish(scene)
        assert wrong(scene) == []
        assert wrong_for_java(scene, oracle) == []
        if not waiting:
            break
