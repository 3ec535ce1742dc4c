"""Huge and deep messages cost a decoder neither all memory nor forever."""

import subprocess
import sys
from pathlib import Path

from tests.fuzz.seeds import FORMATS

ROOT = Path(__file__).resolve().parents[2]


def test_huge_messages_are_judged_with_little_memory_and_time() -> None:
    """Of every format, in one process, which costs less than one for each."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.bounded", *FORMATS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (done.stdout, done.stderr[-2000:])
    judged = dict(line.split() for line in done.stdout.splitlines())
    assert judged.keys() == set(FORMATS)
    assert min(map(int, judged.values())) >= 14
