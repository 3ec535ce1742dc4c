"""Which bucket each key hash of a partition lives in. Specification: Hash index.

An index file never changes, so its hashes are kept in this process by the file's path: worker
processes that write batch after batch read each file at most once.
"""

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ingestd.errors import FormatError
from ingestd.paimon.spec.index_manifest import IndexManifestEntry, decode_hash_index
from ingestd.paimon.table.file_store_table import FileStoreTable
from ingestd.paimon.table.index_paths import index_path

HASH_INDEX = "HASH"
UNKNOWN_BUCKET = -1
CACHE_BYTES = 64 << 20
"""Bytes of hashes that a process keeps, unless told otherwise."""

Hashes = npt.NDArray[np.int32]


class HashCache:
    """Sorted hashes by path of the index file, the longest unused ones given up first."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._arrays: OrderedDict[str, Hashes] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, path: str) -> Hashes | None:
        """The hashes of a file, if they are here."""
        with self._lock:
            found = self._arrays.get(path)
            if found is not None:
                self._arrays.move_to_end(path)
            return found

    def put(self, path: str, hashes: Hashes) -> None:
        """Keep the hashes of a file; an array above the limit by itself is not kept."""
        with self._lock:
            if path in self._arrays or hashes.nbytes > self._max_bytes:
                return
            self._arrays[path] = hashes
            self._bytes += hashes.nbytes
            self._give_up()

    def limit(self, max_bytes: int) -> None:
        """Hold no more than so many bytes from now on."""
        with self._lock:
            self._max_bytes = max_bytes
            self._give_up()

    def _give_up(self) -> None:
        while self._bytes > self._max_bytes:
            self._bytes -= self._arrays.popitem(last=False)[1].nbytes

    def discard(self, path: str) -> None:
        """Give up the hashes of a file, if they are here."""
        with self._lock:
            found = self._arrays.pop(path, None)
            if found is not None:
                self._bytes -= found.nbytes

    @property
    def nbytes(self) -> int:
        """Bytes of the hashes that are here."""
        return self._bytes


CACHE = HashCache(CACHE_BYTES)


@dataclass(frozen=True, slots=True)
class PartitionIndex:
    """The hash index of one partition: sorted distinct hashes of each bucket, by bucket."""

    buckets: Mapping[int, Hashes]

    @classmethod
    def load(cls, table: FileStoreTable, entries: Sequence[IndexManifestEntry]) -> "PartitionIndex":
        """The index that the HASH entries of one partition make up.

        FormatError names an index file that is missing, damaged or not alone in its bucket.
        """
        buckets: dict[int, Hashes] = {}
        for entry in sorted(entries, key=lambda entry: entry.bucket):
            if entry.bucket in buckets:
                path = index_path(table, entry)
                raise FormatError(f"hash index {path}: bucket {entry.bucket} has another one too")
            buckets[entry.bucket] = load_hashes(table, entry)
        return cls(buckets)

    def lookup(self, hashes: Hashes) -> npt.NDArray[np.int32]:
        """The bucket of each hash, -1 where it is not known yet."""
        distinct, positions = np.unique(hashes, return_inverse=True)
        return self.lookup_sorted(distinct)[positions]

    def lookup_sorted(self, distinct: Hashes) -> npt.NDArray[np.int32]:
        """The same of hashes that are sorted."""
        found = np.full(len(distinct), UNKNOWN_BUCKET, np.int32)
        for bucket, known in self.buckets.items():
            found[is_among(distinct, known)] = bucket
        return found


def load_hashes(table: FileStoreTable, entry: IndexManifestEntry) -> Hashes:
    """The sorted hashes of one index file, from the cache if it has them."""
    path = index_path(table, entry)
    known = CACHE.get(path)
    if known is not None:
        return known
    try:
        hashes = decode_hash_index(table.io.read_bytes(path), path)
    except FileNotFoundError as error:
        raise FormatError(
            f"hash index {path} is missing: its snapshot was expired meanwhile, or the table is "
            "damaged"
        ) from error
    if len(hashes) != entry.row_count:
        raise FormatError(
            f"hash index {path} holds {len(hashes)} hashes, {entry.row_count} are promised"
        )
    if not is_sorted(hashes):  # ingestd writes them sorted, others need not
        hashes.sort()
    CACHE.put(path, hashes)
    return hashes


def is_sorted(hashes: Hashes) -> bool:
    """Whether hashes ascend."""
    return bool((hashes[1:] >= hashes[:-1]).all())


def with_gained(known: Hashes, gained: Sequence[Hashes]) -> Hashes:
    """Sorted hashes and new ones in one sorted array, at the cost of copying it."""
    new = np.sort(np.concatenate(gained))
    return np.insert(known, np.searchsorted(known, new), new)


def is_among(hashes: Hashes, known: Hashes) -> npt.NDArray[np.bool_]:
    """Which of some hashes are in a sorted array; quick if they are sorted, too."""
    if not len(known):
        return np.zeros(len(hashes), bool)
    places = np.searchsorted(known, hashes)
    among: npt.NDArray[np.bool_] = known[np.minimum(places, len(known) - 1)] == hashes
    return among
