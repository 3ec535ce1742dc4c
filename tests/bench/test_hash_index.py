"""An index that is made for a measurement is one that assigners take, and is deleted again."""

from pathlib import Path

import numpy as np
import pytest

from bench import hash_index
from bench.hash_index import hashes_of, make_index, measure
from ingestd.paimon.table.buckets.hash_index import HASH_CACHE, PartitionIndex


def test_hashes_are_all_different() -> None:
    found = hashes_of(5, 10_000)
    assert len(np.unique(found)) == 10_000
    assert hashes_of(6, 1)[0] == found[1]


@pytest.mark.parametrize("partitions", [1, 3])
def test_every_key_is_in_one_bucket_of_its_partition(partitions: int, tmp_path: Path) -> None:
    table, entries = make_index(tmp_path, 3_000, partitions)
    assert len(entries) == partitions
    each = 3_000 // partitions
    for number, entry in enumerate(entries):
        index = PartitionIndex.load(table, entry)
        assert (index.lookup(hashes_of(number * each, each)) == 0).all()
        assert index.lookup(hashes_of(3_000, 1)).tolist() == [-1]


def test_figures_are_reported_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hash_index, "BUCKET_KEYS", 1_000)
    monkeypatch.setattr(hash_index, "BATCHES", (10, 20))
    kept = HASH_CACHE.nbytes
    found = measure(tmp_path / "t", 2_500, 1)
    assert (found.keys, found.files, found.partitions) == (2_500, 3, 1)
    assert set(found.batch_ms) == set(found.lookup_ms) == set(found.searchsorted_ms) == {10, 20}
    assert not (tmp_path / "t").exists()
    assert HASH_CACHE.nbytes <= kept + 4 * 2_600
