"""What the driver does for a batch follows what the batch touches, not what the lake holds."""

import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from ingestd.ingest.settings.context import TruncatePoint
from ingestd.ingest.tables.batch_span import BatchSpan, TableStep
from ingestd.ingest.tables.log_positions import Position
from ingestd.ingest.tables.table_registry import TableRegistry
from ingestd.ingest.values.source_points import SourcePoint
from ingestd.kafka.offset_ranges import OffsetRange
from ingestd.paimon.catalog.base import Identifier
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.spec.table_schema import TableSchema
from tests.support.native_tables import rows_table, write
from tests.support.registries import open_registry, pipeline_of

DEAD = "db.ingestd_dead_letters"


@pytest.fixture
def schema() -> TableSchema:
    columns = [("p", DataType("INT")), ("k", DataType("INT"))]
    return new_schema(columns, ("p", "k"), ("p",), {"bucket": "-1"}, 1)


@pytest.fixture
def registry(tmp_path: Path) -> TableRegistry:
    opened = open_registry(pipeline_of(tmp_path))
    topics = ("topic", "topic-a", "topic-b", "topic-c", *(f"topic-{n}" for n in range(20)))
    opened.keys = {("s", topic): topic for topic in topics}
    return opened


def _range(topic: str, until: int = 10) -> OffsetRange:
    return OffsetRange("s", topic, 0, until - 10, until)


def _fill(
    registry: TableRegistry, name: str, topic: str, partitions: int = 1, until: int = 10
) -> None:
    one = registry.tables[name]
    rows = [{"p": number, "k": until} for number in range(partitions)]
    arrived = rows_table(one.table.schema, rows, one.state.max_sequence_number + 1)
    messages = write(one.table, one.state, arrived)
    registry.mark([name])
    registry.commit(name, messages, _span(**{topic: until}), TableStep(frozenset({topic})))


def _span(**until: int) -> BatchSpan:
    """A batch of ten records of the only partition of topics, up to these offsets."""
    return BatchSpan(
        {topic: {0: end - 10} for topic, end in until.items()},
        {topic: {0: Position(end, 0)} for topic, end in until.items()},
    )


def test_tasks_get_the_tables_of_their_topics_and_of_the_names_of_others(
    registry: TableRegistry, schema: TableSchema
) -> None:
    for name in ("a", "b", "c"):
        registry.ensure(f"db.{name}", schema)
        _fill(registry, f"db.{name}", f"topic-{name}")
    context = registry.context(1, {}, [_range("topic-b", 20)])
    assert set(context.tables) == {DEAD, "db.b"}
    assert context.others == {"db.a", "db.c"}
    more = registry.context(
        1,
        {"db.c": TruncatePoint(SourcePoint(5), {})},
        [_range("topic-b", 20)],
        {"db.a", "db.unknown"},
    )
    assert set(more.tables) == {DEAD, "db.a", "db.b", "db.c"}
    assert set(registry.context(1, {}).tables) == {DEAD, "db.a", "db.b", "db.c"}


def test_tasks_get_a_table_that_lacks_earlier_batches_whatever_its_topics_are(
    registry: TableRegistry, schema: TableSchema
) -> None:
    """A table that was rolled back can lack its first record of a topic."""
    registry.ensure("db.a", schema)
    _fill(registry, "db.a", "topic-a")
    registry.finish(_span(**{"topic-a": 10, "topic-b": 10}))
    assert set(registry.context(1, {}, [_range("topic-b")]).tables) == {DEAD}
    registry.tables["db.a"] = replace(registry.tables["db.a"], covered={})
    assert set(registry.context(1, {}, [_range("topic-b")]).tables) == {DEAD, "db.a"}
    assert set(registry.context(1, {}, [_range("topic-c")]).tables) == {DEAD}


def test_a_topic_that_fed_a_table_is_known_after_a_restart(
    registry: TableRegistry, schema: TableSchema, tmp_path: Path
) -> None:
    registry.ensure("db.a", schema)
    _fill(registry, "db.a", "topic")
    again = open_registry(pipeline_of(tmp_path))
    again.keys = {("s", "topic"): "topic", ("s", "other"): "other"}
    assert again.source_topics("db.a") == {("s", "topic")}
    ours = again.context(1, {}, [_range("topic", 20)])
    assert set(ours.tables) == {DEAD, "db.a"}
    assert set(again.context(1, {}, [_range("other", 20)]).tables) == {DEAD}


def test_what_goes_to_a_task_does_not_grow_with_partitions_and_tables(
    registry: TableRegistry, schema: TableSchema
) -> None:
    registry.ensure("db.a", schema)
    _fill(registry, "db.a", "topic", partitions=3)
    few = len(pickle.dumps(registry.context(1, {}, [_range("topic", 20)])))
    _fill(registry, "db.a", "topic", partitions=1_200, until=20)
    for number in range(20):
        registry.ensure(f"db.other{number}", schema)
        _fill(registry, f"db.other{number}", f"topic-{number}")
    context = registry.context(1, {}, [_range("topic", 30)])
    sent = pickle.dumps(context)
    assert len(sent) < few + 20 * 20
    received = pickle.loads(sent).tables["db.a"]
    assert dict(received.index_entries) == dict(registry.tables["db.a"].state.index_entries)


def test_a_process_gets_the_very_handle_that_it_had(
    registry: TableRegistry, schema: TableSchema
) -> None:
    registry.ensure("db.a", schema)
    first, second = (pickle.loads(pickle.dumps(registry.context(1, {}))) for _ in range(2))
    assert first.tables["db.a"].table is second.tables["db.a"].table
    assert first.tables["db.a"].table.schema.fields == schema.fields


def test_a_batch_moves_all_tables_on_to_one_and_the_same_vector(
    registry: TableRegistry, schema: TableSchema
) -> None:
    for name in ("a", "b"):
        registry.ensure(f"db.{name}", schema)
    _fill(registry, "db.a", "topic-a")
    registry.finish(_span(**{"topic-a": 10, "topic-b": 10}))
    registry.finish(_span(**{"topic-a": 20}))
    covered = {id(table.covered) for table in registry.tables.values()}
    assert covered == {id(registry.progress.end)}
    assert registry.covered("db.b") == {"s": {"topic-a": {0: 20}, "topic-b": {0: 10}}}


def test_a_table_that_is_opened_late_covers_what_was_finished_before(
    registry: TableRegistry, schema: TableSchema
) -> None:
    registry.finish(_span(topic=10))
    registry.ensure("db.a", schema)
    assert registry.covered("db.a") == {"s": {"topic": {0: 10}}}


def test_a_table_that_exists_without_being_ours_is_adopted(
    registry: TableRegistry, schema: TableSchema
) -> None:
    registry._catalog.create_table(Identifier("db", "x"), schema, ignore_if_exists=True)
    assert registry.adopt("db.x") is not None
    assert "db.x" in registry.context(1, {}, [], {"db.x"}).tables


def test_tables_that_are_made_together_are_as_if_made_one_by_one(
    registry: TableRegistry, schema: TableSchema
) -> None:
    registry.ensure("db.a", schema)
    before = registry.tables["db.a"]
    registry.ensure_all({f"db.{name}": schema for name in "abcdefghijkl"})
    assert registry.tables["db.a"] is before
    assert {f"db.{name}" for name in "abcdefghijkl"} < set(registry.tables)
    assert all(
        one.table.schema.fields == schema.fields
        for name, one in registry.tables.items()
        if name != DEAD
    )
