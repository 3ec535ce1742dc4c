"""The hash index: the bucket of each key hash of a partition.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/tableindex/#dynamic-bucket-index

Index files are immutable, so their hashes are cached in this process by path: worker processes,
which write batch after batch, read a file again only after its eviction. Hashes that exceed the
memory limit are cached on the local disk, so that the cost of a batch depends on its own size and
not on the size of the index.
"""

import logging
import tempfile
import threading
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.errors import FormatError
from ingestd.log import redact
from ingestd.paimon.spec.bucket import hash_columns
from ingestd.paimon.spec.extension import native_columns
from ingestd.paimon.spec.index_manifest import (
    HASH_INDEX,
    IndexManifestEntry,
    decode_hash_index,
    encode_hash_index,
)
from ingestd.paimon.spec.manifest import FileKind
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.index_paths import index_path, new_index_path

UNKNOWN_BUCKET = -1
HASH_CACHE_BYTES = 64 << 20
"""Default limit in bytes of the hashes cached in memory."""
MAPPED_BYTES = 1 << 30
"""Maximum bytes of hashes that a process caches on its local disk in addition."""
MAPPED_FILES = 400
"""Maximum number of files of cached hashes: each uses a file descriptor of the process."""
_LEAST_MAPPED = 64 << 10
"""An index file below this size in bytes is read again instead of being cached on disk."""
Hashes = npt.NDArray[np.int32]
_LOG = logging.getLogger(__name__)


class HashCache:
    """A cache of sorted key hashes by path of the index file; evicts the least recently used.

    Memory holds at most `max_bytes` of hashes. Further hashes are cached on the local disk if their
    index file is large enough, at most `max_mapped` bytes. `lookups` counts the lookups of
    `load_hashes`, by "hit" and "miss".
    """

    def __init__(self, max_bytes: int, max_mapped: int = MAPPED_BYTES) -> None:
        self.lookups: Counter[str] = Counter()
        self._memory = _LruArrays(max_bytes)
        self._mapped = _LruArrays(max_mapped, MAPPED_FILES)
        self._lock = threading.Lock()

    def get(self, path: str) -> Hashes | None:
        """Return the hashes of a file, or None if they are not cached."""
        with self._lock:
            cached = self._memory.get(path)
            return self._mapped.get(path) if cached is None else cached

    def put(self, path: str, hashes: Hashes) -> Hashes:
        """Cache the sorted hashes of an index file, evicting others if necessary.

        Returns the array to use from now on: the cached array, or `hashes` itself. An array larger
        than the limit is not cached in memory.
        """
        known = self.get(path)
        if known is not None:
            return known
        with self._lock:
            spills = hashes.nbytes >= _LEAST_MAPPED and not self._memory.has_room(hashes)
        kept = memory_mapped(hashes) if spills else None
        with self._lock:
            if kept is None:
                self._memory.put(path, hashes)
                return hashes
            self._mapped.put(path, kept)
            return kept

    def limit(self, max_bytes: int) -> None:
        """Set the limit in bytes of the hashes in memory; evict hashes until it is not exceeded."""
        with self._lock:
            self._memory.max_bytes = max_bytes
            self._memory.evict()

    def discard(self, path: str) -> None:
        """Drop the hashes of a file, if they are cached."""
        with self._lock:
            self._memory.discard(path)
            self._mapped.discard(path)

    @property
    def nbytes(self) -> int:
        """The number of bytes of memory that the cached hashes use."""
        return self._memory.nbytes

    @property
    def mapped_bytes(self) -> int:
        """The number of bytes of the local disk that the cached hashes use."""
        return self._mapped.nbytes


class _LruArrays:
    """Arrays by path, limited in bytes and in number; the least recently used are evicted."""

    def __init__(self, max_bytes: int, max_arrays: int | None = None) -> None:
        self.max_bytes = max_bytes
        self.nbytes = 0
        self._max_arrays = max_arrays
        self._arrays: OrderedDict[str, Hashes] = OrderedDict()

    def get(self, path: str) -> Hashes | None:
        hashes = self._arrays.get(path)
        if hashes is not None:
            self._arrays.move_to_end(path)
        return hashes

    def has_room(self, hashes: Hashes) -> bool:
        return self.nbytes + hashes.nbytes <= self.max_bytes

    def put(self, path: str, hashes: Hashes) -> None:
        if path in self._arrays or hashes.nbytes > self.max_bytes:
            return
        self._arrays[path] = hashes
        self.nbytes += hashes.nbytes
        self.evict()

    def evict(self) -> None:
        while self.nbytes > self.max_bytes or (
            self._max_arrays is not None and len(self._arrays) > self._max_arrays
        ):
            self.nbytes -= self._arrays.popitem(last=False)[1].nbytes

    def discard(self, path: str) -> None:
        cached = self._arrays.pop(path, None)
        if cached is not None:
            self.nbytes -= cached.nbytes


HASH_CACHE = HashCache(HASH_CACHE_BYTES)


