"""Huge and deep messages cost a decoder neither all memory nor forever."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.seeds import FORMATS

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", FORMATS)
def test_huge_messages_are_judged_with_little_memory_and_time(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.bounded", name],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) >= 14
