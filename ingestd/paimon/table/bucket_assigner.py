"""Which bucket a row is written to, fixed or dynamic. Specification: Bucket; Hash index.

A dynamic assigner owns the buckets whose number modulo the number of assigners is its own id.
It alone puts new keys there, so assigners of one partition never meet.
"""

import uuid
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.errors import UnsupportedError
from ingestd.paimon.io.file_io import FileIO
from ingestd.paimon.spec.bucket import fixed_buckets, hash_columns, mod_buckets
from ingestd.paimon.spec.index_manifest import IndexManifestEntry, encode_hash_index
from ingestd.paimon.spec.manifest import FileKind
from ingestd.paimon.table.file_store_table import FileStoreTable
from ingestd.paimon.table.hash_index import (
    CACHE,
    HASH_INDEX,
    UNKNOWN_BUCKET,
    Hashes,
    PartitionIndex,
    index_path,
    with_gained,
)

MAX_BUCKETS = 32767
"""Highest number of dynamic buckets of a partition if the table sets none."""

Buckets = npt.NDArray[np.int32]
_Places = npt.NDArray[np.int64]

_NO_HASHES = np.zeros(0, np.int32)


def assign_fixed(table: FileStoreTable, rows: pa.Table) -> Buckets:
    """The bucket of each row of a table with a fixed number of them, shape (rows,)."""
    return assign_among(table, rows, table.options.bucket)


def assign_among(table: FileStoreTable, rows: pa.Table, n: int) -> Buckets:
    """The bucket of each row if there were `n` of them."""
    options = table.options
    keys = options.bucket_keys
    columns = [rows.column(key) for key in keys]
    if options.bucket_function == "default":
        types = [table.schema.field(key).type for key in keys]
        return fixed_buckets(hash_columns(columns, types), n)
    if options.bucket_function == "mod" and len(keys) == 1:
        return mod_buckets(columns[0], n)
    raise UnsupportedError(
        f"table {table.name}: 'bucket-function.type' = '{options.bucket_function}' is not "
        f"supported for the bucket key {', '.join(keys)}"
    )


class DynamicBucketAssigner:
    """Gives the keys of one partition their buckets, and new buckets when those are full.

    `partition` is the serialized row; of `entries` those of other partitions are left out.
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
        self._id, self._assigners = assigner_id % assigners, assigners
        ours = [e for e in entries if e.partition == partition and e.index_type == HASH_INDEX]
        self._index = PartitionIndex.load(table.io, table.paths, ours)
        self._files = {entry.bucket: index_path(table.paths, entry) for entry in ours}
        own = {b: len(h) for b, h in self._index.buckets.items() if self._is_own(b)}
        self._counts = dict(sorted(own.items()))
        self._gained: dict[int, list[Hashes]] = {}

    def assign(self, hashes: Hashes) -> Buckets:
        """The bucket of each key hash, shape (rows,); new hashes count in arrival order.

        A hash that is known in any bucket of the partition stays there.
        """
        distinct, first, positions = _distinct(hashes)
        buckets = self._known(distinct)
        new = np.flatnonzero(buckets == UNKNOWN_BUCKET)
        if len(new):
            new = new[np.argsort(first[new], kind="stable")]
            buckets[new] = self._place(distinct[new])
        return buckets[positions]

    def prepare_commit(self, io: FileIO) -> tuple[IndexManifestEntry, ...]:
        """Write a new index file for each bucket that gained hashes; their entries.

        They belong into the snapshot of the rows that brought the hashes.
        """
        buckets = dict(self._index.buckets)
        new_name = _names()
        entries = []
        for bucket, gained in sorted(self._gained.items()):
            hashes = with_gained(buckets.get(bucket, _NO_HASHES), gained)
            entries.append(self._write(io, new_name(), bucket, hashes))
            buckets[bucket] = hashes
        self._index = PartitionIndex(buckets)
        self._gained = {}
        return tuple(entries)

    def _is_own(self, bucket: int) -> bool:
        return bucket % self._assigners == self._id

    def _known(self, distinct: Hashes) -> Buckets:
        buckets = self._index.lookup_sorted(distinct)
        for bucket, arrays in self._gained.items():
            for gained in arrays:
                buckets[np.isin(distinct, gained)] = bucket
        return buckets

    def _place(self, hashes: Hashes) -> Buckets:
        """Fill own buckets in ascending order, then new ones; beyond the limit by the hash."""
        placed = np.empty(len(hashes), np.int32)
        done = 0
        for bucket in self._candidates():
            if done == len(hashes):
                break
            room = self._table.options.dynamic_bucket_target_row_num - self._counts.get(bucket, 0)
            taken = hashes[done : done + room]
            placed[done : done + len(taken)] = bucket
            self._gain(bucket, taken)
            done += len(taken)
        if done < len(hashes):
            placed[done:] = self._spread(hashes[done:])
        return placed

    def _candidates(self) -> Iterator[int]:
        """Own buckets with room, then numbers of new ones as long as there may be more."""
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

    def _gain(self, bucket: int, hashes: Hashes) -> None:
        if not len(hashes):
            return
        self._counts[bucket] = self._counts.get(bucket, 0) + len(hashes)
        self._gained.setdefault(bucket, []).append(hashes)

    def _spread(self, hashes: Hashes) -> Buckets:
        """Every own bucket is full and no new one may be made: share them out evenly."""
        options = self._table.options
        own = np.array(sorted(self._counts), np.int32)
        if options.dynamic_bucket_max_buckets == -1 or not len(own):
            raise UnsupportedError(
                f"table {self._table.name}: no dynamic bucket is left for new keys; raise "
                "'dynamic-bucket.target-row-num', or 'dynamic-bucket.max-buckets' to at least "
                f"the number of assigners ({self._assigners})"
            )
        placed = own[hashes.view(np.uint32) % len(own)]
        for bucket in own.tolist():
            self._gain(bucket, hashes[placed == bucket])
        return placed

    def _write(self, io: FileIO, name: str, bucket: int, hashes: Hashes) -> IndexManifestEntry:
        path, data = self._table.paths.index(name), encode_hash_index(hashes)
        io.write_new(path, data)
        CACHE.put(path, hashes)
        # The next batch asks for this file; its predecessor would only take up room.
        CACHE.discard(self._files.get(bucket, ""))
        self._files[bucket] = path
        return IndexManifestEntry(
            FileKind.ADD, self._partition, bucket, HASH_INDEX, name, len(data), len(hashes)
        )


def _distinct(hashes: Hashes) -> tuple[Hashes, _Places, _Places]:
    """The distinct hashes in order, the place of the first of each, and which one each row has.

    Sorting hash and place as one number costs a third of what `numpy.unique` costs.
    """
    packed = (hashes.astype(np.int64) << 32) | np.arange(len(hashes))
    packed.sort()
    ordered, places = (packed >> 32).astype(np.int32), packed & 0xFFFFFFFF
    starts = np.ones(len(ordered), bool)
    starts[1:] = ordered[1:] != ordered[:-1]
    positions = np.empty(len(hashes), np.int64)
    positions[places] = np.cumsum(starts) - 1
    return ordered[starts], places[starts], positions


def _names() -> Callable[[], str]:
    stem, count = uuid.uuid4(), iter(range(1 << 31))
    return lambda: f"index-{stem}-{next(count)}"
