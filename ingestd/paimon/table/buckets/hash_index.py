"""The hash index: the bucket of each key hash of a partition.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/tableindex/#dynamic-bucket-index

An index file never changes, so its hashes are kept in this process by the file's path: worker
processes that write batch after batch read each file at most once. What memory has no room for is
kept on the local disk, so that a batch costs what it holds, however large the index has become.
"""

import logging
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.errors import FormatError
from ingestd.log import redact
from ingestd.paimon.spec.bucket import hash_columns
from ingestd.paimon.spec.extension import native_columns
from ingestd.paimon.spec.index_manifest import IndexManifestEntry, decode_hash_index
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.index_paths import index_path

UNKNOWN_BUCKET = -1
CACHE_BYTES = 64 << 20
"""Default limit of the bytes of hashes in memory."""
MAPPED_BYTES = 1 << 30
"""Bytes of hashes that a process keeps on its local disk besides."""
MAPPED_FILES = 400
"""Files that these may be: each takes one of the process's file descriptors."""
_LEAST_MAPPED = 64 << 10
"""Below this many bytes an index file is read again just as soon."""
Hashes = npt.NDArray[np.int32]
_LOG = logging.getLogger(__name__)


class HashCache:
    """Sorted hashes by path of the index file; the least recently used are evicted.

    What no longer fits into `max_bytes` of memory is kept on the local disk, if it is worth a
    file; of that, too, only so much.
    """

    def __init__(self, max_bytes: int, max_mapped: int = MAPPED_BYTES) -> None:
        self._memory = _Kept(max_bytes)
        self._mapped = _Kept(max_mapped, MAPPED_FILES)
        self._lock = threading.Lock()

    def get(self, path: str) -> Hashes | None:
        """Return the hashes of a file, or None if they are not cached."""
        with self._lock:
            found = self._memory.get(path)
            return self._mapped.get(path) if found is None else found

    def put(self, path: str, hashes: Hashes) -> Hashes:
        """Keep the hashes of a file if there is room for them; they are used as what is returned.

        In memory an array above the limit by itself is not kept.
        """
        known = self.get(path)
        if known is not None:
            return known
        with self._lock:
            spills = hashes.nbytes >= _LEAST_MAPPED and not self._memory.has_room(hashes)
        kept = mapped(hashes) if spills else None
        with self._lock:
            if kept is None:
                self._memory.put(path, hashes)
                return hashes
            self._mapped.put(path, kept)
            return kept

    def limit(self, max_bytes: int) -> None:
        """Set the limit of bytes in memory."""
        with self._lock:
            self._memory.max_bytes = max_bytes
            self._memory.give_up()

    def discard(self, path: str) -> None:
        """Drop the hashes of a file, if they are cached."""
        with self._lock:
            self._memory.discard(path)
            self._mapped.discard(path)

    @property
    def nbytes(self) -> int:
        """Return the bytes of memory used by hashes."""
        return self._memory.nbytes

    @property
    def mapped_bytes(self) -> int:
        """Return the bytes of local disk used by hashes."""
        return self._mapped.nbytes


class _Kept:
    """Arrays by path within bounds; the least recently used are evicted."""

    def __init__(self, max_bytes: int, max_arrays: int | None = None) -> None:
        self.max_bytes = max_bytes
        self.nbytes = 0
        self._max_arrays = max_arrays
        self._arrays: OrderedDict[str, Hashes] = OrderedDict()

    def get(self, path: str) -> Hashes | None:
        found = self._arrays.get(path)
        if found is not None:
            self._arrays.move_to_end(path)
        return found

    def has_room(self, hashes: Hashes) -> bool:
        return self.nbytes + hashes.nbytes <= self.max_bytes

    def put(self, path: str, hashes: Hashes) -> None:
        if path in self._arrays or hashes.nbytes > self.max_bytes:
            return
        self._arrays[path] = hashes
        self.nbytes += hashes.nbytes
        self.give_up()

    def give_up(self) -> None:
        while self.nbytes > self.max_bytes or (
            self._max_arrays is not None and len(self._arrays) > self._max_arrays
        ):
            self.nbytes -= self._arrays.popitem(last=False)[1].nbytes

    def discard(self, path: str) -> None:
        found = self._arrays.pop(path, None)
        if found is not None:
            self.nbytes -= found.nbytes


