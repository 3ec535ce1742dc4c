"""A dry run of a batch: the same findings as the daemon's, and not one file."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ingestd.cdc import base
from ingestd.cdc.base import RecordChunk, SourceTable
from ingestd.ingest.dry_run.dry_run import DryRun, run_dry
from ingestd.ingest.settings.context import RoutingConfig, SourceSettings, TableSettings
from ingestd.ingest.tables.table_registry import TableRegistry
from ingestd.kafka.offset_ranges import OffsetRange
from ingestd.kafka.properties import KafkaSource
from ingestd.paimon.catalog.base import Catalog, Identifier, load_catalog
from ingestd.paimon.catalog.dry_run_catalog import DryRunCatalog
from ingestd.paimon.io.local import LocalFileIO
from ingestd.paimon.spec.data_types import DataType, RowKind
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.spec.table_schema import TableSchema
from tests.support.change_events import TABLE, event, key
from tests.support.registries import pipeline_of

Run = Callable[..., DryRun]
Record = tuple[bytes | None, bytes | None]
OTHER = SourceTable("crm", "public", "orders")
BIGINT = DataType("BIGINT")


def chunk(records: list[Record], topic: str = "orders", partition: int = 0) -> RecordChunk:
    count = len(records)
    numbers = np.arange(count, dtype=np.int64)
    keys, values = [record[0] for record in records], [record[1] for record in records]
    return RecordChunk(topic, partition, numbers, numbers + 1000, keys, values, None)


def schema(**columns: str) -> TableSchema:
    types = [(name, DataType(kind)) for name, kind in columns.items()]
    return new_schema(types, ("id",), (), {"bucket": "2"}, 1)


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decoders remember tables as long as their thread lives; these begin again."""
    monkeypatch.setattr(base, "_THREAD", threading.local())


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return load_catalog("filesystem", str(tmp_path))


@pytest.fixture
def run(tmp_path: Path, catalog: Catalog) -> Run:
    """Run chunks dry, and look that nothing was written."""

    def dry_run_of(*chunks: RecordChunk, **settings: Any) -> DryRun:
        sources = {"s": SourceSettings(KafkaSource("s", ()), "debezium-json")}
        pipeline = pipeline_of(tmp_path, database="ods", sources=sources, **settings)
        before = sorted(tmp_path.rglob("*"))
        registry = TableRegistry(
            pipeline, DryRunCatalog(catalog), LocalFileIO(sync=False), lambda: 1
        )
        registry.open()
        sample = {
            OffsetRange("s", chunk.topic, chunk.partition, 0, len(chunk.offsets)): [chunk]
            for chunk in chunks
        }
        found = run_dry(registry, sample, slots=2, now_ms=lambda: 1)
        assert sorted(tmp_path.rglob("*")) == before
        return found

    return dry_run_of


def test_a_new_table_has_the_columns_of_all_messages(run: Run) -> None:
    found = run(
        chunk([(key(id=1), event("c", {"id": 1, "a": "x"}))]),
        chunk([(key(id=2), event("u", {"id": 2, "b": True}))], partition=1),
    )
    assert found.passed
    assert found.before == {}
    made = found.after["ods.orders"]
    assert {field.name: str(field.type) for field in made.fields} == {
        "id": "BIGINT NOT NULL",
        "a": "STRING",
        "b": "BOOLEAN",
    }
    assert made.primary_keys == ("id",)
    assert found.rows["ods.orders", RowKind.INSERT] == 1
    assert found.rows["ods.orders", RowKind.UPDATE_AFTER] == 1


def test_a_table_that_exists_is_widened_in_thought_only(run: Run, catalog: Catalog) -> None:
    catalog.create_table(Identifier("ods", "orders"), schema(id="BIGINT", a="INT"))
    found = run(chunk([(key(id=1), event("c", {"id": 1, "a": 1 << 40, "b": "x"}))]))
    assert found.passed
    assert found.before["ods.orders"].field("a").type == DataType("INT")
    assert found.after["ods.orders"].field("a").type == BIGINT
    assert found.after["ods.orders"].field_names == ("id", "a", "b")
    assert catalog.get_table(Identifier("ods", "orders")).schema.id == 0


def test_a_topic_of_another_format_would_be_set_aside(run: Run) -> None:
    other = b'{"database": "d", "table": "orders", "type": "insert", "data": {"id": 1}}'
    found = run(chunk([(key(id=1), other)] * 100), chunk([(key(id=1), other)] * 99, topic="few"))
    assert not found.passed
    assert set(found.set_aside) == {("s", "orders")}
    assert "which look like maxwell-json" in found.set_aside["s", "orders"]


