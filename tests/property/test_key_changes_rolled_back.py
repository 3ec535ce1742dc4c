"""A table that is rolled back has the rows of its database again, with filters and kept deletes."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingestd.ingest.settings.context import TableSettings
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot, read_snapshot
from ingestd.paimon.table.retention.rollback import plan_rollback, rollback
from tests.property.test_key_changes import (
    OPTIONS,
    Database,
    Pipeline,
    actions,
    apply,
    found,
    new_pipeline,
    run,
    shape,
    wanted,
)
from tests.support.examples import examples


def roll_back(pipeline: Pipeline, number: int) -> None:
    """Roll the table back to one of its snapshots."""
    table = pipeline.table("orders")
    newest = latest_snapshot(table.io, table.paths)
    assert newest is not None
    snapshot = read_snapshot(table.io, table.paths, 1 + number % newest.id)
    rollback(table, plan_rollback(table, snapshot))


@pytest.mark.parametrize("options", ["fixed buckets", "lookup", "order of the source"])
@settings(max_examples=examples(5), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    life=actions(),
    partitions=st.integers(1, 3),
    batch_rows=st.integers(1, 12),
    backs=st.dictionaries(st.integers(0, 30), st.integers(0, 50), max_size=3),
    filters=st.booleans(),
    keeps=st.booleans(),
)
def test_the_table_equals_the_database_after_rollbacks(
    options: str,
    life: list[tuple[str, int, int]],
    partitions: int,
    batch_rows: int,
    backs: dict[int, int],
    filters: bool,
    keeps: bool,
) -> None:
    with TemporaryDirectory() as folder:
        pipeline = new_pipeline(Path(folder), OPTIONS[options], partitions)
        pipeline.batch_rows = batch_rows
        pipeline.table_settings = TableSettings(shape=shape(filters=filters, keeps=keeps))
        database = Database(pipeline.kafka, filters, keeps)
        database.put(0, "first")
        for number, action in enumerate(life):
            apply(database, action)
            if number in backs:
                run(pipeline)
                roll_back(pipeline, backs[number])
        run(pipeline)
        assert found(pipeline) == wanted(database)
        roll_back(pipeline, batch_rows)
        run(pipeline)
        assert found(pipeline) == wanted(database)
