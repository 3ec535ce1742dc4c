"""Truncates among several topic partitions, by real batches: the table ends as its source."""

import random
from pathlib import Path

import pytest

from ingestd.errors import PolicyStopError
from tests.support.truncated_source import PARTITIONS, TABLE, Pipeline, TruncatedSource


def behind(source: TruncatedSource) -> None:
    """Rows from before and behind a truncate that waits in the first partition."""
    for key in (1, 2, 3):
        source.put(key)
    source.truncate(0)
    source.put(4)
    source.put(5)


def test_a_truncate_that_lags_takes_only_what_was_there_before_it(tmp_path: Path) -> None:
    source = TruncatedSource()
    pipeline = Pipeline(tmp_path, source)
    behind(source)
    pipeline.run(1, 1, 0)
    pipeline.run(1, 2, 2)
    assert sorted(pipeline.rows()) == [1, 2, 3, 4, 5]
    pipeline.run(2, 2, 2)
    assert pipeline.rows() == source.rows
    # What came before the last snapshot that was older than the truncate is not read again.
    assert [(one.partition, one.start, one.until) for one in pipeline.fetched] == [
        (0, 1, 2),
        (1, 1, 2),
        (2, 0, 2),
    ]
    assert pipeline.identified == pipeline.fetched, "whose topics have to be the same as before"


def test_a_truncate_is_refused_where_older_snapshots_are_gone(tmp_path: Path) -> None:
    source = TruncatedSource()
    pipeline = Pipeline(tmp_path, source)
    behind(source)
    pipeline.run(1, 1, 0)
    pipeline.run(1, 2, 2)
    table = pipeline.lake.tables[TABLE].table
    table.io.delete_quietly(table.paths.snapshot(1))
    with pytest.raises(PolicyStopError, match="no snapshot left"):
        pipeline.run(2, 2, 2)


def test_rows_of_a_partition_that_had_told_nothing_yet_are_older_than_a_truncate(
    tmp_path: Path,
) -> None:
    source = TruncatedSource()
    pipeline = Pipeline(tmp_path, source)
    source.put(0)
    source.put(1)
    source.truncate(0)
    source.put(3)
    pipeline.run(3, 0, 0)
    pipeline.run(3, 1, 0)
    assert pipeline.rows() == source.rows


@pytest.mark.parametrize("seed", range(6))
def test_the_table_ends_as_its_source_however_partitions_lag(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    source = TruncatedSource()
    pipeline = Pipeline(tmp_path, source)
    source.put(0)
    for _ in range(8):
        for _ in range(chance.randrange(1, 12)):
            source.act(chance)
        until = [
            chance.randint(pipeline.reached[one], len(source.logs[one]))
            for one in range(PARTITIONS)
        ]
        pipeline.run(*until)
    pipeline.run(*map(len, source.logs))
    assert pipeline.rows() == source.rows