def test_records_that_cannot_be_used_are_reported_with_their_place(run: Run) -> None:
    good = (key(id=1), event("c", {"id": 1}))
    found = run(chunk([good, (key(id=2), b"{bad")], partition=3))
    assert found.passed
    assert [
        (rejected_record.partition, rejected_record.offset, rejected_record.reason)
        for rejected_record in found.rejected
    ] == [(3, 1, "invalid-json")]
    assert found.counts.rejected.total() == 1
    assert set(found.after) == {"ods.orders"}


def test_tables_that_would_meet_are_a_problem_of_their_target_only(run: Run) -> None:
    found = run(
        chunk([(key(id=1), event("c", {"id": 1}))]),
        chunk([(key(id=1), event("c", {"id": 1}, table=OTHER))], topic="crm"),
        chunk([(key(id=1), event("c", {"id": 1}, table=TABLE._replace(table="fine")))], "fine"),
    )
    assert not found.passed
    assert "merge-shards" in found.table_problems["ods.orders"]
    assert set(found.after) == {"ods.fine"}
    assert found.rows["ods.fine", RowKind.INSERT] == 1
    assert {str(order) for order in found.source_tables["ods.orders"]} == {
        "s:crm.public.orders",
        "s:shopdb.public.orders",
    }


def test_a_table_without_its_key_column_cannot_be_made(run: Run) -> None:
    settings = {"orders": TableSettings(primary_keys=("missing",))}
    found = run(chunk([(key(id=1), event("c", {"id": 1}))]), tables=settings)
    assert "'missing'" in found.table_problems["ods.orders"]
    assert found.after == {}


def test_a_table_that_cannot_be_written_is_refused_by_the_name_of_its_option(
    run: Run, catalog: Catalog
) -> None:
    own = new_schema([("id", BIGINT)], ("id",), (), {"merge-engine": "made-up"}, 1)
    catalog.create_table(Identifier("ods", "orders"), own)
    found = run(chunk([(key(id=1), event("c", {"id": 1}))]))
    assert "merge-engine" in found.table_problems["ods.orders"]


def test_excluded_tables_are_named(run: Run) -> None:
    ghost = TABLE._replace(table="_orders_gho")
    found = run(chunk([(key(id=1), event("c", {"id": 1}, table=ghost))] * 2))
    assert {str(source_table): rows for source_table, rows in found.excluded.items()} == {
        "s:shopdb.public._orders_gho": 2
    }
    assert found.passed
    assert found.after == {}


def test_a_topic_that_would_stop_the_pipeline_leaves_the_others_alone(run: Run) -> None:
    other = TABLE._replace(table="items")
    found = run(
        chunk([(key(id=1), event("c", {"id": 1}, table=other))], topic="others"),
        chunk([(key(id=1), event("c", {"id": 1}))]),
        routing=RoutingConfig(including_tables="orders", unmatched="fail"),
    )
    assert "no route" in found.topic_problems["s", "others"]
    assert set(found.after) == {"ods.orders"}


def test_a_truncate_is_followed(run: Run) -> None:
    found = run(
        chunk(
            [
                (key(id=1), event("c", {"id": 1}, lsn=10)),
                (None, event("t", lsn=20)),
                (key(id=2), event("c", {"id": 2}, lsn=30)),
            ]
        )
    )
    assert found.passed
    assert found.truncates.accepted["ods.orders"].until == {"s": {"orders": {0: 2}}}
    assert found.rows["ods.orders", RowKind.INSERT] == 1


def test_rows_that_the_table_holds_already_count_all_the_same(run: Run, catalog: Catalog) -> None:
    found = run(chunk([(key(id=1), event("c", {"id": 1}))]))
    catalog.create_table(Identifier("ods", "orders"), found.after["ods.orders"])
    again = run(chunk([(key(id=1), event("c", {"id": 1}))]))
    assert again.rows["ods.orders", RowKind.INSERT] == 1
    assert again.before["ods.orders"] == again.after["ods.orders"]


def test_a_schema_that_never_settles_is_a_problem(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ingestd.ingest.dry_run.dry_run._Run._evolve", lambda *_: True)
    found = run(chunk([(key(id=1), event("c", {"id": 1}))]))
    assert "still changes" in found.table_problems["ods.orders"]
