"""Where to read a table's topics again, by what its snapshots say of them."""

import pytest

from ingestd.errors import FormatError
from ingestd.ingest.tables.older_snapshots import covered_before
from ingestd.ingest.tables.progress import Step, TableProgress, advance, encode_properties
from ingestd.kafka.ranges import OffsetRange
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.table.commit.table_commit import commit
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.schema_manager import publish_schema
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.write.commit_message import ManifestCommittable

TOPIC = ("s", "t")


def step(position: int, **until: int) -> Step:
    """A batch that brings offsets up to `until` by partition (p0, p1)."""
    ranges = tuple(OffsetRange("s", "t", int(p[1:]), 0, end) for p, end in until.items())
    return Step("job", 1, "0", ranges, frozenset({TOPIC}), position=position)


@pytest.fixture
def table() -> FileStoreTable:
    schema = new_schema([("k", DataType("INT"))], (), (), {"bucket": "-1"}, 1)
    made = FileStoreTable("/w/t", schema, MemoryFileIO(), "db.t")
    assert publish_schema(made.io, made.paths, schema)
    return made


def fill(table: FileStoreTable, *steps: Step, user: str = "us") -> None:
    progress: TableProgress | None = None
    for number, one in enumerate(steps, 1):
        progress = advance(progress, one)
        done = ManifestCommittable(
            number, (), properties=encode_properties(progress), overwrite=True
        )
        commit(table, user, done, state=load_state(table), now_ms=1)


STEPS = (step(10, p0=3), step(30, p0=5, p1=2), step(60, p0=9, p1=4))


@pytest.mark.parametrize(
    ("position", "starts"),
    [
        (60, {}),
        (59, {0: 5, 1: 2}),
        (30, {0: 5, 1: 2}),
        (29, {0: 3, 1: 0}),
        (10, {0: 3, 1: 0}),
        (9, {0: 0, 1: 0}),
    ],
)
def test_reading_starts_behind_the_newest_snapshot_that_is_not_behind_the_position(
    table: FileStoreTable, position: int, starts: dict[int, int]
) -> None:
    fill(table, *STEPS)
    newest = latest_snapshot(table.io, table.paths)
    found = covered_before(table, newest, "us", position)
    assert found == ({"s": {"t": starts}} if starts else {})


def test_where_that_snapshot_has_expired_nobody_can_tell(table: FileStoreTable) -> None:
    fill(table, *STEPS)
    newest = latest_snapshot(table.io, table.paths)
    table.io.delete_quietly(table.paths.snapshot(1))
    assert covered_before(table, newest, "us", 9) is None
    assert covered_before(table, newest, "us", 30) == {"s": {"t": {0: 5, 1: 2}}}


def test_snapshots_of_others_say_nothing(table: FileStoreTable) -> None:
    fill(table, *STEPS, user="them")
    newest = latest_snapshot(table.io, table.paths)
    assert covered_before(table, newest, "us", 5) == {}


def test_a_damaged_record_is_told(table: FileStoreTable) -> None:
    damaged = ManifestCommittable(1, (), properties={"ingestd.v": "1"}, overwrite=True)
    commit(table, "us", damaged, state=load_state(table), now_ms=1)
    with pytest.raises(FormatError, match="damaged"):
        covered_before(table, latest_snapshot(table.io, table.paths), "us", 5)
