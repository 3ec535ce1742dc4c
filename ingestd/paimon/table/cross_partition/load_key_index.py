"""Load the key index of a table from its rows, and advance it to later snapshots.

The index is not stored: it is computed from the key columns of all live files at the start, and
afterwards from the files added by later snapshots.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/data-distribution/#cross-partitions-upsert
"""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.paimon.spec.bucket import hash_columns
from ingestd.paimon.spec.data_types import VALUE_KIND, DataField
from ingestd.paimon.spec.key_fingerprints import KeyFingerprints, key_fingerprints
from ingestd.paimon.spec.manifest import FileKind, ManifestEntry
from ingestd.paimon.spec.row_selection import Mask, retractions
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.table.cross_partition.key_index import (
    UNKNOWN,
    BucketDictionary,
    BucketIds,
    KeyIndex,
)
from ingestd.paimon.table.files.data_files import DataFileReader
from ingestd.paimon.table.files.deletion_vectors import DeletionVectors
from ingestd.paimon.table.metadata.file_store_scan import (
    delta_entries,
    live_entries,
    snapshot_manifests,
)
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.read.bucket_read import BucketReader
from ingestd.paimon.table.read.scan_plan import BucketFiles, group_by_bucket
from ingestd.paimon.table.read.table_read import index_entries

_SEEDS = (int.from_bytes(os.urandom(8)), int.from_bytes(os.urandom(8)))
"""Random per process, so that colliding keys cannot be chosen on purpose."""


@dataclass(frozen=True, slots=True)
class KeyShare:
    """The subset of a table's keys that the assigner with the number `assigner` owns.

    `assigners` is the number of all assigners.
    """

    assigner: int
    assigners: int

    def contains(self, hashes: npt.NDArray[np.int32]) -> Mask:
        """Return a mask (n,) of the keys in this subset, given the hashes (n,) of primary keys."""
        marks: Mask = assigners_of_keys(hashes, self.assigners) == self.assigner
        return marks


def assigners_of_keys(hashes: npt.NDArray[np.int32], assigners: int) -> npt.NDArray[np.int64]:
    """Return the id of the assigner of each key, given by its hash; shape (keys,).

    It is the same in every partition.
    """
    return np.abs(np.fmod(hashes.astype(np.int64), assigners))


def primary_key_hashes(table: FileStoreTable, rows: pa.Table) -> npt.NDArray[np.int32]:
    """Return the hash of the whole primary key of each row; shape (rows,)."""
    fields = _key_fields(table)
    return hash_columns([rows.column(f.name) for f in fields], [f.type for f in fields])


def key_prints(table: FileStoreTable, rows: pa.Table) -> KeyFingerprints:
    """Return the fingerprint of the primary key of each row, partition columns included.

    `rows` has the columns of the primary key.
    """
    fields = _key_fields(table)
    return key_fingerprints([rows.column(f.name) for f in fields], [f.type for f in fields], _SEEDS)


def load_index(
    table: FileStoreTable,
    snapshot: Snapshot,
    share: KeyShare,
    max_bytes: int,
    needed: KeyFingerprints,
) -> tuple[KeyIndex, bool]:
    """Return the index of the subset `share` of keys as of a snapshot, and whether it is complete.

    If the index would exceed `max_bytes`, it contains only keys that may be among `needed`: those
    whose fingerprints have an equal first number. Reads the key columns of all live files, one
    section of a bucket at a time. Raises FormatError for a damaged file.
    """
    gathered = _Gathered(max_bytes, needed)
    entries = live_entries(table, snapshot_manifests(table, snapshot))
    vectors = DeletionVectors.of(table, index_entries(table, snapshot))
    reader = BucketReader(table, _key_fields(table), None, DataFileReader(table, vectors))
    for bucket in group_by_bucket(entries):
        number = gathered.dictionary.encode(bucket.partition, bucket.bucket)
        for rows in reader.read(bucket):
            own = share.contains(primary_key_hashes(table, rows))
            gathered.add(key_prints(table, rows).take(own), number)
    return gathered.index(), gathered.is_whole


