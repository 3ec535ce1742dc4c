"""The index of keys across partitions, which consists of immutable arrays in memory.

An index has a large sorted layer and a small layer with recent changes, so that the cost of a
change depends on its own size. It takes about 20 bytes per key.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/data-distribution/#cross-partitions-upsert
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ingestd.paimon.merge.key_order import Positions
from ingestd.paimon.spec.key_fingerprints import KeyFingerprints, Numbers
from ingestd.paimon.spec.manifest import BucketKey

UNKNOWN = -1
"""The bucket id of a key that does not exist."""

BucketIds = npt.NDArray[np.int32]

_SMALL = 4096
_SHARE = 8


class BucketDictionary:
    """Ids, from 0, for pairs of a partition (its serialized row) and a bucket.

    Pairs are added; an id is never removed or changed.
    """

    def __init__(self) -> None:
        self._buckets: list[BucketKey] = []
        self._ids: dict[bytes, dict[int, int]] = {}

    def encode(self, partition: bytes, bucket: int) -> int:
        """Return the id of a partition and bucket; assign the next id to a new pair."""
        bucket_id = self._ids.setdefault(partition, {}).setdefault(bucket, len(self._buckets))
        if bucket_id == len(self._buckets):
            self._buckets.append((partition, bucket))
        return bucket_id

    def decode(self, bucket_id: int) -> BucketKey:
        """Return the partition and the bucket of an id."""
        return self._buckets[bucket_id]

    def of_partition(self, partition: bytes) -> Mapping[int, int]:
        """Return the id of each known bucket of a partition."""
        return self._ids.get(partition, {})

    def __len__(self) -> int:
        return len(self._buckets)


@dataclass(frozen=True, slots=True)
class _Layer:
    """Distinct keys and the bucket id of each, ordered by the first number of the fingerprint."""

    keys: KeyFingerprints
    bucket_ids: BucketIds

    @classmethod
    def of(cls, keys: KeyFingerprints, bucket_ids: BucketIds) -> "_Layer":
        """Return a layer of distinct keys given in any order."""
        order = np.argsort(keys.first, kind="stable")
        return cls(keys.take(order), bucket_ids[order])

    def find(self, keys: KeyFingerprints) -> Positions:
        """Return the position of each key in the layer, -1 for an unknown key; shape (keys,)."""
        positions = np.full(len(keys), -1, np.int64)
        count = len(self.keys)
        at = np.searchsorted(self.keys.first, keys.first)
        asked = np.arange(len(keys))
        while len(asked):
            here = at[asked]
            asked, here = asked[here < count], here[here < count]
            same = self.keys.first[here] == keys.first[asked]
            asked, here = asked[same], here[same]
            same = self.keys.second[here] == keys.second[asked]
            positions[asked[same]] = here[same]
            # Another key with the same first number; the searched key may follow it.
            asked = asked[~same]
            at[asked] += 1
        return positions

    def over(self, newer: "_Layer") -> "_Layer":
        """Return this layer merged with a newer layer, whose bucket ids take precedence."""
        replaced = self.find(newer.keys)
        kept = np.ones(len(self.bucket_ids), bool)
        kept[replaced[replaced >= 0]] = False
        keys = KeyFingerprints.concat([self.keys.take(kept), newer.keys])
        return _Layer.of(keys, np.concatenate([self.bucket_ids[kept], newer.bucket_ids]))

    def settled(self) -> "_Layer":
        """Return the layer without the keys whose bucket id is `UNKNOWN`."""
        there = self.bucket_ids != UNKNOWN
        return _Layer(self.keys.take(there), self.bucket_ids[there])


def _empty() -> _Layer:
    none: Numbers = np.zeros(0, np.uint64)
    return _Layer(KeyFingerprints(none, none), np.zeros(0, np.int32))


@dataclass(frozen=True, slots=True)
class KeyIndex:
    """An immutable index of keys, given by their fingerprints, and of the bucket of each.

    Buckets are ids of `dictionary`; `counts` has the number of keys by bucket id.
    """

    dictionary: BucketDictionary = field(default_factory=BucketDictionary)
    counts: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    _base: _Layer = field(default_factory=_empty)
    _recent: _Layer = field(default_factory=_empty)

    @classmethod
    def of(
        cls, dictionary: BucketDictionary, keys: KeyFingerprints, bucket_ids: BucketIds
    ) -> "KeyIndex":
        """Return an index of keys, given in any order with the id of the bucket of each.

        The last bucket of a duplicate key takes precedence.
        """
        distinct = last_positions(keys)
        keys, bucket_ids = keys.take(distinct), bucket_ids[distinct]
        counts = np.bincount(bucket_ids, minlength=len(dictionary)).astype(np.int64)
        return cls(dictionary, counts, _Layer(keys, bucket_ids))

    def lookup(self, keys: KeyFingerprints) -> BucketIds:
        """Return the bucket id of each key, -1 for an unknown key; shape (keys,)."""
        bucket_ids = np.full(len(keys), UNKNOWN, np.int32)
        for layer in (self._base, self._recent):
            positions = layer.find(keys)
            there = positions >= 0
            bucket_ids[there] = layer.bucket_ids[positions[there]]
        return bucket_ids

    def with_changes(self, keys: KeyFingerprints, bucket_ids: BucketIds) -> "KeyIndex":
        """Return an index in which the distinct `keys` have these bucket ids; -1 removes a key.

        The key counts of the old and the new buckets change accordingly.
        """
        counts = np.zeros(len(self.dictionary), np.int64)
        counts[: len(self.counts)] = self.counts
        for sign, changed in ((-1, self.lookup(keys)), (1, bucket_ids)):
            counts += sign * np.bincount(changed[changed != UNKNOWN], minlength=len(counts))
        base, recent = self._base, self._recent.over(_Layer.of(keys, bucket_ids))
        if len(recent.bucket_ids) > max(_SMALL, len(base.bucket_ids) // _SHARE):
            base, recent = base.over(recent).settled(), _empty()
        return KeyIndex(self.dictionary, counts, base, recent)

    def counted(self, counts: npt.NDArray[np.int64]) -> "KeyIndex":
        """Return the index with the key counts `counts`, by bucket id, in place of its own.

        They may count more keys than the index contains.
        """
        return KeyIndex(self.dictionary, counts, self._base, self._recent)

    def counts_of(self, partition: bytes) -> dict[int, int]:
        """Return the key count of each bucket of a partition."""
        bucket_ids = self.dictionary.of_partition(partition)
        counts = self.counts
        return {b: int(counts[n]) if n < len(counts) else 0 for b, n in bucket_ids.items()}

    @property
    def nbytes(self) -> int:
        """The number of bytes of memory that the keys and bucket ids use."""
        return sum(
            layer.keys.first.nbytes + layer.keys.second.nbytes + layer.bucket_ids.nbytes
            for layer in (self._base, self._recent)
        )

    def __len__(self) -> int:
        return int(self.counts.sum())


def last_positions(keys: KeyFingerprints) -> Positions:
    """Return the position of the last occurrence of each distinct key.

    The positions are ordered by the first number of the fingerprints.
    """
    order = np.argsort(keys.first, kind="stable")
    ordered = keys.first[order]
    if not bool((ordered[1:] == ordered[:-1]).any()):
        return order
    order = np.lexsort((np.arange(len(keys)), keys.second, keys.first))
    sorted_keys = keys.take(order)
    ends = np.ones(len(order), bool)
    ends[:-1] = (sorted_keys.first[1:] != sorted_keys.first[:-1]) | (
        sorted_keys.second[1:] != sorted_keys.second[:-1]
    )
    return order[ends]
