"""Columns of every type and schema changes of every kind: 8 tables, 1,000 with INGESTD_LONG=1.

INGESTD_TABLES=FIRST:COUNT takes other seeds.
"""

import os
from pathlib import Path

import pytest

from tests.property.evolved_life import STEPS, EvolvedLife
from tests.support.oracle import Oracle

LONG = bool(os.environ.get("INGESTD_LONG"))
FIRST, COUNT = map(int, os.environ.get("INGESTD_TABLES", f"6000:{1000 if LONG else 8}").split(":"))


@pytest.mark.compat
@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
def test_both_javas_read_the_same_rows_after_each_change(
    seed: int, tmp_path: Path, oracle: Oracle, oracle_2: Oracle
) -> None:
    life = EvolvedLife(seed, tmp_path, (oracle, oracle_2))
    for _ in range(STEPS):
        life.step()
    life.filter()
    life.check_files()
