"""Batches of a running daemon beside other programs that write to its tables."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from ingestd.cdc.base import RecordChunk
from ingestd.errors import CommitConflictError
from ingestd.ingest.settings.context import TableSettings
from ingestd.kafka.offset_ranges import OffsetRange
from ingestd.kafka.properties import KafkaSource
from ingestd.paimon.table.cross_partition.index_cache import INDEX_CACHE
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot, read_snapshot
from ingestd.paimon.table.retention.expire_plan import expire_settings
from ingestd.paimon.table.retention.expire_snapshots import expire_snapshots
from ingestd.paimon.table.retention.rollback import plan_rollback, rollback
from tests.support.native_tables import NOW_MS, put
from tests.support.truncated_source import FAIL, TABLE, Pipeline, TruncatedSource

KINDS: Mapping[str, TableSettings] = {
    "fixed buckets": replace(FAIL, options={"bucket": "1"}),
    "dynamic buckets": FAIL,
    "changelog": replace(FAIL, options={"bucket": "1", "changelog-producer": "input"}),
    "moving keys": replace(
        FAIL, partition_keys=("v",), primary_keys=("id",), options={"bucket": "-1"}
    ),
}


def run(pipeline: Pipeline) -> None:
    """One batch up to the ends of the logs."""
    pipeline.run(*map(len, pipeline.source.logs))


def others_write(pipeline: Pipeline, values: range) -> None:
    """Another program updates the row of key 1, a commit for each value."""
    table = pipeline.table_registry.tables[TABLE].table
    if table.schema.partition_keys:  # rows of key 2: another partition of key 1 is no update
        for value in values:
            put(table, [{"id": 2, "v": value}], user="another program")
        return
    for value in values:
        put(table, [{"id": 1, "v": value}], user="another program")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("expires", [False, True])
def test_a_row_that_comes_after_the_commits_of_others_is_newer(
    tmp_path: Path, kind: str, expires: bool
) -> None:
    source = TruncatedSource()
    source.put(1)
    pipeline = Pipeline(tmp_path, source, KINDS[kind])
    run(pipeline)
    others_write(pipeline, range(100, 105))
    table = pipeline.table_registry.tables[TABLE].table
    if expires:
        two = {"snapshot.num-retained.min": "2", "snapshot.num-retained.max": "2"}
        assert expire_snapshots(table, expire_settings(two), NOW_MS).ids == (1, 2, 3, 4)
    source.put(1)
    run(pipeline)
    assert pipeline.rows()[1] == source.rows[1] == 2


def test_a_batch_after_a_rollback_by_others_is_planned_again(tmp_path: Path) -> None:
    source = TruncatedSource()
    pipeline = Pipeline(tmp_path, source, KINDS["fixed buckets"])
    for key in (1, 4):
        source.put(key)
        run(pipeline)
    table = pipeline.table_registry.tables[TABLE].table
    rollback(table, plan_rollback(table, read_snapshot(table.io, table.paths, 1)))
    others_write(pipeline, range(100, 103))
    newest = latest_snapshot(table.io, table.paths)
    source.put(1)
    with pytest.raises(CommitConflictError, match="was rolled back below snapshot 2"):
        run(pipeline)
    assert latest_snapshot(table.io, table.paths) == newest
    pipeline.open()
    run(pipeline)
    assert pipeline.rows() == source.rows


@pytest.mark.parametrize("expires", [False, True])
def test_a_batch_is_planned_again_if_its_snapshot_goes_while_it_reads(
    tmp_path: Path, expires: bool
) -> None:
    """The tasks look for the partitions of keys in a snapshot that has expired or gone back."""
    source = TruncatedSource()
    pipeline = Pipeline(tmp_path, source, KINDS["moving keys"])
    for key in (1, 4):
        source.put(key)
        run(pipeline)
    pipeline.open()
    table = pipeline.table_registry.tables[TABLE].table
    INDEX_CACHE.limit(0)
    fetch = pipeline._fetch

    def meanwhile(source: KafkaSource, wanted: OffsetRange) -> Iterator[RecordChunk]:
        if expires:
            others_write(pipeline, range(100, 103))
            one = {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "1"}
            expire_snapshots(table, expire_settings(one), NOW_MS)
        else:
            rollback(table, plan_rollback(table, read_snapshot(table.io, table.paths, 1)))
        return fetch(source, wanted)

    source.put(1)
    pipeline._fetch = meanwhile  # type: ignore[method-assign]
    with pytest.raises(CommitConflictError, match=r"planned again|was rolled back"):
        run(pipeline)
    pipeline._fetch = fetch  # type: ignore[method-assign]
    pipeline.open()
    run(pipeline)
    others = {2: 102} if expires else {}
    assert pipeline.rows() == {**source.rows, **others}
