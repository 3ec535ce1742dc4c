"""A mapping of the index files of a table that is cheap to change, and small to send to a task.

`IndexEntries` consists of the entries of one index manifest, the base, and of the changes since.
The cost of a change depends only on the number of changed entries. Because an index manifest is
immutable, another process receives only the path of the base and the changes, and reads the base
once.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/manifest/#index-manifest
"""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ingestd.errors import FormatError
from ingestd.paimon.io.file_io import FileIO
from ingestd.paimon.spec.index_manifest import (
    IndexManifestEntry,
    decode_index_manifest,
    encode_index_records,
)
from ingestd.paimon.spec.manifest import FileKind

IndexKey = tuple[bytes, int, str]
"""Partition, bucket and index type: the identity of an index file."""

CACHED_ENTRIES = 65_536
"""Maximum number of base entries that a process caches for later tasks.

The base that was read last is cached even if it has more entries.
"""

_FEW = 512
_SHARE = 4


def index_key(entry: IndexManifestEntry) -> IndexKey:
    """Return the key of an index file: partition, bucket and index type.

    A new file with the same key replaces it.
    """
    return entry.partition, entry.bucket, entry.index_type


def split_index_entries(
    entries: Iterable[IndexManifestEntry],
) -> tuple[dict[IndexKey, IndexManifestEntry], tuple[IndexManifestEntry, ...]]:
    """Return the first entry of each index key, by key, and all other entries in order.

    A key consists of partition, bucket and index type (`index_key`).
    """
    by_key: dict[IndexKey, IndexManifestEntry] = {}
    repeated: list[IndexManifestEntry] = []
    for entry in entries:
        key = index_key(entry)
        if key in by_key:
            repeated.append(entry)
        else:
            by_key[key] = entry
    return by_key, tuple(repeated)


class _Base:
    """The entries of one index manifest, grouped and encoded on demand."""

    def __init__(self, entries: Mapping[IndexKey, IndexManifestEntry]) -> None:
        self.entries = entries
        self._by_partition: dict[bytes, list[IndexManifestEntry]] | None = None
        self._records: dict[IndexKey, bytes] | None = None

    def of_partition(self, partition: bytes) -> list[IndexManifestEntry]:
        if self._by_partition is None:
            self._by_partition = {}
            for entry in self.entries.values():
                self._by_partition.setdefault(entry.partition, []).append(entry)
        return self._by_partition.get(partition, [])

    def records(self) -> dict[IndexKey, bytes]:
        if self._records is None:
            self._records = _records(self.entries)
        return self._records

    def over(
        self, changed: Mapping[IndexKey, IndexManifestEntry], records: Mapping[IndexKey, bytes]
    ) -> "_Base":
        new = _Base({**self.entries, **changed})
        new._records = {**self.records(), **records}
        return new


