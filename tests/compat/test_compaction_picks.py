"""Which runs are compacted next: our planner and Java's, asked about the same buckets."""

import os
from pathlib import Path

import pytest

from tests.support.oracle import Oracle
from tests.support.pick_cases import cases, own_pick

pytestmark = pytest.mark.compat

LONG = "INGESTD_LONG" in os.environ
COUNT = 100_000 if LONG else 1000
SEED = int.from_bytes(os.urandom(4)) if LONG else 7


def test_the_planner_picks_what_java_picks(oracle: Oracle, tmp_path: Path) -> None:
    given = list(cases(SEED, COUNT))
    picks = oracle.picks(given, tmp_path)
    wrong = [
        (case, own, java)
        for case, java in zip(given, picks, strict=True)
        if (own := own_pick(case)) != java
    ]
    assert wrong == [], f"seed {SEED}"
