"""A cached chunk is what a decoder makes of it that knows the table, in every data format."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingestd.cdc.base import ChangeBatch, Decoded
from ingestd.ingest.rows.chunk_cache import CachedChunk, ChunkCache, ChunkKey
from ingestd.paimon.spec.data_types import DataType
from tests.fuzz.cases import irregular
from tests.fuzz.seeds import FORMATS, seeds
from tests.fuzz.verdict import chunk_of, decoder_of
from tests.support.decoded import facts

_KEY = ChunkKey("src", "p.inv.item", 0, 0, images=False)


def unordered(decoded: Decoded) -> dict[str, Any]:
    """What a decoder made of a chunk, without the order of columns."""
    found: dict[str, Any] = dict(facts(decoded))
    for batch in found["batches"]:
        batch |= {"types": dict(batch["types"]), "arrow": None, "writeable": None}
    return found


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    random=st.randoms(use_true_random=False),
    changes=st.integers(0, 3),
    mode=st.sampled_from([0, 4]),
    native=st.booleans(),
)
def test_a_table_of_the_columns_that_were_found_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
    random: Random,
    changes: int,
    mode: int,
    native: bool,
) -> None:
    case = replace(irregular(random, random.choice(seeds(name)), changes), mode=mode)
    chunk, cache = chunk_of(case.messages, 0), ChunkCache(str(tmp_path_factory.mktemp("cache")))
    decoded = decoder_of(case, native=native).decode(chunk, {}, {})
    known = {
        batch.source: {
            column: replace(data_type, nullable=column not in batch.primary_keys)
            for column, data_type in batch.types.items()
        }
        for batch in decoded.batches
    }
    if (kept := CachedChunk.of(chunk, decoded, {})) is not None:
        cache.put(_KEY, kept)
    if (cached := cache.get(_KEY, known)) is not None:
        again = decoder_of(case, native=native).decode(chunk, known, {})
        assert unordered(cached[1]) == unordered(decoded) == unordered(again)


def valued(decoded: Decoded) -> Decoded:
    """A decoded chunk without the columns that have only nulls."""
    return replace(decoded, batches=[_valued(batch) for batch in decoded.batches])


def _valued(batch: ChangeBatch) -> ChangeBatch:
    columns = batch.columns
    empty = [n for n in columns.column_names if columns.column(n).null_count == len(columns)]
    types = {name: batch.types[name] for name in batch.types if name not in empty}
    return replace(batch, columns=columns.drop_columns(empty), types=types)


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(random=st.randoms(use_true_random=False), changes=st.integers(0, 2), native=st.booleans())
def test_columns_that_a_table_gets_change_nothing(
    name: str, random: Random, changes: int, native: bool
) -> None:
    case = irregular(random, random.choice(seeds(name)), changes)
    chunk = chunk_of(case.messages, 0)
    now = {
        batch.source: {
            column: replace(data_type, nullable=column not in batch.primary_keys)
            for column, data_type in {**batch.types, "gained": DataType("STRING")}.items()
        }
        for batch in decoder_of(case, native=native).decode(chunk, {}, {}).batches
    }
    before = {
        source: {n: t for n, t in types.items() if not t.nullable or random.random() < 0.5}
        for source, types in now.items()
    }
    cached = CachedChunk.of(
        chunk, decoder_of(case, native=native).decode(chunk, before, {}), before
    )
    if cached is not None and cached.agrees(now):
        again = decoder_of(case, native=native).decode(chunk, now, {})
        assert unordered(valued(cached.decoded)) == unordered(valued(again))


@pytest.mark.parametrize("name", FORMATS)
def test_sound_messages_of_one_table_are_cached(
    tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    case = seeds(name)[0]
    chunk, cache = chunk_of(case.messages, 0), ChunkCache(str(tmp_path_factory.mktemp("cache")))
    kept = CachedChunk.of(chunk, decoder_of(case, native=True).decode(chunk, {}, {}), {})
    assert kept is not None
    cache.put(_KEY, kept)
    assert cache.get(_KEY, {}) is not None
