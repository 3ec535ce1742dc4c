"""Where to read a table again from, by what its older snapshots cover."""

import pytest

from ingestd.errors import FormatError
from ingestd.ingest.tables.log_positions import Position
from ingestd.ingest.tables.managed_table import ManagedTable, covered_before
from ingestd.ingest.tables.progress import (
    PipelineProgress,
    TableProgress,
    encode_pipeline,
    encode_properties,
)
from ingestd.ingest.values.source_points import SourcePoint
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.table.commit.table_commit import commit
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.schema_manager import publish_schema
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.write.commit_message import ManifestCommittable

STEPS = ((10, {0: 3}), (30, {0: 5, 1: 2}), (60, {0: 9, 1: 4}))


@pytest.fixture
def table() -> FileStoreTable:
    schema = new_schema([("k", DataType("INT"))], (), (), {"bucket": "-1"}, 1)
    made = FileStoreTable("/w/t", schema, MemoryFileIO(), "db.t")
    assert publish_schema(made.io, made.paths, schema)
    return made


def put(table: FileStoreTable, number: int, properties: dict[str, str], user: str = "us") -> None:
    done = ManifestCommittable(number, (), properties=properties, overwrite=True)
    commit(table, user, done, state=load_state(table), now_ms=1)


def fill(table: FileStoreTable, pipeline: str = "us") -> None:
    """Three batches, and a compaction after the second."""
    for number, (position, until) in enumerate(STEPS, 1):
        end = {"id": {one: Position(offset) for one, offset in until.items()}}
        shared = PipelineProgress(end=end)
        progress = TableProgress(shared, reached=SourcePoint(position))
        put(table, number, encode_properties(pipeline, progress, encode_pipeline(shared)))
        if number == 2:
            put(table, 1, {}, "compactor")


def before(table: FileStoreTable, position: int) -> dict[int, int] | None:
    covered = covered_before(ManagedTable(table, load_state(table)), "us", SourcePoint(position))
    if covered is None:
        return None
    return {one: at.offset for one, at in covered.get("id", {}).items()}


@pytest.mark.parametrize(
    ("position", "covered"),
    [
        (60, {0: 9, 1: 4}),
        (59, {0: 5, 1: 2}),
        (30, {0: 5, 1: 2}),
        (29, {0: 3}),
        (10, {0: 3}),
        (9, {}),
    ],
)
def test_the_newest_snapshot_without_rows_from_after_the_position_decides(
    table: FileStoreTable, position: int, covered: dict[int, int]
) -> None:
    fill(table)
    assert before(table, position) == covered


def test_where_that_snapshot_has_expired_the_answer_is_unknown(table: FileStoreTable) -> None:
    fill(table)
    table.io.delete_quietly(table.paths.snapshot(1))
    assert before(table, 9) is None
    assert before(table, 30) == {0: 5, 1: 2}


def test_records_of_other_pipelines_do_not_count(table: FileStoreTable) -> None:
    fill(table, "them")
    assert before(table, 60) is None


def test_a_damaged_record_is_reported(table: FileStoreTable) -> None:
    put(table, 1, {"ingestd.progress.us": "1", "ingestd.table.us": "{}"})
    with pytest.raises(FormatError, match="damaged"):
        before(table, 5)
