"""Cache decoded chunks for the tables that are created between two runs of a batch.

A batch with a new table runs twice. The first run writes what it decoded to the folder of the
batch, and the second run reads it instead of fetching and decoding again, if the table has exactly
the types and the key that were decoded. The bytes of records are not cached: where they are needed,
the records are fetched again.
"""

import hashlib
import pickle
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ingestd.cdc.base import Decoded, KnownColumns, RecordChunk, Texts


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
class ChunkCache:
    """The cached chunks of a batch, one file each in a folder that is removed with the batch."""

    folder: str

    def put(self, key: ChunkKey, chunk: RecordChunk, decoded: Decoded) -> bool:
        """Cache a chunk; return whether it is cached.

        It is not cached if it has headers, rejected records, truncates, or renames or drops of
        columns, or if the file cannot be written. The bytes of records are not cached, except of
        the first and last record of each table, from which event times are read, and of the last
        record of the chunk.
        """
        events = [event for event in decoded.schema_changes if event.columns]
        if chunk.headers is not None or decoded.rejected or decoded.truncates or events:
            return False
        ends = [batch.offset[[0, -1]] for batch in decoded.batches if len(batch.offset)]
        indices = np.searchsorted(chunk.offsets, np.concatenate([*ends, chunk.offsets[-1:]]))
        keys, values = (_EndTexts(texts, indices.tolist()) for texts in (chunk.keys, chunk.values))
        part = Path(self.folder, uuid.uuid4().hex)
        few = replace(chunk, keys=keys, values=values, sizes=chunk.record_sizes())
        try:
            with part.open("xb") as file:
                pickle.dump((few, decoded), file, pickle.HIGHEST_PROTOCOL)
            part.rename(self._path(key))  # a file of this name is complete
        except OSError:
            part.unlink(missing_ok=True)
            return False
        return True

    def get(self, key: ChunkKey, known: KnownColumns) -> tuple[RecordChunk, Decoded] | None:
        """Return a cached chunk and its decoded changes, or None if the chunk must be decoded.

        It must be decoded if it is not cached, or if a table in `known` has other columns, types or
        keys than were decoded.
        """
        try:
            with self._path(key).open("rb") as file:
                chunk, decoded = pickle.load(file)  # noqa: S301  (a task of the same batch wrote it)
        except OSError:
            return None
        return (chunk, decoded) if _agree(decoded, known) else None

    def _path(self, key: ChunkKey) -> Path:
        return Path(self.folder, hashlib.sha256(repr(key).encode()).hexdigest())


def _agree(decoded: Decoded, known: KnownColumns) -> bool:
    """Return whether the tables have the columns and keys that were decoded without knowing them.

    A table that is still unknown agrees. A further column of the table does not: some formats mark
    it as omitted in rows that lack it.
    """
    for batch in decoded.batches:
        types = known.get(batch.source)
        keys = {name for name, data_type in (types or {}).items() if not data_type.nullable}
        nullable = {name: data_type.as_nullable() for name, data_type in (types or {}).items()}
        if types is not None and (keys != {*batch.primary_keys} or nullable != batch.types):
            return False
    return True
