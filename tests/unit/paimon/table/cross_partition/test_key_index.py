"""The index of keys: a dictionary that is never changed, in columns."""

import random

import numpy as np
import pyarrow as pa

from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.key_fingerprints import KeyFingerprints, key_fingerprints
from ingestd.paimon.table.cross_partition.key_index import (
    UNKNOWN,
    BucketDictionary,
    KeyIndex,
    last_positions,
)

BIGINT = parse_type("BIGINT")


def prints(keys: list[int]) -> KeyFingerprints:
    return key_fingerprints([pa.array(keys, pa.int64())], [BIGINT], (1, 2))


def _buckets(*bucket_ids: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.array(bucket_ids, np.int32)


def _index(dictionary: BucketDictionary, bucket_ids: dict[int, int]) -> KeyIndex:
    return KeyIndex.of(dictionary, prints(list(bucket_ids)), _buckets(*bucket_ids.values()))


def _dictionary(count: int) -> BucketDictionary:
    dictionary = BucketDictionary()
    assert [dictionary.encode(b"p", bucket) for bucket in range(count)] == list(range(count))
    return dictionary


def test_buckets_have_one_id_each() -> None:
    dictionary = BucketDictionary()
    assert [dictionary.encode(b"a", 0), dictionary.encode(b"b", 0), dictionary.encode(b"a", 1)] == [
        0,
        1,
        2,
    ]
    assert dictionary.encode(b"b", 0) == 1
    assert dictionary.decode(2) == (b"a", 1)
    assert dict(dictionary.of_partition(b"a")) == {0: 0, 1: 2}
    assert (dict(dictionary.of_partition(b"c")), len(dictionary)) == ({}, 3)


def test_an_index_is_what_a_dictionary_would_be_through_any_changes() -> None:
    rng, dictionary = random.Random(4), _dictionary(5)
    model = {key: rng.randrange(5) for key in range(6000)}
    index = _index(dictionary, model)
    for _ in range(12):
        keys = rng.sample(range(9000), rng.choice([3, 900]))
        new = [rng.choice([UNKNOWN, 0, 1, 2, 3, 4]) for _ in keys]
        index = index.with_changes(prints(keys), _buckets(*new))
        model.update(zip(keys, new, strict=True))
        model = {key: bucket_id for key, bucket_id in model.items() if bucket_id != UNKNOWN}
        asked = list(range(-10, 9010))
        assert index.lookup(prints(asked)).tolist() == [model.get(k, UNKNOWN) for k in asked]
        assert index.counts.tolist() == np.bincount(list(model.values()), minlength=5).tolist()
    assert len(index) == len(model)


def test_an_older_index_stays_what_it_was() -> None:
    dictionary = _dictionary(2)
    old = _index(dictionary, {1: 0, 2: 0})
    new = old.with_changes(prints([1, 3]), _buckets(1, 1))
    asked = prints([1, 2, 3])
    assert old.lookup(asked).tolist() == [0, 0, UNKNOWN]
    assert new.lookup(asked).tolist() == [1, 0, 1]
    assert (old.counts.tolist(), new.counts.tolist()) == ([2, 0], [1, 2])


def test_keys_that_share_one_number_are_distinguished_by_the_other() -> None:
    first = np.array([7, 7, 7, 9], np.uint64)
    keys = KeyFingerprints(first, np.array([1, 2, 3, 1], np.uint64))
    index = KeyIndex.of(_dictionary(4), keys.take(np.array([0, 2, 3])), _buckets(0, 2, 3))
    assert index.lookup(keys).tolist() == [0, UNKNOWN, 2, 3]
    changed = index.with_changes(keys.take(np.array([1, 2])), _buckets(1, 0))
    assert changed.lookup(keys).tolist() == [0, 1, 0, 3]


def test_of_a_key_that_is_there_twice_the_last_counts() -> None:
    keys = prints([5, 6, 5])
    assert sorted(last_positions(keys).tolist()) == [1, 2]
    index = KeyIndex.of(_dictionary(3), keys, _buckets(0, 1, 2))
    assert index.lookup(prints([5, 6])).tolist() == [2, 1]
    assert index.counts.tolist() == [0, 1, 1]


def test_counts_of_a_partition_include_buckets_added_later() -> None:
    dictionary = _dictionary(1)
    index = _index(dictionary, {1: 0, 2: 0})
    dictionary.encode(b"p", 7)
    assert index.counts_of(b"p") == {0: 2, 7: 0}
    assert index.counted(np.array([9, 4])).counts_of(b"p") == {0: 9, 7: 4}
    assert index.counts_of(b"q") == {}


def test_a_small_change_leaves_the_large_layer_alone() -> None:
    index = _index(_dictionary(1), dict.fromkeys(range(50_000), 0))
    changed = index.with_changes(prints([60_000]), _buckets(0))
    assert changed._base is index._base
    assert 50_000 * 20 <= index.nbytes < changed.nbytes == index.nbytes + 20
