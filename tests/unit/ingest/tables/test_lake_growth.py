"""What the driver does for a batch follows what the batch touches, not what the lake holds."""

import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingestd.ingest.settings.context import Emptying, RoutingConfig, TableSettings
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.tables.lake import Lake
from ingestd.ingest.tables.progress import Step
from ingestd.kafka.ranges import OffsetRange
from ingestd.paimon.catalog.base import Identifier, load_catalog
from ingestd.paimon.io.local import LocalFileIO
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.schema import TableSchema, new_schema
from tests.support.native_tables import rows_table, write

DEAD = "db.ingestd_dead_letters"


@pytest.fixture
def schema() -> TableSchema:
    columns = [("p", DataType("INT")), ("k", DataType("INT"))]
    return new_schema(columns, ("p", "k"), ("p",), {"bucket": "-1"}, 1)


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
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
    catalog = load_catalog("filesystem", str(tmp_path))
    opened = Lake(settings, catalog, LocalFileIO(sync=False), lambda: 1_700_000_000_000)
    opened.open()
    yield opened


def _range(topic: str, until: int = 10) -> OffsetRange:
    return OffsetRange("s", topic, 0, until - 10, until)


def _fill(lake: Lake, name: str, topic: str, partitions: int = 1, until: int = 10) -> None:
    one = lake.tables[name]
    rows = [{"p": number, "k": until} for number in range(partitions)]
    arrived = rows_table(one.table.schema, rows, one.state.max_sequence_number + 1)
    step = Step("job", 1, "0", (_range(topic, until),), frozenset({("s", topic)}))
    lake.commit(name, write(one.table, one.state, arrived), step, overwrite=False)


def test_tasks_are_told_of_the_tables_of_their_topics_and_of_the_names_of_others(
    lake: Lake, schema: TableSchema
) -> None:
    for name in ("a", "b", "c"):
        lake.ensure(f"db.{name}", schema)
        _fill(lake, f"db.{name}", f"topic-{name}")
    context = lake.context(1, {}, [_range("topic-b", 20)])
    assert set(context.tables) == {DEAD, "db.b"}
    assert context.others == {"db.a", "db.c"}
    more = lake.context(1, {"db.c": Emptying(5)}, [_range("topic-b", 20)], {"db.a", "db.unknown"})
    assert set(more.tables) == {DEAD, "db.a", "db.b", "db.c"}
    assert set(lake.context(1, {}).tables) == {DEAD, "db.a", "db.b", "db.c"}


def test_a_topic_that_fed_a_table_is_known_after_a_restart(
    lake: Lake, schema: TableSchema, tmp_path: Path
) -> None:
    lake.ensure("db.a", schema)
    _fill(lake, "db.a", "topic")
    again = Lake(lake._settings, lake._catalog, lake._io, lambda: 1)
    again.open()
    assert set(again.fed_by("s", "topic")) == {"db.a"}
    assert set(again.fed_by("s", "other")) == set()


def test_what_goes_to_a_task_does_not_grow_with_partitions_and_tables(
    lake: Lake, schema: TableSchema
) -> None:
    lake.ensure("db.a", schema)
    _fill(lake, "db.a", "topic", partitions=3)
    few = len(pickle.dumps(lake.context(1, {}, [_range("topic", 20)])))
    _fill(lake, "db.a", "topic", partitions=1_200, until=20)
    for number in range(20):
        lake.ensure(f"db.other{number}", schema)
        _fill(lake, f"db.other{number}", f"topic-{number}")
    context = lake.context(1, {}, [_range("topic", 30)])
    sent = pickle.dumps(context)
    assert len(sent) < few + 20 * 20
    received = pickle.loads(sent).tables["db.a"]
    assert dict(received.index_entries) == dict(lake.tables["db.a"].state.index_entries)


def test_a_process_gets_the_very_handle_that_it_had(lake: Lake, schema: TableSchema) -> None:
    lake.ensure("db.a", schema)
    first, second = (pickle.loads(pickle.dumps(lake.context(1, {}))) for _ in range(2))
    assert first.tables["db.a"].table is second.tables["db.a"].table
    assert first.tables["db.a"].table.schema == schema


def test_a_batch_without_rows_moves_only_tables_of_its_topics(
    lake: Lake, schema: TableSchema
) -> None:
    for name in ("a", "b"):
        lake.ensure(f"db.{name}", schema)
        _fill(lake, f"db.{name}", f"topic-{name}")
    lake.finish({"s": {"topic-a": {0: 10}, "topic-b": {0: 10}}})
    untouched = lake.tables["db.b"]
    lake.finish({"s": {"topic-a": {0: 30}, "topic-b": {0: 10}}})
    assert lake.tables["db.a"].coverage == {"s": {"topic-a": {0: 30}}}
    assert lake.tables["db.b"] is untouched


def test_a_table_that_was_opened_late_is_counted_up_to_the_end_of_its_first_batch(
    lake: Lake, schema: TableSchema
) -> None:
    lake.ensure("db.a", schema)
    _fill(lake, "db.a", "topic")
    lake.finish({"s": {"topic": {0: 50}}})
    late = lake.tables.pop("db.a")
    lake._take("db.a", late.__class__(late.table, late.state, late.progress, {"s": {"topic": {}}}))
    lake.finish({"s": {"topic": {0: 50}}})
    assert lake.tables["db.a"].coverage == {"s": {"topic": {0: 50}}}


def test_a_table_that_exists_without_being_ours_is_adopted(lake: Lake, schema: TableSchema) -> None:
    lake._catalog.create_table(Identifier("db", "x"), schema, ignore_if_exists=True)
    assert lake.adopt("db.x") is not None
    assert "db.x" in lake.context(1, {}, [], {"db.x"}).tables


def test_tables_that_are_made_together_are_as_if_made_one_by_one(
    lake: Lake, schema: TableSchema
) -> None:
    lake.ensure("db.a", schema)
    before = lake.tables["db.a"]
    lake.ensure_all({f"db.{name}": schema for name in "abcdefghijkl"})
    assert lake.tables["db.a"] is before
    assert {f"db.{name}" for name in "abcdefghijkl"} < set(lake.tables)
    assert all(
        one.table.schema.fields == schema.fields
        for name, one in lake.tables.items()
        if name != DEAD
    )
