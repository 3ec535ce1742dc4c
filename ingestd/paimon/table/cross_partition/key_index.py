"""The index of keys across partitions: immutable arrays in memory.

An index consists of a large sorted layer and a small one with recent changes, so that the cost of a
change depends on its own size. It takes about 20 bytes per key.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/data-distribution/#cross-partitions-upsert
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ingestd.paimon.spec.key_fingerprints import KeyFingerprints, Numbers

UNKNOWN = -1
"""The place of a key that does not exist."""

Places = npt.NDArray[np.int32]
_Positions = npt.NDArray[np.int64]

_SMALL = 4096
_SHARE = 8


class BucketNumbers:
    """Consecutive numbers, from 0, for pairs of a partition (its serialized row) and a bucket.

    Pairs are added, never removed or renumbered.
    """

    def __init__(self) -> None:
        self._places: list[tuple[bytes, int]] = []
        self._numbers: dict[bytes, dict[int, int]] = {}

    def number(self, partition: bytes, bucket: int) -> int:
        """Return the number of a partition and bucket; assign one if it is new."""
        number = self._numbers.setdefault(partition, {}).setdefault(bucket, len(self._places))
        if number == len(self._places):
            self._places.append((partition, bucket))
        return number

    def place(self, number: int) -> tuple[bytes, int]:
        """Return the partition and the bucket of a number."""
        return self._places[number]

    def of_partition(self, partition: bytes) -> Mapping[int, int]:
        """Return the number of each known bucket of a partition."""
        return self._numbers.get(partition, {})

    def __len__(self) -> int:
        return len(self._places)


@dataclass(frozen=True, slots=True)
class _Layer:
    """Distinct keys, ordered by the first number of their fingerprints, and the place of each."""

    keys: KeyFingerprints
    places: Places

    @classmethod
    def of(cls, keys: KeyFingerprints, places: Places) -> "_Layer":
        """Return a layer of distinct keys given in any order."""
        order = np.argsort(keys.first, kind="stable")
        return cls(keys.take(order), places[order])

    def find(self, keys: KeyFingerprints) -> _Positions:
        """Return the position of each key, -1 if it is not in the layer."""
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
        """Return this layer merged with a newer one, whose places take precedence."""
        replaced = self.find(newer.keys)
        kept = np.ones(len(self.places), bool)
        kept[replaced[replaced >= 0]] = False
        keys = KeyFingerprints.concat([self.keys.take(kept), newer.keys])
        return _Layer.of(keys, np.concatenate([self.places[kept], newer.places]))

    def settled(self) -> "_Layer":
        """Return the layer without the keys whose place is `UNKNOWN`."""
        there = self.places != UNKNOWN
        return _Layer(self.keys.take(there), self.places[there])


def _empty() -> _Layer:
    none: Numbers = np.zeros(0, np.uint64)
    return _Layer(KeyFingerprints(none, none), np.zeros(0, np.int32))


@dataclass(frozen=True, slots=True)
class KeyIndex:
    """The place of each key, as a number of `book`; `counts` has the key count of each place."""

    book: BucketNumbers = field(default_factory=BucketNumbers)
    counts: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    _base: _Layer = field(default_factory=_empty)
    _recent: _Layer = field(default_factory=_empty)

    @classmethod
    def of(cls, book: BucketNumbers, keys: KeyFingerprints, places: Places) -> "KeyIndex":
        """Return an index of keys given in any order.

        The last place of a duplicate key takes precedence.
        """
        distinct = last_of_each(keys)
        keys, places = keys.take(distinct), places[distinct]
        counts = np.bincount(places, minlength=len(book)).astype(np.int64)
        return cls(book, counts, _Layer(keys, places))

    def lookup(self, keys: KeyFingerprints) -> Places:
        """Return the place of each key as a number of `book`, or `UNKNOWN`."""
        places = np.full(len(keys), UNKNOWN, np.int32)
        for layer in (self._base, self._recent):
            positions = layer.find(keys)
            there = positions >= 0
            places[there] = layer.places[positions[there]]
        return places

    def with_changes(self, keys: KeyFingerprints, places: Places) -> "KeyIndex":
        """Return an index in which the distinct keys have these places; `UNKNOWN` removes a key."""
        counts = np.zeros(len(self.book), np.int64)
        counts[: len(self.counts)] = self.counts
        for sign, changed in ((-1, self.lookup(keys)), (1, places)):
            counts += sign * np.bincount(changed[changed != UNKNOWN], minlength=len(counts))
        base, recent = self._base, self._recent.over(_Layer.of(keys, places))
        if len(recent.places) > max(_SMALL, len(base.places) // _SHARE):
            base, recent = base.over(recent).settled(), _empty()
        return KeyIndex(self.book, counts, base, recent)

    def counted(self, counts: npt.NDArray[np.int64]) -> "KeyIndex":
        """Return the index with these key counts, which may include keys that it lacks."""
        return KeyIndex(self.book, counts, self._base, self._recent)

    def counts_of(self, partition: bytes) -> dict[int, int]:
        """Return the key count of each bucket of a partition."""
        places = self.book.of_partition(partition)
        counts = self.counts
        return {b: int(counts[n]) if n < len(counts) else 0 for b, n in places.items()}

    @property
    def nbytes(self) -> int:
        """Return the size of the arrays in bytes."""
        return sum(
            layer.keys.first.nbytes + layer.keys.second.nbytes + layer.places.nbytes
            for layer in (self._base, self._recent)
        )

    def __len__(self) -> int:
        return int(self.counts.sum())


def last_of_each(keys: KeyFingerprints) -> _Positions:
    """Return the last position of each distinct key, in the order of a layer."""
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