CACHE = HashCache(CACHE_BYTES)


@dataclass(frozen=True, slots=True)
class PartitionIndex:
    """The hash index of one partition: sorted distinct hashes of each bucket, by bucket."""

    buckets: Mapping[int, Hashes]

    @classmethod
    def load(cls, table: FileStoreTable, entries: Sequence[IndexManifestEntry]) -> "PartitionIndex":
        """Return the index of the HASH entries of one partition.

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
        """Return the bucket of each hash, -1 where it is not known yet."""
        distinct, positions = np.unique(hashes, return_inverse=True)
        return self.lookup_sorted(distinct)[positions]

    def lookup_sorted(self, distinct: Hashes) -> npt.NDArray[np.int32]:
        """Return the bucket of each hash, for sorted hashes."""
        found = np.full(len(distinct), UNKNOWN_BUCKET, np.int32)
        left = np.arange(len(distinct))
        for bucket, known in self.buckets.items():
            among = is_among(distinct, known)
            if among.all():
                found[left] = bucket
                break
            if among.any():
                # A hash is in one bucket, so the others need not be asked for it.
                found[left[among]] = bucket
                left, distinct = left[~among], distinct[~among]
        return found


def load_hashes(table: FileStoreTable, entry: IndexManifestEntry) -> Hashes:
    """Return the sorted hashes of one index file, from the cache if it has them."""
    path = index_path(table, entry)
    known = CACHE.get(path)
    if known is not None:
        return known
    try:
        hashes = decode_hash_index(table.io.read_bytes(path), path)
    except FileNotFoundError as error:
        raise FormatError(
            f"hash index {path} is missing: its snapshot was expired meanwhile, or the table is "
            "damaged, then `ingestd rebuild-index` rebuilds it"
        ) from error
    if len(hashes) != entry.row_count:
        raise FormatError(
            f"hash index {path} holds {len(hashes)} hashes, {entry.row_count} are promised"
        )
    if not is_sorted(hashes):  # ingestd writes them sorted, others need not
        hashes.sort()
    return CACHE.put(path, hashes)


def key_hashes(table: FileStoreTable, rows: pa.Table) -> Hashes:
    """Return the hash of the trimmed primary key of each row.

    Specification: https://paimon.apache.org/docs/1.4/primary-key-table/data-distribution/#dynamic-bucket
    """
    fields = table.schema.key_fields
    columns = [rows.column(field.name) for field in fields]
    return hash_columns(columns, [field.type.not_null() for field in fields])


def is_sorted(hashes: Hashes) -> bool:
    """Return whether hashes are in ascending order."""
    return bool((hashes[1:] >= hashes[:-1]).all())


def with_gained(known: Hashes, gained: Sequence[Hashes]) -> Hashes:
    """Merge sorted hashes and new ones into one sorted array; copies the array."""
    new = np.sort(np.concatenate(gained))
    return np.insert(known, np.searchsorted(known, new), new)


def is_among(hashes: Hashes, known: Hashes) -> npt.NDArray[np.bool_]:
    """Return which hashes are in a sorted array; faster if they are sorted, too."""
    if not len(known):
        return np.zeros(len(hashes), bool)
    native = native_columns()
    if native is not None and is_sorted(hashes):
        return np.frombuffer(native.sorted_among(hashes, known), np.bool_)
    places = np.searchsorted(known, hashes)
    among: npt.NDArray[np.bool_] = known[np.minimum(places, len(known) - 1)] == hashes
    return among


def mapped(hashes: npt.NDArray[np.int32]) -> npt.NDArray[np.int32] | None:
    """Return the hashes as a read-only memory map of a file in `TMPDIR`.

    None if that has no room for them.
    """
    try:
        with tempfile.TemporaryFile(prefix="ingestd-hashes-", buffering=0) as file:
            hashes.tofile(file)
            return np.asarray(np.memmap(file, np.int32, "r", shape=hashes.shape))
    except OSError as error:
        context = {"bytes": hashes.nbytes, "error": redact(str(error))}
        _LOG.warning("hashes_not_mapped", extra={"ctx": context})
        return None
