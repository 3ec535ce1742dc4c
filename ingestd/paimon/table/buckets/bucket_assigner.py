"""Find the partitions of rows, and assign rows to fixed or dynamic buckets.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/data-distribution/#dynamic-bucket

A dynamic assigner owns the buckets whose number modulo the number of assigners equals its id. Only
the owner adds new keys to a bucket, so the assigners of a partition never conflict.
"""

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.crash_points import CrashPoint, reach
from ingestd.errors import UnsupportedError
from ingestd.paimon.spec.arrow import column_values
from ingestd.paimon.spec.bucket import (
    fixed_buckets,
    hash_columns,
    mod_buckets,
    takes_bucket_keys,
)
from ingestd.paimon.spec.grouping import group_rows
from ingestd.paimon.spec.hive_hash import hive_buckets, hive_hashes
from ingestd.paimon.spec.index_manifest import HASH_INDEX, IndexManifestEntry
from ingestd.paimon.spec.row_selection import Indices
from ingestd.paimon.table.buckets.hash_index import (
    HASH_CACHE,
    UNKNOWN_BUCKET,
    Hashes,
    PartitionIndex,
    with_gained,
    write_hash_index,
)
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.index_paths import index_path

MAX_BUCKETS = 32767
"""Maximum number of dynamic buckets of a partition if the table does not set one."""

Buckets = npt.NDArray[np.int32]
"""Bucket numbers."""
KeyHashes = npt.NDArray[np.uint32] | npt.NDArray[np.uint64]
"""Hashes of keys, as unsigned numbers."""


def partitions_of_rows(
    table: FileStoreTable, rows: pa.Table
) -> tuple[Indices, list[tuple[object, ...]]]:
    """Return the number of each row's partition, from 0, and the values of each partition."""
    keys = table.schema.partition_keys
    groups = group_rows(rows, keys)
    if not keys:
        return groups.codes, [()] * groups.count
    heads = rows.select(list(keys)).take(groups.first)
    return groups.codes, list(zip(*map(column_values, heads.columns), strict=True))


class OwnedBuckets:
    """The buckets of one partition that an assigner owns, with the key count of each.

    An assigner owns the buckets whose number modulo the number of assigners equals its id. `counts`
    has the key counts of all existing buckets of the partition.
    """

    def __init__(
        self, table: FileStoreTable, counts: Mapping[int, int], assigner_id: int, assigners: int
    ) -> None:
        self._table = table
        self._id, self._assigners = assigner_id % assigners, assigners
        own = {bucket: n for bucket, n in counts.items() if bucket % assigners == self._id}
        self._counts = dict(sorted(own.items()))

    def assign(self, keys: KeyHashes) -> Buckets:
        """Assign a bucket to each new key, given by its hash; return the buckets, shape (keys,).

        The key counts of the buckets grow by the assigned keys. Buckets are filled one after the
        other, to `dynamic-bucket.target-row-num` keys each. If all are full and
        `dynamic-bucket.max-buckets` allows no more, the remaining keys are spread over them by
        hash. Raises UnsupportedError if the assigner may create no bucket and owns none, or, with
        an unlimited number of buckets (-1), if all possible buckets are full.
        """
        assigned = np.empty(len(keys), np.int32)
        done = 0
        for bucket in self._candidates():
            if done == len(keys):
                break
            room = self._table.options.dynamic_bucket_target_row_num - self._counts.get(bucket, 0)
            taken = len(keys[done : done + room])
            assigned[done : done + taken] = bucket
            self._gain(bucket, taken)
            done += taken
        if done < len(keys):
            assigned[done:] = self._spread(keys[done:])
        return assigned

    def _candidates(self) -> Iterator[int]:
        """Yield own buckets with free capacity, then numbers of new buckets up to the limit."""
        target = self._table.options.dynamic_bucket_target_row_num
        yield from [bucket for bucket, count in self._counts.items() if count < target]
        limit = self._limit()
        for bucket in range(self._id, limit, self._assigners):
            if self._counts and max(self._counts) >= limit - 1:
                return
            if bucket not in self._counts:
                yield bucket

    def _limit(self) -> int:
        configured = self._table.options.dynamic_bucket_max_buckets
        return MAX_BUCKETS if configured == -1 else configured

    def _gain(self, bucket: int, keys: int) -> None:
        if keys:
            self._counts[bucket] = self._counts.get(bucket, 0) + keys

    def _spread(self, keys: KeyHashes) -> Buckets:
        """Return a full bucket for each key, by its hash modulo the number of own buckets."""
        options = self._table.options
        own = np.array(sorted(self._counts), np.int32)
        if options.dynamic_bucket_max_buckets == -1 or not len(own):
            raise UnsupportedError(
                f"table {self._table.name}: no dynamic bucket is left for new keys; raise "
                "'dynamic-bucket.target-row-num', or 'dynamic-bucket.max-buckets' to at least "
                f"the number of assigners ({self._assigners})"
            )
        assigned = own[keys % len(own)]
        for bucket in own.tolist():
            self._gain(bucket, int(np.count_nonzero(assigned == bucket)))
        return assigned


_NO_HASHES = np.zeros(0, np.int32)


def assign_fixed(table: FileStoreTable, rows: pa.Table) -> Buckets:
    """Return the bucket of each row of a table with fixed buckets; shape (rows,).

    `rows` has the columns of the bucket key. Raises UnsupportedError if the table's bucket function
    does not support the types of the bucket key.
    """
    return assign_among(table, rows, table.options.bucket)


