"""How many dynamic buckets a partition begins with, and what happens at the most of them."""

import pytest

from ingestd.ingest.settings.context import TableSettings
from ingestd.paimon.table.metadata.file_store_scan import live_files
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.ingest_rig import Rig
from tests.support.json_changes import INSERT, Change, record

pytestmark = pytest.mark.usefixtures("json_changes")

TARGET = "lake.orders"


def written(batches: int = 1, **options: str) -> Rig:
    """Batches of 100 new keys into a table with these options of dynamic buckets."""
    given = {f"dynamic-bucket.{name.replace('_', '-')}": value for name, value in options.items()}
    settings = TableSettings(primary_keys=("id",), options=given)
    rig = Rig(settings={"orders": settings}, slots=4)
    for batch in range(batches):
        keys = range(100 * batch, 100 * batch + 100)
        rig.produce(*(record(Change({"id": n}, INSERT)) for n in keys))
        rig.run()
    return rig


def buckets(rig: Rig) -> set[int]:
    table = rig.tables[TARGET]
    assert verify(table) == []
    return {entry.bucket for entry in live_files(table, latest_snapshot(table.io, table.paths))}


def test_every_assigner_begins_a_bucket_unless_fewer_are_wanted() -> None:
    assert buckets(written()) == {0, 1, 2, 3}
    assert buckets(written(initial_buckets="1")) == {0}
    assert buckets(written(initial_buckets="9", assigner_parallelism="2")) == {0, 1}


def test_full_buckets_overflow_into_new_ones() -> None:
    assert buckets(written(2, initial_buckets="1", target_row_num="60")) == {0, 1, 2, 3}


def test_at_the_most_buckets_the_full_ones_take_more() -> None:
    options = {"initial_buckets": "1", "target_row_num": "10"}
    assert buckets(written(2, **options, max_buckets="3")) == {0, 1, 2}
    assert buckets(written(max_buckets="2")) == {0, 1}
