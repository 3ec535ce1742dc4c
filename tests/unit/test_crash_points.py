"""Named steps cost nothing, are all in the code, and end a process once."""

import ast
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingestd.crash_points import VARIABLE, CrashPoint, from_environment, reach, watch
from tests.support.syntax_trees import syntax_tree

PACKAGE = Path(__file__).resolve().parents[2] / "ingestd"
PROGRAM = """
from ingestd.crash_points import CrashPoint, reach
for number in range(3):
    print(number, flush=True)
    reach(CrashPoint.BATCH_DONE)
    reach(CrashPoint.BATCH_PLANNED)
"""


@pytest.fixture
def told() -> Iterator[list[CrashPoint]]:
    found: list[CrashPoint] = []
    watch(found.append)
    yield found
    watch(None)


def test_every_step_is_somewhere_in_the_code_and_every_one_there_has_a_name() -> None:
    places: Counter[str] = Counter()
    for path in PACKAGE.rglob("*.py"):
        if "reach(" not in path.read_text():
            continue
        for node in ast.walk(syntax_tree(path)):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "reach":
                (argument,) = node.args
                names = [
                    node.attr for node in ast.walk(argument) if isinstance(node, ast.Attribute)
                ]
                points = [name for name in names if name in CrashPoint.__members__]
                assert points, f"{path.name}:{node.lineno} passes no named step"
                places.update(points)
    assert set(places) == set(CrashPoint.__members__)


def test_steps_are_reported_to_the_watcher(told: list[CrashPoint]) -> None:
    reach(CrashPoint.BATCH_PLANNED)
    reach(CrashPoint.BATCH_DONE)
    watch(None)
    reach(CrashPoint.BATCH_DONE)
    assert told == [CrashPoint.BATCH_PLANNED, CrashPoint.BATCH_DONE]


def test_the_environment_ends_one_process_at_the_wanted_time(tmp_path: Path) -> None:
    environment = {**os.environ, VARIABLE: f"batch.planned:2:{tmp_path / 'mark'}"}
    command = [sys.executable, "-c", PROGRAM]
    first, second = (
        subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        for _ in range(2)
    )
    assert (first.returncode, first.stdout.split()) == (-signal.SIGKILL, ["0", "1"])
    assert (second.returncode, second.stdout.split()) == (0, ["0", "1", "2"])


def test_without_the_variable_nobody_watches() -> None:
    assert from_environment({}) is None


@pytest.mark.parametrize("text", ["batch.planned", "no.step:1:x", "batch.planned:once:x"])
def test_a_variable_that_names_no_step_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        from_environment({VARIABLE: text})
