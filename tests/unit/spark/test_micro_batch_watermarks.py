"""The watermarks that batches give to snapshots, over starts and repeated reads."""

from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest

from ingestd.errors import ConfigError
from ingestd.ingest.settings.context import TableSettings
from ingestd.ingest.settings.shape_settings import ShapeSettings
from ingestd.ingest.settings.watermark_rules import WatermarkRules
from ingestd.paimon.table.compact.table_compact import compact_table
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot, read_snapshot
from tests.support.truth_rig import Log, Topic, Truth

RECORD = TableSettings(
    shape=ShapeSettings(metadata=("timestamp",)), watermark=WatermarkRules("column", "timestamp")
)
"""Column with the time of a record, which is its offset and 1000."""
SOURCE = TableSettings(watermark=WatermarkRules("source", delay_ms=5))


def pipeline(folder: Path, settings: TableSettings) -> Truth:
    truth = Truth(folder, tables={"orders": settings})
    truth.kafka.topics["shop.orders"] = Topic("id", [Log(), Log()])
    return truth


def watermarks(truth: Truth) -> list[int | None]:
    table = truth.table("orders")
    newest = latest_snapshot(table.io, table.paths)
    ids = range(1, newest.id + 1) if newest else ()
    return [read_snapshot(table.io, table.paths, number).watermark for number in ids]


@pytest.mark.parametrize(("settings", "delay"), [(RECORD, 0), (SOURCE, 5)])
def test_the_slower_partition_gives_the_watermark(
    settings: TableSettings, delay: int, tmp_path: Path
) -> None:
    truth = pipeline(tmp_path, settings)
    truth.kafka.produce("shop.orders", *range(8))
    truth.kafka.produce("shop.orders", *range(3), partition=1)
    truth.live()
    assert watermarks(truth)[-1] == 1002 - delay - 1


def test_a_start_lowers_no_watermark(tmp_path: Path) -> None:
    truth = pipeline(tmp_path, RECORD)
    for partition in (0, 1):
        truth.kafka.produce("shop.orders", *range(5), partition=partition)
    truth.live()
    assert watermarks(truth)[-1] == 1003
    # After a start nothing is known of the other partition.
    truth.kafka.produce("shop.orders", *range(5))
    truth.live()
    assert watermarks(truth)[-1] == 1003
    table = truth.table("orders")
    compact_table(table, now_ms=truth.now_ms(), full=True)
    truth.kafka.produce("shop.orders", *range(5))
    truth.kafka.produce("shop.orders", *range(2), partition=1)
    truth.live()
    given = [watermark for watermark in watermarks(truth) if watermark is not None]
    assert given == sorted(given)
    assert given[-1] == 1005


def test_records_that_are_read_again_give_the_same_watermark(tmp_path: Path) -> None:
    """The process ends between the commit of the table and the end of the batch."""
    truth = replace(pipeline(tmp_path, RECORD), batch_rows=8)
    for partition in (0, 1):
        truth.kafka.produce("shop.orders", *range(4), partition=partition)
    with (
        mock.patch("ingestd.spark.micro_batch.TableRegistry.finish", side_effect=KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt),
    ):
        truth.live()
    assert watermarks(truth) == [1002]
    truth.kafka.produce("shop.orders", 4)
    truth.live()
    assert watermarks(truth) == [1002, 1002]
    assert truth.ids("orders") == [0, 0, 1, 1, 2, 2, 3, 3, 4]


def test_without_the_setting_snapshots_have_no_watermark(tmp_path: Path) -> None:
    truth = pipeline(tmp_path, TableSettings())
    truth.kafka.produce("shop.orders", 1)
    truth.live()
    assert watermarks(truth) == [None]


def test_a_column_without_times_ends_the_pipeline(tmp_path: Path) -> None:
    truth = pipeline(tmp_path, TableSettings(watermark=WatermarkRules("column", "id")))
    truth.kafka.produce("shop.orders", 1)
    with pytest.raises(ConfigError, match=r"'id' of watermark\.column has type int64"):
        truth.live()
