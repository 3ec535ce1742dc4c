"""Cached chunks of a new table give what decoding again would give, or are decoded again."""

from dataclasses import replace
from pathlib import Path

import pytest

from ingestd.cdc.base import format_descriptors, load_data_format
from ingestd.ingest.rows.chunk_cache import ChunkCache, ChunkKey, NotCachedError
from ingestd.ingest.settings.context import TableSettings
from ingestd.ingest.settings.shape_settings import ShapeSettings
from ingestd.ingest.stages.batch_result import AttemptResult
from tests.support.ingest_rig import Rig
from tests.support.json_changes import (
    DELETE,
    UNAVAILABLE,
    UPDATE_AFTER,
    Change,
    JsonChanges,
    record,
    statement,
)

pytestmark = pytest.mark.usefixtures("json_changes")
ROWS = [record(Change({"id": i, "n": i % 2}, position=10 + i)) for i in range(9)]
KEYLESS = record(Change({"id": None, "n": 1}))
TRUNCATE = record(Change({}, truncate=True, position=11))
TWO_TABLES = record(Change({"id": 9, "n": 1}), Change({"id": 9}, table="others"))


def run_both(
    folder: Path, *values: bytes | None, **changes: object
) -> tuple[list[int], AttemptResult]:
    """Run one batch with a cache and one without, and compare them.

    Returns the offsets that the former fetched in its last run, and its result.
    """
    rigs = [Rig(cache=cache, **changes) for cache in (ChunkCache(str(folder)), None)]  # type: ignore[arg-type]
    for rig in rigs:
        rig.produce(*values)
    results = [replace(rig.run(), messages={}) for rig in rigs]
    assert results[0] == results[1]
    for table in rigs[1].tables:
        name = table.partition(".")[2]
        assert rigs[0].rows(name) == rigs[1].rows(name)
    last = rigs[0].fetched[len(values) :]
    return last, results[0]


def test_the_second_run_neither_fetches_nor_decodes_what_the_first_has_decoded(
    tmp_path: Path,
) -> None:
    others = (
        record(Change({"id": 1, "n": 7}, UPDATE_AFTER, position=20)),
        record(Change({"id": 2}, DELETE, position=21)),
        None,
        record(Change({"id": 3, "n": UNAVAILABLE}, UPDATE_AFTER, position=22, snapshot=True)),
        TWO_TABLES,
    )
    fetched, result = run_both(tmp_path, *ROWS, *others)
    assert fetched == []
    assert sum(result.counts.rows.values()) == len(ROWS) + 5


@pytest.mark.parametrize("other", [{"n": "x"}, {"n": 1, "more": 1}], ids=["type", "column"])
def test_a_chunk_of_other_columns_than_the_table_is_decoded_again_with_all_after_it(
    tmp_path: Path, other: dict[str, object]
) -> None:
    wide = [record(Change({"id": i, **other})) for i in range(3)]
    assert run_both(tmp_path, *wide, *ROWS[3:6], *wide)[0] == [*range(3, 9)]


@pytest.mark.parametrize(
    "irregular",
    [b"{", TRUNCATE, statement(12, n="m"), KEYLESS],
    ids=["rejected", "truncate", "rename", "row that the table rejects"],
)
def test_an_irregular_chunk_is_decoded_again_with_all_after_it(
    tmp_path: Path, irregular: bytes
) -> None:
    fetched, _ = run_both(tmp_path, *ROWS[:4], irregular, *ROWS[5:])
    assert fetched[:6] == [*range(3, 9)]


@pytest.mark.parametrize(
    "settings",
    [
        TableSettings(primary_keys=("n",)),
        TableSettings(shape=ShapeSettings(metadata=("key",))),
    ],
    ids=["another key", "a column of the record's bytes"],
)
def test_settings_by_which_records_are_needed_again(
    tmp_path: Path, settings: TableSettings
) -> None:
    assert run_both(tmp_path, *ROWS, settings={"orders": settings})[0][:9] == [*range(9)]


def test_a_table_with_a_computed_column_takes_cached_chunks(tmp_path: Path) -> None:
    shape = ShapeSettings(metadata=("offset", "timestamp"))
    settings = {"orders": TableSettings(shape=shape)}
    assert run_both(tmp_path, *ROWS, settings=settings)[0] == []


def test_a_file_that_is_missing_or_cannot_be_written_is_decoded_again(tmp_path: Path) -> None:
    assert run_both(tmp_path / "missing", *ROWS)[0] == [*range(9)]
    rig = Rig(cache=ChunkCache(str(tmp_path)))
    rig.produce(*ROWS)
    chunk = next(rig.fetch(rig.context().sources["src"].kafka, rig.ranges()[0]))
    decoded = JsonChanges().decode(chunk, {}, {})
    cache, key = ChunkCache(str(tmp_path)), ChunkKey("src", "orders", 0, 0, images=False)
    assert cache.put(key, chunk, decoded)
    assert cache.get(key, {}) is not None
    assert cache.get(key._replace(start=1), {}) is None
    assert cache.get(key._replace(images=True), {}) is None
    next(tmp_path.iterdir()).unlink()
    assert cache.get(key, {}) is None


@pytest.mark.parametrize(
    "name", [one.name for one in format_descriptors() if one.registry != "required"]
)
def test_no_format_decodes_a_chunk_without_the_bytes_of_its_records(
    tmp_path: Path, name: str
) -> None:
    rig = Rig()
    rig.produce(*ROWS[:3])
    chunk = next(rig.fetch(rig.context().sources["src"].kafka, rig.ranges()[0]))
    cache, key = ChunkCache(str(tmp_path)), ChunkKey("src", "orders", 0, 0, images=False)
    assert cache.put(key, chunk, JsonChanges().decode(chunk, {}, {}))
    cached = cache.get(key, {})
    assert cached is not None
    with pytest.raises(NotCachedError):
        load_data_format(name).decode(cached[0], {}, {})