def advanced_index(
    table: FileStoreTable, snapshot: Snapshot, share: KeyShare, index: KeyIndex
) -> KeyIndex:
    """Return `index`, which is of the snapshot before, with the changes of an APPEND snapshot.

    Rows of the added files add keys of the subset `share`, or give them another bucket; their
    deletions remove keys. New buckets are added to the dictionary, which both indexes share. Raises
    FormatError for a damaged file.
    """
    added = [
        delta_entry
        for delta_entry in delta_entries(table, snapshot)
        if delta_entry.kind == FileKind.ADD
    ]
    retracted_keys: list[tuple[KeyFingerprints, BucketIds]] = []
    kept_keys: list[tuple[KeyFingerprints, BucketIds]] = []
    for bucket, rows in _rows_of(table, added):
        number = index.dictionary.encode(bucket.partition, bucket.bucket)
        own = share.contains(primary_key_hashes(table, rows))
        keys, kinds = key_prints(table, rows).take(own), rows.column(VALUE_KIND).to_numpy()[own]
        retracted = retractions(kinds)
        for prints, marks in ((retracted_keys, retracted), (kept_keys, ~retracted)):
            prints.append((keys.take(marks), np.full(int(marks.sum()), number, np.int32)))
    # A key that left one bucket may have entered another in the same snapshot.
    for keys, bucket_ids in retracted_keys:
        leaves = index.lookup(keys) == bucket_ids
        left = keys.take(leaves)
        index = index.with_changes(left, np.full(len(left), UNKNOWN, np.int32))
    for keys, bucket_ids in kept_keys:
        index = index.with_changes(keys, bucket_ids)
    return index


def _rows_of(
    table: FileStoreTable, added: Sequence[ManifestEntry]
) -> Iterator[tuple[BucketFiles, pa.Table]]:
    reader = BucketReader(table, _key_fields(table), None, DataFileReader(table), kinds=True)
    for bucket in group_by_bucket(added):
        for rows in reader.read(bucket):
            yield bucket, rows


def _key_fields(table: FileStoreTable) -> tuple[DataField, ...]:
    return table.schema.select(table.schema.primary_keys)


class _Gathered:
    """The keys read so far, with bucket ids; above `max_bytes`, only keys that may be needed."""

    def __init__(self, max_bytes: int, needed: KeyFingerprints) -> None:
        self.dictionary = BucketDictionary()
        self.is_whole = True
        self._max_bytes = max_bytes
        self._needed = np.unique(needed.first)
        self._parts: list[tuple[KeyFingerprints, BucketIds]] = []
        self._counts: Counter[int] = Counter()
        self._bytes = 0

    def add(self, keys: KeyFingerprints, bucket_id: int) -> None:
        self._counts[bucket_id] += len(keys)
        self._hold(keys, np.full(len(keys), bucket_id, np.int32))
        if self.is_whole and self._bytes > self._max_bytes:
            self.is_whole, held = False, self._parts
            self._parts, self._bytes = [], 0
            for keys_and_ids in held:
                self._hold(*keys_and_ids)

    def _hold(self, keys: KeyFingerprints, bucket_ids: BucketIds) -> None:
        if not self.is_whole:
            kept = np.isin(keys.first, self._needed)
            keys, bucket_ids = keys.take(kept), bucket_ids[kept]
        self._parts.append((keys, bucket_ids))
        self._bytes += keys.first.nbytes + keys.second.nbytes + bucket_ids.nbytes

    def index(self) -> KeyIndex:
        keys = KeyFingerprints.concat([keys for keys, _ in self._parts])
        none = np.zeros(0, np.int32)
        index = KeyIndex.of(
            self.dictionary, keys, np.concatenate([none, *(p for _, p in self._parts)])
        )
        if self.is_whole:
            return index
        counts = np.array([self._counts[n] for n in range(len(self.dictionary))], np.int64)
        return index.counted(counts)