def assign_among(table: FileStoreTable, rows: pa.Table, n: int) -> Buckets:
    """Return the bucket of each row for a bucket count of `n`; shape (rows,).

    `rows` has the columns of the bucket key. Raises UnsupportedError if the table's bucket function
    does not support the types of the bucket key.
    """
    options = table.options
    keys = options.bucket_keys
    columns = [rows.column(key) for key in keys]
    types = [table.schema.field(key).type for key in keys]
    if not takes_bucket_keys(options.bucket_function, types):
        raise UnsupportedError(
            f"table {table.name}: 'bucket-function.type' = '{options.bucket_function}' is not "
            f"supported for the bucket key {', '.join(keys)}"
        )
    if n == 1:
        return np.zeros(rows.num_rows, np.int32)
    if options.bucket_function == "mod":
        return mod_buckets(columns[0], n)
    if options.bucket_function == "hive":
        return hive_buckets(hive_hashes(columns, types), n)
    return fixed_buckets(hash_columns(columns, types), n)


class DynamicBucketAssigner:
    """Assigns the keys of one partition to dynamic buckets, and creates buckets as needed.

    `partition` is the serialized row. `entries` are index entries of the table; those of other
    partitions are ignored. The assigner owns the buckets whose number modulo `assigners` equals
    `assigner_id`. Raises FormatError if an index file is missing or damaged, or if a bucket has
    several index files.
    """

    def __init__(
        self,
        table: FileStoreTable,
        partition: bytes,
        entries: Iterable[IndexManifestEntry],
        assigner_id: int,
        assigners: int,
    ) -> None:
        self._table = table
        self._partition = partition
        ours = [e for e in entries if e.partition == partition and e.index_type == HASH_INDEX]
        self._index = PartitionIndex.load(table, ours)
        self._files = {entry.bucket: index_path(table, entry) for entry in ours}
        counts = {bucket: len(hashes) for bucket, hashes in self._index.buckets.items()}
        self._owned = OwnedBuckets(table, counts, assigner_id, assigners)
        self._gained: dict[int, list[Hashes]] = {}

    def assign(self, hashes: Hashes) -> Buckets:
        """Return the bucket of each key hash, shape (rows,).

        A hash that the index already contains keeps its bucket. Raises UnsupportedError if no
        bucket is left for new hashes.
        """
        distinct, first, positions = _distinct(hashes)
        buckets = self._known(distinct)
        new = np.flatnonzero(buckets == UNKNOWN_BUCKET)
        if len(new):
            new = new[np.argsort(first[new], kind="stable")]
            buckets[new] = self._assign_new(distinct[new])
        return buckets[positions]

    def prepare_commit(self) -> tuple[IndexManifestEntry, ...]:
        """Write a new index file for each bucket with new hashes; return the index entries.

        The entries must be committed in the same snapshot as the rows with the new hashes. Raises
        StorageError if a file cannot be written.
        """
        buckets = dict(self._index.buckets)
        new_name = _names()
        entries = []
        for bucket, gained in sorted(self._gained.items()):
            hashes = with_gained(buckets.get(bucket, _NO_HASHES), gained)
            entry, buckets[bucket] = self._write(new_name(), bucket, hashes)
            entries.append(entry)
        self._index = PartitionIndex(buckets)
        self._gained = {}
        return tuple(entries)

    def _known(self, distinct: Hashes) -> Buckets:
        buckets = self._index.lookup_sorted(distinct)
        for bucket, arrays in self._gained.items():
            for gained in arrays:
                buckets[np.isin(distinct, gained)] = bucket
        return buckets

    def _assign_new(self, hashes: Hashes) -> Buckets:
        assigned = self._owned.assign(hashes.view(np.uint32))
        for bucket in np.unique(assigned).tolist():
            self._gained.setdefault(bucket, []).append(hashes[assigned == bucket])
        return assigned

    def _write(self, name: str, bucket: int, hashes: Hashes) -> tuple[IndexManifestEntry, Hashes]:
        entry = write_hash_index(self._table, self._partition, bucket, name, hashes)
        reach(CrashPoint.INDEX_WRITTEN)
        path = index_path(self._table, entry)
        # The next batch reads this file; the replaced file would only use cache space.
        HASH_CACHE.discard(self._files.get(bucket, ""))
        kept = HASH_CACHE.put(path, hashes)
        self._files[bucket] = path
        return entry, kept


def _distinct(hashes: Hashes) -> tuple[Hashes, Indices, Indices]:
    """Return the distinct hashes in order, the first row of each, and the index of each row's hash.

    Sorting hash and row as one number takes a third of the time of `numpy.unique`.
    """
    packed = (hashes.astype(np.int64) << 32) | np.arange(len(hashes))
    packed.sort()
    ordered, rows = (packed >> 32).astype(np.int32), packed & 0xFFFFFFFF
    starts = np.ones(len(ordered), bool)
    starts[1:] = ordered[1:] != ordered[:-1]
    positions = np.empty(len(hashes), np.int64)
    positions[rows] = np.cumsum(starts) - 1
    return ordered[starts], rows[starts], positions


def _names() -> Callable[[], str]:
    stem, count = uuid.uuid4(), iter(range(1 << 31))
    return lambda: f"index-{stem}-{next(count)}"
