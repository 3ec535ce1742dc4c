"""What the driver knows of the tables, and that it comes back from the tables themselves."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ingestd.errors import (
    CommitConflictError,
    ConfigError,
    FencedError,
    ProgressLostError,
    UnsupportedError,
)
from ingestd.ingest.dead_letters.dead_letter import COLUMNS
from ingestd.ingest.settings.context import TruncatePoint
from ingestd.ingest.tables.batch_span import BatchSpan, TableStep
from ingestd.ingest.tables.log_positions import Position, TopicName
from ingestd.ingest.tables.table_registry import TableRegistry
from ingestd.ingest.values.source_points import SourcePoint
from ingestd.paimon.catalog.base import Identifier, load_catalog
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.spec.snapshot import encode_snapshot, parse_snapshot
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.paimon.table.compact.table_compact import compact_table
from ingestd.paimon.table.metadata.snapshot_manager import read_snapshot
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.retention.rollback import plan_rollback, rollback
from tests.support.native_tables import rows_table, write
from tests.support.registries import NOW_MS, open_registry, pipeline_of

NAME = "db.t"
Opened = Callable[..., TableRegistry]


@pytest.fixture
def schema() -> TableSchema:
    columns = [("k", DataType("INT")), ("v", DataType("STRING"))]
    return new_schema(columns, ("k",), (), {"bucket": "1"}, 1)


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    def open_lake(later_ms: int = 0) -> TableRegistry:
        return open_registry(pipeline_of(tmp_path), NOW_MS + later_ms)

    return open_lake


def _span(start: int, until: int) -> BatchSpan:
    return BatchSpan({"id": {0: start}}, {"id": {0: Position(until, 0)}})


def _rows(registry: TableRegistry, *keys: int) -> pa.Table:
    one = registry.tables[NAME]
    rows = [{"k": key, "v": str(key)} for key in keys]
    return rows_table(one.table.schema, rows, one.state.max_sequence_number + 1)


def _commit(registry: TableRegistry, start: int, until: int, *keys: int, position: int = -1) -> str:
    one = registry.tables[NAME]
    messages = write(one.table, one.state, _rows(registry, *keys))
    registry.mark([NAME])
    step = TableStep(frozenset({"id"}), reached=SourcePoint(position))
    return registry.commit(NAME, messages, _span(start, until), step).status


def _covered(registry: TableRegistry) -> int:
    return registry.tables[NAME].covered["id"][0].offset


def _floor(registry: TableRegistry) -> int:
    return registry.floor()["id"][0].offset


def test_positions_come_back_from_the_table_without_a_claims_file(
    opened: Opened, schema: TableSchema, tmp_path: Path
) -> None:
    registry = opened()
    registry.ensure(NAME, schema)
    assert _commit(registry, 0, 10, 1, 2) == "committed"
    assert _covered(opened()) == 10
    assert not (tmp_path / ".ingestd").exists()


def test_the_newest_batch_is_read_again_unless_the_claims_say_that_it_was_finished(
    opened: Opened, schema: TableSchema
) -> None:
    """It may have died before it reached a table that it was the first to feed."""
    registry = opened()
    registry.ensure(NAME, schema)
    registry.record(registry.dead_letters, {"id": {0: Position(10, 0)}})
    _commit(registry, 0, 10, 1)
    _commit(registry, 10, 20, 2)
    again = opened()
    assert (_covered(again), _floor(again)) == (20, 10)
    again.finish(_span(10, 20))
    assert _floor(again) == _floor(opened()) == 20


def test_batches_without_rows_move_a_table_on_through_the_claims(
    opened: Opened, schema: TableSchema, tmp_path: Path
) -> None:
    registry = opened()
    registry.ensure(NAME, schema)
    registry.record(registry.dead_letters, {"id": {0: Position(0, 0)}})
    _commit(registry, 0, 10, 1)
    registry.finish(_span(0, 25))
    again = opened()
    assert (_covered(again), _floor(again)) == (25, 25)
    (tmp_path / ".ingestd" / "job" / "progress.json").unlink()
    again = opened()
    assert (_covered(again), _floor(again)) == (10, 0)


def test_a_rolled_back_table_rolls_its_offsets_back(
    opened: Opened, schema: TableSchema, tmp_path: Path
) -> None:
    registry = opened()
    registry.ensure(NAME, schema)
    for number in range(3):
        _commit(registry, 10 * number, 10 * number + 10, number)
    registry.finish(_span(20, 30))
    snapshots = tmp_path / "db.db" / "t" / "snapshot"
    (snapshots / "snapshot-3").unlink()
    (snapshots / "LATEST").write_text("2")
    assert _covered(opened()) == 20


def _expire_ours(tmp_path: Path) -> None:
    """Put a snapshot of another program on top of the first, and take the first away."""
    snapshots = tmp_path / "db.db" / "t" / "snapshot"
    ours = parse_snapshot((snapshots / "snapshot-1").read_bytes(), "snapshot-1")
    foreign = replace(ours, id=2, commit_user="other", properties={})
    (snapshots / "snapshot-2").write_bytes(encode_snapshot(foreign))
    (snapshots / "snapshot-1").unlink()
    (snapshots / "LATEST").write_text("2")


def test_an_absent_record_is_never_taken_for_an_expired_one(
    opened: Opened, schema: TableSchema, tmp_path: Path
) -> None:
    registry = opened()
    registry.ensure(NAME, schema)
    _commit(registry, 0, 10, 1)
    registry.finish(_span(0, 10))
    _expire_ours(tmp_path)
    with pytest.raises(ProgressLostError, match=r"db\.t: none of its snapshots .*ingestd begin"):
        opened()


def test_a_commit_on_a_table_whose_record_is_another_one_is_refused(
    opened: Opened, schema: TableSchema
) -> None:
    registry = opened()
    registry.ensure(NAME, schema)
    _commit(registry, 0, 10, 1)
    opened().record(NAME, {"id": {0: Position(5, 0)}})
    with pytest.raises((CommitConflictError, FencedError), match=r"db\.t"):
        _commit(registry, 10, 20, 2)


def test_a_compaction_by_anybody_of_ours_keeps_the_record_and_what_is_claimed_of_it(
    opened: Opened, schema: TableSchema
) -> None:
    registry = opened()
    registry.ensure(NAME, schema)
    _commit(registry, 0, 10, 1)
    _commit(registry, 10, 20, 2)
    registry.finish(_span(10, 30))
    table = registry.tables[NAME].table
    before = load_state(table)
    assert before.snapshot is not None
    compact_table(table, full=True, now_ms=1)
    assert load_state(table).snapshot != before.snapshot
    again = opened()
    assert (_covered(again), again.tables[NAME].overwritten_by) == (30, None)
    assert _commit(again, 30, 40, 3) == "committed"


def test_a_commit_is_followed_by_iceberg_metadata_and_does_not_fail_with_it(
    opened: Opened, schema: TableSchema, tmp_path: Path
) -> None:
    options = {**schema.options, "metadata.iceberg.storage": "table-location"}
    registry = opened()
    registry.ensure(NAME, replace(schema, options=options))
    metadata = tmp_path / "db.db" / "t" / "metadata"
    metadata.write_text("a file in the way")
    assert _commit(registry, 0, 5, 1, 2) == "committed"
    registry.iceberg.close()
    assert registry.iceberg.take_failures() == [NAME]
    metadata.unlink()
    again = opened()
    assert _commit(again, 5, 9, 3) == "committed"
    again.iceberg.close()
    assert again.iceberg.take_failures() == []
    assert (metadata / "version-hint.text").read_text() == "2"


def test_names_of_topics_are_noted_for_later_records(opened: Opened, schema: TableSchema) -> None:
    registry = opened()
    topics = {"id of t": TopicName("t", "src")}
    registry.note(replace(registry.progress, topics=topics))
    registry.ensure(NAME, schema)
    _commit(registry, 0, 10, 1)
    assert opened().progress.topics == topics


def test_a_second_process_of_the_pipeline_is_fenced(opened: Opened, schema: TableSchema) -> None:
    registry = opened()
    registry.ensure(NAME, schema)
    _commit(registry, 0, 10, 1)
    first, second = opened(), opened()
    assert _commit(first, 10, 20, 2) == "committed"
    with pytest.raises(FencedError, match=r"db\.t"):
        _commit(second, 10, 20, 2)


def test_a_truncate_gives_tasks_an_empty_table(opened: Opened, schema: TableSchema) -> None:
    registry = opened()
    registry.ensure(NAME, schema)
    _commit(registry, 0, 10, 1, position=5)
    plain = registry.context(2, {}).tables[NAME]
    emptied = registry.context(2, {NAME: TruncatePoint(SourcePoint(99), {})}).tables[NAME]
    assert (plain.snapshot_id, plain.truncate_before) == (1, None)
    assert plain.reached == SourcePoint(5)
    assert (emptied.snapshot_id, emptied.truncate_before) == (None, SourcePoint(99))
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


@pytest.mark.parametrize(
    ("columns", "keys", "problem"),
    [([("k", DataType("INT"))], [], "column 'k'"), (COLUMNS, ["topic"], "a primary key")],
)
def test_a_table_of_rows_does_not_become_the_dead_letter_table(
    opened: Opened, tmp_path: Path, columns: Any, keys: list[str], problem: str
) -> None:
    catalog = load_catalog("filesystem", str(tmp_path))
    catalog.create_database("db")
    name = Identifier.parse("db.ingestd_dead_letters")
    catalog.create_table(name, new_schema(columns, keys, (), {"bucket": "-1"}, 1))
    with pytest.raises(ConfigError, match=f"ingestd_dead_letters exists with {problem}"):
        opened()
    assert catalog.get_table(name).schema.id == 0


def test_tables_that_cannot_be_written_are_refused_and_ignored_options_are_named_once(
    opened: Opened, schema: TableSchema, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    catalog = load_catalog("filesystem", str(tmp_path))
    for name, option in (("a", "data-evolution.enabled"), ("b", "snapshot.time-retaind")):
        options = {**schema.options, option: "true", "sink.parallelism": "2"}
        catalog.create_table(Identifier("db", name), replace(schema, options=options))
    registry = opened()
    with pytest.raises(UnsupportedError, match=r"option 'data-evolution\.enabled' = 'true'"):
        registry.adopt("db.a")
    caplog.clear()
    registry.adopt("db.b")
    opened().adopt("db.b")
    (warning,) = (record for record in caplog.records if record.message == "table_options_ignored")
    assert warning.__dict__["ctx"] == {
        "table": "db.b",
        "options": {
            "snapshot.time-retaind": "unknown; did you mean 'snapshot.time-retained'?",
            "sink.parallelism": "jobs of Flink and Spark that write",
        },
    }


@pytest.mark.parametrize(("hours", "renewed"), [(5.99, []), (6, [NAME])])
def test_a_record_is_committed_again_after_six_hours(
    opened: Opened, schema: TableSchema, hours: float, renewed: list[str]
) -> None:
    registry = opened()
    registry.ensure(NAME, schema)
    _commit(registry, 0, 10, 1)
    assert opened(int(hours * 3_600_000)).refresh_records() == renewed


def test_a_rollback_of_an_idle_table_by_another_program_is_noticed(
    opened: Opened, schema: TableSchema
) -> None:
    registry = opened()
    registry.ensure(NAME, schema)
    _commit(registry, 0, 10, 1)
    _commit(registry, 10, 20, 2)
    table = registry.tables[NAME].table
    rollback(table, plan_rollback(table, read_snapshot(table.io, table.paths, 1)))
    with pytest.raises(CommitConflictError, match="rolled back"):
        registry.refresh_records()
