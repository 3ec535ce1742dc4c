"""Cache decoded chunks for the second run of a batch that creates or changes tables.

A batch with a new table or column runs twice. The first run writes what it decoded to the folder of
the batch, and the second run reads it instead of fetching and decoding again, if the tables have
the types and the keys that were decoded. The bytes of records are not cached: where they are
needed, the records are fetched again.
"""

import hashlib
import pickle
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ingestd.cdc.base import (
    ChangeBatch,
    ColumnTypes,
    Decoded,
    KnownColumns,
    RecordChunk,
    Texts,
    key_columns,
)


class NotCachedError(Exception):
    """The bytes of a record are needed, but its chunk was cached without them."""


class ChunkKey(NamedTuple):
    """The key of a cached chunk: all properties on which its content depends.

    `start` is the offset at which the previous chunk ended. `images` is whether the chunk was
    decoded with the before images of changes.
    """

    source: str
    topic: str
    partition: int
    start: int
    images: bool


class _EndTexts(Sequence[bytes | None]):
    """The keys or values of a cached chunk, of which only those at some indices are kept.

    The others, and the methods of native sequences, raise NotCachedError.
    """

    def __init__(self, texts: Texts, indices: Iterable[int]) -> None:
        self._size, self._kept = len(texts), {index: texts[index] for index in indices}

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: Any) -> Any:  # noqa: ANN401  (a slice raises the error)
        return self._kept[index % self._size] if index % self._size in self._kept else self.take()

    def take(self, *_: object) -> NoReturn:
        raise NotCachedError

    join = shared_head = take
    lengths = property(take)


@dataclass(frozen=True, slots=True)
class CachedChunk:
    """A decoded chunk without the bytes of its records.

    `known` has, for each of its batches, the types of the table's columns when it was decoded, or
    None if they were unknown. The bytes of the first and last record of each table, from which
    event times are read, and of the last record of the chunk are kept.
    """

    chunk: RecordChunk
    decoded: Decoded
    known: tuple[ColumnTypes | None, ...]

    @classmethod
    def of(cls, chunk: RecordChunk, decoded: Decoded, known: KnownColumns) -> "CachedChunk | None":
        """Return what to cache of a chunk that was decoded with `known`, or None.

        A chunk with headers, rejected records, truncates, or renames or drops of columns is not
        cached.
        """
        events = [event for event in decoded.schema_changes if event.columns]
        if chunk.headers is not None or decoded.rejected or decoded.truncates or events:
            return None
        ends = [batch.offset[[0, -1]] for batch in decoded.batches if len(batch.offset)]
        indices = np.searchsorted(chunk.offsets, np.concatenate([*ends, chunk.offsets[-1:]]))
        keys, values = (_EndTexts(texts, indices.tolist()) for texts in (chunk.keys, chunk.values))
        few = replace(chunk, keys=keys, values=values, sizes=chunk.record_sizes())
        return cls(few, decoded, tuple(known.get(batch.source) for batch in decoded.batches))

    @property
    def size(self) -> int:
        """The size of the decoded columns in memory, in bytes."""
        return sum(batch.columns.get_total_buffer_size() for batch in self.decoded.batches)

    def agrees(self, known: KnownColumns) -> bool:
        """Return whether decoding with other `known` columns gives the same changes."""
        pairs = zip(self.decoded.batches, self.known, strict=True)
        return all(_agrees(batch, before, known.get(batch.source)) for batch, before in pairs)


@dataclass(frozen=True, slots=True)
class ChunkCache:
    """The cached chunks of a batch, one file each in a folder that is removed with the batch."""

    folder: str

    def put(self, key: ChunkKey, cached: CachedChunk) -> None:
        """Cache a chunk, unless its file cannot be written."""
        part = Path(self.folder, uuid.uuid4().hex)
        try:
            with part.open("xb") as file:
                pickle.dump(cached, file, pickle.HIGHEST_PROTOCOL)
            part.rename(self._path(key))  # a file of this name is complete
        except OSError:
            part.unlink(missing_ok=True)

    def get(self, key: ChunkKey, known: KnownColumns) -> tuple[RecordChunk, Decoded] | None:
        """Return a cached chunk and its decoded changes, or None if the chunk must be decoded.

        It must be decoded if it is not cached, or if its changes may differ with the columns in
        `known`.
        """
        try:
            with self._path(key).open("rb") as file:
                cached: CachedChunk = pickle.load(file)  # noqa: S301  (a task of the batch wrote it)
        except OSError:
            return None
        return (cached.chunk, cached.decoded) if cached.agrees(known) else None

    def _path(self, key: ChunkKey) -> Path:
        return Path(self.folder, hashlib.sha256(repr(key).encode()).hexdigest())


def _agrees(batch: ChangeBatch, before: ColumnTypes | None, now: ColumnTypes | None) -> bool:
    """Return whether a batch decoded with the columns `before` is the same with the columns `now`.

    None stands for a table that does not exist. The table may have got columns, whose types must be
    those of the batch. It may also have got columns that the batch lacks, unless its updates omit
    columns.
    """
    if now == before:
        return True
    if now is None:
        return False
    keys, known = (batch.primary_keys, {}) if before is None else (key_columns(before), before)
    if {*keys} != {*key_columns(now)} or any(now.get(name) != known[name] for name in known):
        return False
    gained = {name: now[name].as_nullable() for name in now if name not in known}
    lacking = gained.keys() - batch.types.keys()
    if lacking and (batch.partial or lacking & batch.unavailable.keys()):
        return False
    return all(batch.types.get(name, gained[name]) == gained[name] for name in gained)
