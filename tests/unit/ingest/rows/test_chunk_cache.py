"""Cached chunks of a batch give what decoding again would give, or are decoded again."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ingestd.cdc.base import (
    ChangeBatch,
    Decoded,
    KnownColumns,
    RecordChunk,
    format_descriptors,
    load_data_format,
)
from ingestd.ingest.rows.chunk_cache import CachedChunk, ChunkCache, ChunkKey, NotCachedError
from ingestd.ingest.settings.context import TableSettings
from ingestd.ingest.settings.shape_settings import ShapeSettings
from ingestd.ingest.stages.batch_result import AttemptResult
from ingestd.paimon.spec.data_types import parse_type
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


def chunk_of(*values: bytes) -> RecordChunk:
    """The chunk with these messages."""
    rig = Rig()
    rig.produce(*values)
    return next(rig.fetch(rig.context().sources["src"].kafka, rig.ranges()[0]))


def run_both(
    folder: Path, *values: bytes | None, before: Sequence[bytes] = (), **changes: object
) -> tuple[list[int], AttemptResult]:
    """Run one batch with a cache and one without, and compare them.

    Returns the offsets that the former fetched in its last run, and its result. The records
    `before` are in a batch of their own.
    """
    rigs = [Rig(cache=cache, **changes) for cache in (ChunkCache(str(folder)), None)]  # type: ignore[arg-type]
    for rig in rigs:
        if before:
            rig.produce(*before)
            rig.run()
            rig.fetched.clear()
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


def test_a_chunk_of_other_types_than_the_table_is_decoded_again_with_all_after_it(
    tmp_path: Path,
) -> None:
    texts = [record(Change({"id": i, "n": "x"})) for i in range(3)]
    assert run_both(tmp_path, *texts, *ROWS[3:6], *texts)[0] == [*range(3, 9)]


@pytest.mark.parametrize("before", [(), ROWS], ids=["new table", "table with rows"])
def test_a_chunk_that_lacks_a_column_of_the_table_is_not_decoded_again(
    tmp_path: Path, before: Sequence[bytes]
) -> None:
    wide = [record(Change({"id": i, "n": 1, "more": i})) for i in range(3)]
    assert run_both(tmp_path, *ROWS[3:9], *wide, *ROWS[3:6], before=before)[0] == []


def test_chunks_before_the_one_with_a_discovery_are_held_up_to_a_size(tmp_path: Path) -> None:
    wide = [record(Change({"id": i, "n": 1, "more": i})) for i in range(3)]
    small = {"max_chunk_bytes": 1}
    again, _ = run_both(tmp_path, *ROWS[3:6], *wide, before=ROWS, overrides=small)
    assert again == [*range(9, 15)]


def decoded_as(columns: Mapping[str, str], **changes: object) -> ChangeBatch:
    """A batch of the table of orders with these columns."""
    row = {name: 1 if text.startswith("INT") else "x" for name, text in columns.items()}
    (batch,) = (
        JsonChanges(types={n: parse_type(text) for n, text in columns.items()})
        .decode(chunk_of(record(Change(row))), {}, {})
        .batches
    )
    return replace(batch, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("before", "now", "changes", "agrees"),
    [
        (None, None, {}, True),
        (None, {"id": "INT NOT NULL", "n": "INT"}, {}, True),
        (None, {"id": "INT NOT NULL", "n": "INT", "m": "INT"}, {}, True),
        (None, {"id": "INT NOT NULL", "n": "INT", "m": "INT"}, {"partial": True}, False),
        (None, {"id": "INT NOT NULL", "n": "BIGINT"}, {}, False),
        (None, {"id": "INT NOT NULL", "n": "INT NOT NULL"}, {}, False),
        ({"id": "INT NOT NULL"}, {"id": "INT NOT NULL", "n": "INT"}, {}, True),
        ({"id": "INT NOT NULL"}, {"id": "INT NOT NULL", "n": "STRING"}, {}, False),
        ({"id": "INT NOT NULL", "n": "STRING"}, {"id": "INT NOT NULL", "n": "STRING"}, {}, True),
        ({"id": "INT NOT NULL", "n": "INT"}, {"id": "INT NOT NULL", "n": "BIGINT"}, {}, False),
        ({"id": "INT NOT NULL", "n": "INT"}, {"id": "INT NOT NULL"}, {}, False),
        ({"id": "INT NOT NULL", "n": "INT"}, None, {}, False),
        (
            {"id": "INT NOT NULL"},
            {"id": "INT NOT NULL", "n": "INT", "m": "INT"},
            {"unavailable": {"m": np.ones(1, np.bool_)}},
            False,
        ),
    ],
)
def test_a_chunk_agrees_with_the_columns_of_a_table_if_they_change_no_value(
    before: Mapping[str, str] | None,
    now: Mapping[str, str] | None,
    changes: Mapping[str, object],
    agrees: bool,
) -> None:
    batch = decoded_as({"id": "INT", "n": "INT"}, **changes)

    def known(types: Mapping[str, str] | None) -> KnownColumns:
        if types is None:
            return {}
        return {batch.source: {name: parse_type(text) for name, text in types.items()}}

    chunk = chunk_of(record(Change({"id": 1, "n": 1})))
    cached = CachedChunk.of(chunk, Decoded([batch], [], [], 0), known(before))
    assert cached is not None
    assert cached.agrees(known(now)) is agrees


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
    chunk = chunk_of(*ROWS[:3])
    cached = CachedChunk.of(chunk, JsonChanges().decode(chunk, {}, {}), {})
    assert cached is not None
    cache, key = ChunkCache(str(tmp_path)), ChunkKey("src", "orders", 0, 0, images=False)
    cache.put(key, cached)
    assert cache.get(key, {}) is not None
    assert cache.get(key._replace(start=1), {}) is None
    assert cache.get(key._replace(images=True), {}) is None
    next(tmp_path.iterdir()).unlink()
    assert cache.get(key, {}) is None


@pytest.mark.parametrize(
    "name", [one.name for one in format_descriptors() if one.registry != "required"]
)
def test_no_format_decodes_a_chunk_without_the_bytes_of_its_records(name: str) -> None:
    chunk = chunk_of(*ROWS[:3])
    cached = CachedChunk.of(chunk, JsonChanges().decode(chunk, {}, {}), {})
    assert cached is not None
    with pytest.raises(NotCachedError):
        load_data_format(name).decode(cached.chunk, {}, {})
