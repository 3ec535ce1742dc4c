"""Random lives with changed settings and rollbacks: each record has its row, or a dead letter."""

import os
import random
from pathlib import Path

import pytest

from ingestd.ingest.settings.context import TableSettings
from tests.support.truncated_source import PARTITIONS, Pipeline, TruncatedSource

SEEDS = 1000 if os.environ.get("INGESTD_LONG") else 8
_KEYS_OF_PARTITIONS = 1_000


@pytest.mark.parametrize("seed", range(SEEDS))
def test_each_record_has_its_row_or_one_dead_letter(tmp_path: Path, seed: int) -> None:
    """Some limits and settings reject records that were written, and take others that were not."""
    chance = random.Random(seed)
    source = TruncatedSource()
    pipeline = Pipeline(tmp_path, source, TableSettings())
    source.put(_KEYS_OF_PARTITIONS)
    pipeline.run(*map(len, source.logs))
    keys: dict[int, tuple[int, int]] = {}
    garbage: set[tuple[int, int]] = set()
    for key in range(60):
        partition = key % PARTITIONS
        at = (partition, len(source.logs[partition]))
        if chance.random() < 0.15:
            source.garbage(partition)
            garbage.add(at)
        else:
            source.put(key)
            keys[key] = at
        if key % 6 == 5:
            _go_on(pipeline, chance)
    pipeline.run(*map(len, source.logs))
    letters, rows = pipeline.letters(), pipeline.rows()
    assert len(set(letters)) == len(letters)
    assert garbage <= set(letters)
    assert {at for key, at in keys.items() if key not in rows} <= set(letters)


def _go_on(pipeline: Pipeline, chance: random.Random) -> None:
    """Change settings, start again, roll a table back; then read some records."""
    pipeline.table = TableSettings(ordering=chance.choice([None, None, "source-position"]))
    pipeline.max_record_bytes = chance.choice([1 << 20, 1 << 20, 30])
    dice = chance.random()
    if dice < 0.6:
        pipeline.roll_back(chance.choice(pipeline.snapshots()))
    else:
        pipeline.open()
    for _ in range(chance.randrange(1, 4)):
        ends = [
            chance.randint(reached, len(log))
            for reached, log in zip(pipeline.reached, pipeline.source.logs, strict=True)
        ]
        pipeline.run(*ends)
