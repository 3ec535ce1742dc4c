"""Which rejected records have a dead letter already."""

from collections.abc import Callable

import pytest

from ingestd.cdc.base import RejectedRecord
from ingestd.ingest.dead_letters import stored_records
from ingestd.ingest.dead_letters.dead_letter import (
    COLUMNS,
    DeadLetter,
    dead_letter_rows,
    dead_letter_schema,
)
from ingestd.ingest.dead_letters.stored_records import without_stored
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.binary_row import EMPTY_ROW
from ingestd.paimon.table.commit.table_commit import commit
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.schema_manager import publish_schema
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.write.commit_message import ManifestCommittable
from ingestd.paimon.table.write.table_write import data_file_names, write_bucket

Letters = list[DeadLetter]


def letter(offset: int, time: int = 1_000, topic: str = "t", partition: int = 3) -> DeadLetter:
    return DeadLetter(RejectedRecord(topic, partition, offset, time, "decode", "r", "m", None, b""))


def offsets(dead_letters: Letters) -> list[int]:
    return [one.rejected.offset for one in dead_letters]


@pytest.fixture
def table() -> FileStoreTable:
    schema = dead_letter_schema(1)
    made = FileStoreTable("/w/letters", schema, MemoryFileIO(), "db.letters")
    assert publish_schema(made.io, made.paths, schema)
    return made


@pytest.fixture
def store(table: FileStoreTable) -> Callable[..., None]:
    def stored(*dead_letters: DeadLetter, source: str = "src", job: str = "job") -> None:
        rows = dead_letter_rows(job, source, dead_letters).select([name for name, _ in COLUMNS])
        message = write_bucket(table, EMPTY_ROW, 0, rows, new_name=data_file_names(table))
        state = load_state(table)
        identifier = state.committed.get("us", 0) + 1
        commit(table, "us", ManifestCommittable(identifier, (message,)), state=state, now_ms=1)

    return stored


def test_only_records_with_a_dead_letter_are_left_out(
    table: FileStoreTable, store: Callable[..., None]
) -> None:
    store(letter(4), letter(6))
    store(letter(8, time=-1))
    old = [letter(offset) for offset in (3, 4, 5, 6)]
    assert offsets(without_stored(table, ("job",), ("other",), [*old, letter(8, time=-1)], 20)) == [
        3,
        5,
    ]


def test_dead_letters_of_other_records_do_not_count(
    table: FileStoreTable, store: Callable[..., None]
) -> None:
    store(letter(4), source="other")
    store(letter(4), job="another pipeline")
    store(letter(4, topic="u"), letter(4, partition=2))
    store(letter(4, time=2_000))  # the same offset, of the topic before it was created again
    assert offsets(without_stored(table, ("job",), ("other",), [letter(4)], 20)) == [4]


def test_dead_letters_of_a_former_name_of_the_source_count(
    table: FileStoreTable, store: Callable[..., None]
) -> None:
    store(letter(4), source="before")
    old = [letter(4), letter(5)]
    assert offsets(without_stored(table, ("job",), ("other",), old, 20)) == [5]


def test_dead_letters_of_former_names_of_the_pipeline_count(
    table: FileStoreTable, store: Callable[..., None]
) -> None:
    store(letter(4), job="before")
    old = [letter(4), letter(5)]
    assert offsets(without_stored(table, ("job", "before"), ("other",), old, 20)) == [5]


def test_records_that_no_one_has_read_are_not_looked_up(
    table: FileStoreTable, store: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    store(letter(4))
    monkeypatch.setattr(stored_records, "latest_snapshot", pytest.fail)
    assert offsets(without_stored(table, ("job",), ("other",), [letter(4), letter(5)], 4)) == [4, 5]


def test_a_table_without_dead_letters_has_none(table: FileStoreTable) -> None:
    assert offsets(without_stored(table, ("job",), ("other",), [letter(4)], 20)) == [4]