class IndexEntries(Mapping[IndexKey, IndexManifestEntry]):
    """An immutable mapping of index keys to the entries of index files.

    `path` is the index manifest, read by `io`, that has the `entries` (None: they are in no file
    yet). If there is such a file, the mapping is pickled as its path and the changes since, and the
    receiver reads the file on demand. If the file was deleted because its snapshot expired, the
    receiver reads the newest index manifest that the sender knew instead; if that is missing too,
    access raises FormatError.
    """

    def __init__(
        self,
        entries: Mapping[IndexKey, IndexManifestEntry] | None = None,
        *,
        io: FileIO | None = None,
        path: str | None = None,
    ) -> None:
        self._base: _Base | None = _Base(dict(entries or {}))
        self._io = io
        self._path = path
        self._newest = path
        self._changed: dict[IndexKey, IndexManifestEntry] = {}
        self._changed_records: dict[IndexKey, bytes] = {}

    def __getitem__(self, key: IndexKey) -> IndexManifestEntry:
        changed = self._changed.get(key)
        return self._loaded().entries[key] if changed is None else changed

    def __iter__(self) -> Iterator[IndexKey]:
        known = self._loaded().entries
        yield from known
        yield from (key for key in self._changed if key not in known)

    def __len__(self) -> int:
        known = self._loaded().entries
        return len(known) + sum(1 for key in self._changed if key not in known)

    def of_partition(self, partition: bytes) -> list[IndexManifestEntry]:
        """Return the entries of a partition, which is given as a serialized row."""
        known = self._loaded().of_partition(partition)
        if not self._changed:
            return known
        by_key = {index_key(entry): entry for entry in known}
        by_key |= {key: entry for key, entry in self._changed.items() if key[0] == partition}
        return list(by_key.values())

    def with_changes(self, entries: Iterable[IndexManifestEntry]) -> "IndexEntries":
        """Return a copy with these entries added; they replace entries with the same index key."""
        new = {index_key(entry): entry for entry in entries}
        changed = self._copy()
        changed._changed = self._changed | new
        changed._changed_records = self._changed_records | _records(new)
        return changed

    def records(self) -> list[bytes]:
        """Return the encoded record of each entry, as stored in an index manifest."""
        return list({**self._loaded().records(), **self._changed_records}.values())

    def written(self, io: FileIO, path: str) -> "IndexEntries":
        """Return a copy of these entries, after they were written to the index manifest at `path`.

        This manifest becomes the base if no base is stored in a file yet, or if many entries have
        changed since the base.
        """
        settled, base = self._copy(), self._loaded()
        settled._io, settled._newest = io, path
        if self._path is None or len(self._changed) > max(_FEW, len(base.entries) // _SHARE):
            settled._base = base.over(self._changed, self._changed_records)
            settled._path = path
            settled._changed, settled._changed_records = {}, {}
        return settled

    def _copy(self) -> "IndexEntries":
        copy = IndexEntries.__new__(IndexEntries)
        copy.__dict__.update(self.__dict__)
        return copy

    def _loaded(self) -> _Base:
        if self._base is None and self._io is not None:
            self._base = _base_of(self._io, self._path or "", self._newest or "")
        return self._base or _Base({})

    def __reduce__(self) -> tuple[Any, ...]:
        if self._path is None or self._io is None:
            entries = {**self._loaded().entries, **self._changed}
            return _from_entries, (list(map(_plain, entries.values())),)
        changed = list(map(_plain, self._changed.values()))
        return _from_base, (self._io, self._path, self._newest, changed)


def read_index_entries(
    io: FileIO, path: str
) -> tuple[IndexEntries, tuple[IndexManifestEntry, ...]]:
    """Return the entries of an index manifest: the first of each key, by key, and all others.

    A key consists of partition, bucket and index type (`index_key`); the others are in the order of
    the manifest. Raises FormatError if the index manifest is missing or damaged.
    """
    by_key, repeated = split_index_entries(_read(io, path))
    return IndexEntries(by_key, io=io, path=path), repeated


class _BaseCache:
    """A cache of bases by the path of their index manifest; evicts the least recently used base."""

    def __init__(self, max_entries: int) -> None:
        self._max_entries = max_entries
        self._count = 0
        self._bases: OrderedDict[str, _Base] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, io: FileIO, path: str) -> _Base:
        with self._lock:
            known = self._bases.get(path)
            if known is not None:
                self._bases.move_to_end(path)
                return known
        base = _Base(split_index_entries(_read(io, path))[0])
        with self._lock:
            if path not in self._bases:
                self._bases[path] = base
                self._count += len(base.entries)
            while self._count > self._max_entries and len(self._bases) > 1:
                self._count -= len(self._bases.popitem(last=False)[1].entries)
        return base


_BASES = _BaseCache(CACHED_ENTRIES)


def _plain(entry: IndexManifestEntry) -> tuple[Any, ...]:
    """Return the fields of an entry as a tuple, because tuples are pickled ten times as fast."""
    return (
        int(entry.kind),
        entry.partition,
        entry.bucket,
        entry.index_type,
        entry.file_name,
        entry.file_size,
        entry.row_count,
        entry.dv_ranges,
        entry.external_path,
        entry.global_index,
    )


def _by_key(plain: Iterable[tuple[Any, ...]]) -> dict[IndexKey, IndexManifestEntry]:
    entries = (IndexManifestEntry(FileKind(kind), *rest) for kind, *rest in plain)
    return {index_key(entry): entry for entry in entries}


def _from_entries(plain: list[tuple[Any, ...]]) -> IndexEntries:
    return IndexEntries(_by_key(plain))


def _from_base(io: FileIO, path: str, newest: str, plain: list[tuple[Any, ...]]) -> IndexEntries:
    received = IndexEntries(io=io, path=path)
    received._newest = newest
    received._changed = _by_key(plain)
    received._base = None
    return received


def _base_of(io: FileIO, path: str, newest: str) -> _Base:
    try:
        return _BASES.get(io, path)
    except FormatError:
        if newest == path:
            raise
        return _BASES.get(io, newest)


def _records(entries: Mapping[IndexKey, IndexManifestEntry]) -> dict[IndexKey, bytes]:
    return dict(zip(entries, encode_index_records(entries.values()), strict=True))


def _read(io: FileIO, path: str) -> list[IndexManifestEntry]:
    try:
        return decode_index_manifest(io.read_bytes(path), path)
    except FileNotFoundError as error:
        message = f"{path} is missing: its snapshot has expired meanwhile, or the table is damaged"
        raise FormatError(message) from error
