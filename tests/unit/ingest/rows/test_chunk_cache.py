"""Chunks that wait for their table give what decoding again would give, or are decoded again."""

from dataclasses import replace

import pytest

from ingestd.ingest.rows import chunk_cache
from ingestd.ingest.rows.blobs import Blob
from ingestd.ingest.rows.chunk_cache import leading, take
from ingestd.ingest.settings.context import TableSettings
from ingestd.ingest.stages.batch_result import AttemptResult
from ingestd.kafka.offset_ranges import OffsetRange
from ingestd.paimon.spec.data_types import DataType
from tests.support.ingest_rig import Rig
from tests.support.json_changes import DELETE, UNAVAILABLE, UPDATE_AFTER, Change, record

pytestmark = pytest.mark.usefixtures("json_changes")


class Dictionary:
    """A blob store in memory."""

    def __init__(self) -> None:
        self.blobs: dict[str, Blob] = {}

    def put(self, blob: Blob) -> str | None:
        name = str(len(self.blobs))
        self.blobs[name] = blob
        return name

    def get(self, name: str) -> Blob | None:
        return self.blobs.get(name)


@pytest.fixture(autouse=True)
def keep_every_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunk_cache, "LEAST_RECORDS", 1)


def rigs(*values: bytes | None, **settings: TableSettings) -> tuple[Rig, Rig]:
    """One that keeps chunks (of three records each) and one that does not, with one log."""
    pair = Rig(settings=settings, blob_store=Dictionary()), Rig(settings=settings)
    for rig in pair:
        rig.produce(*values)
    return pair


def told(result: AttemptResult) -> tuple[object, ...]:
    """What does not hang on names of files."""
    counts = result.counts
    return (
        *(counts.records, counts.bytes, counts.control, counts.rejected, counts.rows),
        *(counts.skipped, result.source_tables, result.topics, result.positions, result.rejected),
        result.last_records,
    )


def test_the_next_run_neither_reads_nor_decodes_what_was_kept() -> None:
    keeping, plain = rigs(
        *(record(Change({"id": i, "n": i}, position=10 + i)) for i in range(5)),
        record(Change({"id": 1, "n": 7}, UPDATE_AFTER, position=20)),
        record(Change({"id": 2}, DELETE, position=21)),
        None,
        record(Change({"id": 3, "n": UNAVAILABLE}, UPDATE_AFTER, position=22, snapshot=True)),
    )
    assert told(keeping.run()) == told(plain.run())
    assert keeping.rows("orders") == plain.rows("orders") != []
    assert keeping.fetched == list(range(9))
    assert plain.fetched == [*range(9), *range(9)]


def test_a_chunk_with_a_narrower_type_than_the_table_is_decoded_again_with_all_after_it() -> None:
    narrow = [record(Change({"id": i, "n": 1})) for i in range(3)]
    wide = [record(Change({"id": i, "n": "x"})) for i in range(3, 6)]
    keeping, plain = rigs(*wide, *narrow, *wide)
    assert told(keeping.run()) == told(plain.run())
    assert keeping.rows("orders") == plain.rows("orders") != []
    assert keeping.fetched == [*range(9), *range(3, 9)]


@pytest.mark.parametrize(
    "irregular",
    [
        b"{",
        record(Change({"id": 9}), Change({"id": 9}, table="others")),
        record(Change({}, truncate=True, position=5)),
    ],
    ids=["rejected", "two tables", "truncate"],
)
def test_a_chunk_that_is_not_plain_is_not_kept(irregular: bytes) -> None:
    first = [record(Change({"id": i}, position=i)) for i in range(3)]
    keeping, plain = rigs(*first, irregular, *first)
    assert told(keeping.run()) == told(plain.run())
    assert keeping.rows("orders") == plain.rows("orders")
    assert keeping.rows("ingestd_dead_letters") == plain.rows("ingestd_dead_letters")
    assert {3, 4, 5} <= set(keeping.fetched[7:])


def test_a_row_that_the_table_refuses_is_rejected_with_its_record() -> None:
    keyless = record(Change({"id": None, "n": 1}))
    keeping, plain = rigs(record(Change({"id": 1, "n": 1})), keyless)
    assert told(keeping.run()) == told(plain.run())
    dead_letters = keeping.rows("ingestd_dead_letters", "offset", "value")
    assert dead_letters == plain.rows("ingestd_dead_letters", "offset", "value")
    assert len(dead_letters) == 1


def test_a_truncate_after_kept_rows_counts_for_them() -> None:
    keeping, plain = rigs(
        *(record(Change({"id": i}, position=i)) for i in range(3)),
        record(Change({}, truncate=True, position=1)),
    )
    assert told(keeping.run()) == told(plain.run())
    assert keeping.rows("orders") == plain.rows("orders") == [{"id": 2}]


@pytest.mark.parametrize(
    "settings",
    [TableSettings(primary_keys=("n",)), TableSettings(column_types={"n": DataType("BIGINT")})],
    ids=["another key", "a declared type"],
)
def test_settings_of_the_table_count_for_kept_rows(settings: TableSettings) -> None:
    keeping, plain = rigs(
        *(record(Change({"id": i, "n": i % 2})) for i in range(6)), orders=settings
    )
    assert told(keeping.run()) == told(plain.run())
    assert keeping.rows("orders") == plain.rows("orders") != []


def test_a_blob_that_is_gone_is_decoded_again() -> None:
    keeping, plain = rigs(*(record(Change({"id": i})) for i in range(6)))
    assert isinstance(keeping.blob_store, Dictionary)
    context = keeping.context()
    result = keeping.round(context, keeping.ranges())
    keeping.evolve(context, result)
    assert take(keeping.blob_store, result.kept[0], keeping.context()) is not None
    keeping.blob_store.blobs.clear()
    assert take(keeping.blob_store, result.kept[0], keeping.context()) is None
    keeping.kept.extend(result.kept)
    assert told(keeping.run()) == told(plain.run())
    assert keeping.rows("orders") == plain.rows("orders") != []


def test_a_full_shelf_keeps_nothing() -> None:
    class Full(Dictionary):
        def put(self, blob: Blob) -> str | None:
            return None

    keeping, plain = rigs(*(record(Change({"id": i})) for i in range(6)))
    keeping.blob_store = Full()
    assert told(keeping.run()) == told(plain.run())
    assert keeping.fetched == plain.fetched


def test_kept_chunks_stand_for_a_range_only_without_a_gap_before_them() -> None:
    keeping, _ = rigs(*(record(Change({"id": i})) for i in range(9)))
    kept = keeping.round(keeping.context(), keeping.ranges()).kept
    wanted = OffsetRange("src", "orders", 0, 0, 9)

    def starts(chunks: list[int], one: OffsetRange) -> list[int]:
        return [found.start for found in leading([kept[i] for i in chunks], one)]

    assert starts([2, 0, 1], wanted) == [0, 3, 6]
    assert starts([0, 2], wanted) == [0]
    assert starts([1, 2], wanted) == []
    assert starts([0, 1, 2], replace(wanted, start=1)) == []
    assert starts([0, 1, 2], replace(wanted, until=8)) == [0, 3]
    assert starts([0, 1, 2], replace(wanted, partition=1)) == []