@dataclass(frozen=True, slots=True)
class PartitionIndex:
    """The hash index of one partition: the sorted distinct hashes of each bucket.

    A hash should be in one bucket only; if it is in several, lookups return the first of them.
    """

    buckets: Mapping[int, Hashes]

    @classmethod
    def load(cls, table: FileStoreTable, entries: Sequence[IndexManifestEntry]) -> "PartitionIndex":
        """Load the index of one partition from its HASH entries.

        Raises FormatError if an index file is missing or damaged, or if a bucket has several index
        files.
        """
        buckets: dict[int, Hashes] = {}
        for entry in sorted(entries, key=lambda entry: entry.bucket):
            if entry.bucket in buckets:
                path = index_path(table, entry)
                raise FormatError(f"hash index {path}: bucket {entry.bucket} has several files")
            buckets[entry.bucket] = load_hashes(table, entry)
        return cls(buckets)

    def lookup(self, hashes: Hashes) -> npt.NDArray[np.int32]:
        """Return the bucket of each hash, -1 for unknown hashes; shape (hashes,)."""
        distinct, positions = np.unique(hashes, return_inverse=True)
        return self.lookup_sorted(distinct)[positions]

    def lookup_sorted(self, distinct: Hashes) -> npt.NDArray[np.int32]:
        """Return the bucket of each hash, -1 for unknown hashes; shape (hashes,).

        `distinct` are sorted hashes without repetitions.
        """
        buckets = np.full(len(distinct), UNKNOWN_BUCKET, np.int32)
        left = np.arange(len(distinct))
        for bucket, known in self.buckets.items():
            among = is_among(distinct, known)
            if among.all():
                buckets[left] = bucket
                break
            if among.any():
                # A hash is in at most one bucket, so found hashes are not searched in others.
                buckets[left[among]] = bucket
                left, distinct = left[~among], distinct[~among]
        return buckets


def load_hashes(table: FileStoreTable, entry: IndexManifestEntry) -> Hashes:
    """Return the sorted hashes of one index file, from the cache if possible.

    Raises FormatError if the file is missing or damaged.
    """
    path = index_path(table, entry)
    known = HASH_CACHE.get(path)
    HASH_CACHE.lookups["miss" if known is None else "hit"] += 1
    if known is not None:
        return known
    try:
        hashes = decode_hash_index(table.io.read_bytes(path), path)
    except FileNotFoundError as error:
        raise FormatError(
            f"hash index {path} is missing: its snapshot has expired meanwhile, or the table is "
            "damaged, then `ingestd rebuild-index` rebuilds it"
        ) from error
    if len(hashes) != entry.row_count:
        raise FormatError(f"hash index {path} has {len(hashes)} hashes, expected {entry.row_count}")
    if not is_sorted(hashes):  # other writers need not sort them
        hashes.sort()
    return HASH_CACHE.put(path, hashes)


def write_hash_index(
    table: FileStoreTable, partition: bytes, bucket: int, name: str, hashes: Hashes
) -> IndexManifestEntry:
    """Write a new index file with all hashes of a bucket; return its index entry.

    `partition` is the serialized row, `name` the name of the new file. Raises StorageError if the
    file cannot be written.
    """
    data = encode_hash_index(hashes)
    table.io.write_new(new_index_path(table, partition, bucket, name), data)
    return IndexManifestEntry(
        FileKind.ADD, partition, bucket, HASH_INDEX, name, len(data), len(hashes)
    )


def key_hashes(table: FileStoreTable, rows: pa.Table) -> Hashes:
    """Return the hash of the trimmed primary key of each row; shape (rows,).

    Specification: https://paimon.apache.org/docs/1.4/primary-key-table/data-distribution/#dynamic-bucket
    """
    fields = table.schema.key_fields
    columns = [rows.column(field.name) for field in fields]
    return hash_columns(columns, [field.type.not_null() for field in fields])


def is_sorted(hashes: Hashes) -> bool:
    """Return whether hashes are in ascending order."""
    return bool((hashes[1:] >= hashes[:-1]).all())


def with_gained(known: Hashes, gained: Sequence[Hashes]) -> Hashes:
    """Return a new sorted array of the sorted hashes `known` and of all arrays in `gained`.

    `gained` has at least one array, in any order; repeated hashes are kept.
    """
    new = np.sort(np.concatenate(gained))
    return np.insert(known, np.searchsorted(known, new), new)


def is_among(hashes: Hashes, known: Hashes) -> npt.NDArray[np.bool_]:
    """Return a mask of the hashes that the sorted array `known` contains; shape (hashes,).

    The result is computed faster if `hashes` are sorted, too.
    """
    if not len(known):
        return np.zeros(len(hashes), bool)
    native = native_columns()
    if native is not None and is_sorted(hashes):
        return np.frombuffer(native.sorted_among(hashes, known), np.bool_)
    positions = np.searchsorted(known, hashes)
    among: npt.NDArray[np.bool_] = known[np.minimum(positions, len(known) - 1)] == hashes
    return among


def memory_mapped(hashes: npt.NDArray[np.int32]) -> npt.NDArray[np.int32] | None:
    """Store hashes in a file in `TMPDIR`, and return a read-only memory map of it.

    Returns None, and logs a warning, if the file cannot be written.
    """
    try:
        with tempfile.TemporaryFile(prefix="ingestd-hashes-", buffering=0) as file:
            hashes.tofile(file)
            return np.asarray(np.memmap(file, np.int32, "r", shape=hashes.shape))
    except OSError as error:
        context = {"bytes": hashes.nbytes, "error": redact(str(error))}
        _LOG.warning("hashes_not_mapped", extra={"ctx": context})
        return None
