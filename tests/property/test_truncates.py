"""Random lives of a source with truncates: the table ends as its source, whatever happens."""

import os
import random
from pathlib import Path

import pytest

from ingestd.crash_points import CrashPoint
from tests.support.truncated_source import PARTITIONS, Pipeline, TruncatedSource

SEEDS = 2000 if os.environ.get("INGESTD_LONG") else 12
_MAX_SKEW = 20_000
_STEPS = (
    CrashPoint.BATCH_COLLECTED,
    CrashPoint.DEAD_LETTERS_COMMITTED,
    CrashPoint.TABLES_COMMITTED,
    CrashPoint.CLAIMS_WRITTEN,
)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_table_ends_as_its_source_whatever_happens(tmp_path: Path, seed: int) -> None:
    """Partitions lag, positions begin again, records are sent again, clocks differ, tables go back.

    Daemons start again, too, also after a crash, and without the claims file.
    """
    chance = random.Random(seed)
    source = TruncatedSource()
    source.skews = [chance.randint(-_MAX_SKEW, _MAX_SKEW) for _ in range(PARTITIONS)]
    pipeline = Pipeline(tmp_path, source)
    source.put(0)
    for _ in range(12):
        for _ in range(chance.randrange(1, 12)):
            source.act(chance)
        snapshots, dice = pipeline.snapshots(), chance.random()
        if dice < 0.15 and snapshots:
            pipeline.roll_back(chance.choice(snapshots))
        elif dice < 0.25:
            pipeline.open()
        elif dice < 0.35:
            pipeline.lose_claims()
        until = [
            chance.randint(reached, len(log))
            for reached, log in zip(pipeline.reached, source.logs, strict=True)
        ]
        if chance.random() < 0.2:
            pipeline.run_and_die(chance.choice(_STEPS), *until)
        else:
            pipeline.run(*until)
    pipeline.run(*map(len, source.logs))
    assert pipeline.rows() == source.rows
