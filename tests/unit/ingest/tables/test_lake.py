"""What the driver knows of the tables, and that it comes back from the tables themselves."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from ingestd.errors import FencedError
from ingestd.ingest.letters.dead_letter import COLUMNS
from ingestd.ingest.settings.context import Emptying, RoutingConfig, TableSettings
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.tables.lake import Lake
from ingestd.ingest.tables.progress import Step
from ingestd.kafka.ranges import OffsetRange
from ingestd.paimon.catalog.base import Identifier, load_catalog
from ingestd.paimon.io.local import LocalFileIO
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.schema import TableSchema, new_schema
from ingestd.paimon.spec.snapshot import encode_snapshot, parse_snapshot
from tests.support.native_tables import rows_table, write

NAME = "db.t"
Opened = Callable[[], Lake]


@pytest.fixture
def schema() -> TableSchema:
    columns = [("k", DataType("INT")), ("v", DataType("STRING"))]
    return new_schema(columns, ("k",), (), {"bucket": "1"}, 1)


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    settings = PipelineSettings(
        name="job",
        warehouse=str(tmp_path),
        metastore="filesystem",
        database="db",
        checkpoint=str(tmp_path / "checkpoint"),
        sources={},
        routing=RoutingConfig(),
        defaults=TableSettings(),
        tables={},
        max_offsets_per_trigger={},
    )

    def open_lake() -> Lake:
        catalog = load_catalog("filesystem", str(tmp_path))
        lake = Lake(settings, catalog, LocalFileIO(sync=False), lambda: 1_700_000_000_000)
        lake.open()
        return lake

    return open_lake


def _step(start: int, until: int) -> Step:
    one = OffsetRange("s", "topic", 0, start, until)
    return Step("job", 1, "0", (one,), frozenset({("s", "topic")}))


def _rows(lake: Lake, *keys: int) -> pa.Table:
    one = lake.tables[NAME]
    rows = [{"k": key, "v": str(key)} for key in keys]
    return rows_table(one.table.schema, rows, one.state.max_sequence_number + 1)


def _commit(lake: Lake, step: Step, *keys: int) -> str:
    one = lake.tables[NAME]
    messages = write(one.table, one.state, _rows(lake, *keys))
    return lake.commit(NAME, messages, step, overwrite=False).status


def _covered(lake: Lake) -> int:
    return lake.tables[NAME].coverage["s"]["topic"][0]


def test_offsets_come_back_from_the_table_without_a_mirror(
    opened: Opened, schema: TableSchema, tmp_path: Path
) -> None:
    lake = opened()
    lake.ensure(NAME, schema)
    assert _commit(lake, _step(0, 10), 1, 2) == "committed"
    again = opened()
    assert _covered(again) == 10
    assert again.epoch == 2
    assert not (tmp_path / ".ingestd").exists()


def test_the_newest_batch_is_read_again_unless_the_mirror_says_that_it_was_finished(
    opened: Opened, schema: TableSchema
) -> None:
    """It may have died before it reached a table that it was the first to feed."""
    lake = opened()
    lake.ensure(NAME, schema)
    _commit(lake, _step(0, 10), 1)
    _commit(lake, _step(10, 20), 2)
    newest = OffsetRange("s", "topic", 0, 10, 20)
    again = opened()
    assert again.start_offsets() == {"s": {"topic": {0: 10}}}
    assert not again.has_finished(newest)
    again.finish({"s": {"topic": {0: 20}}})
    for one in (again, opened()):
        assert one.start_offsets() == {"s": {"topic": {0: 20}}}
        assert one.has_finished(newest)
        assert not one.has_finished(OffsetRange("s", "topic", 0, 20, 21))


def test_batches_without_rows_move_a_table_on_through_the_mirror(
    opened: Opened, schema: TableSchema
) -> None:
    lake = opened()
    lake.ensure(NAME, schema)
    _commit(lake, _step(0, 10), 1)
    lake.finish({"s": {"topic": {0: 25}, "other": {0: 7}}})
    again = opened()
    assert again.start_offsets() == {"s": {"topic": {0: 25}}}


def test_a_rolled_back_table_rolls_its_offsets_back(
    opened: Opened, schema: TableSchema, tmp_path: Path
) -> None:
    lake = opened()
    lake.ensure(NAME, schema)
    for number in range(3):
        _commit(lake, _step(10 * number, 10 * number + 10), number)
    lake.finish({"s": {"topic": {0: 30}}})
    snapshots = tmp_path / "db.db" / "t" / "snapshot"
    (snapshots / "snapshot-3").unlink()
    (snapshots / "LATEST").write_text("2")
    assert _covered(opened()) == 20


def test_an_expired_snapshot_is_remembered_by_the_mirror(
    opened: Opened, schema: TableSchema, tmp_path: Path
) -> None:
    lake = opened()
    lake.ensure(NAME, schema)
    _commit(lake, _step(0, 10), 1)
    lake.finish({"s": {"topic": {0: 10}}})
    snapshots = tmp_path / "db.db" / "t" / "snapshot"
    ours = parse_snapshot((snapshots / "snapshot-1").read_bytes(), "snapshot-1")
    foreign = replace(ours, id=2, commit_user="somebody", properties=None)
    (snapshots / "snapshot-2").write_bytes(encode_snapshot(foreign))
    (snapshots / "snapshot-1").unlink()
    (snapshots / "LATEST").write_text("2")
    again = opened()
    assert _covered(again) == 10
    assert _commit(again, _step(10, 20), 2) == "committed"
    snapshot = again.tables[NAME].state.snapshot
    assert snapshot is not None
    assert (snapshot.id, snapshot.commit_identifier) == (3, 2)


def test_a_second_process_of_the_pipeline_is_fenced(opened: Opened, schema: TableSchema) -> None:
    lake = opened()
    lake.ensure(NAME, schema)
    _commit(lake, _step(0, 10), 1)
    first, second = opened(), opened()
    assert _commit(first, _step(10, 20), 2) == "committed"
    with pytest.raises(FencedError, match=r"db\.t"):
        _commit(second, _step(10, 20), 2)


def test_a_truncate_gives_tasks_an_empty_table(opened: Opened, schema: TableSchema) -> None:
    lake = opened()
    lake.ensure(NAME, schema)
    _commit(lake, replace(_step(0, 10), position=5), 1)
    plain = lake.context(2, {}).tables[NAME]
    emptied = lake.context(2, {NAME: Emptying(99)}).tables[NAME]
    assert (plain.snapshot_id, plain.truncate_before, plain.position_reached) == (1, None, 5)
    assert (emptied.snapshot_id, emptied.truncate_before) == (None, 99)
    assert emptied.sequence_base == plain.sequence_base > 0


def test_a_table_of_dead_letters_that_an_older_version_made_gets_its_new_columns(
    opened: Opened, tmp_path: Path
) -> None:
    catalog = load_catalog("filesystem", str(tmp_path))
    catalog.create_database("db")
    old = new_schema(COLUMNS[:-1], (), (), {"bucket": "-1"}, 1)
    name = "db.ingestd_dead_letters"
    catalog.create_table(Identifier.parse(name), old)
    assert opened().tables[name].table.schema.field_names == tuple(one for one, _ in COLUMNS)
    assert opened().tables[name].table.schema.id == 1
