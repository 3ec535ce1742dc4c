"""Update the deletion vectors of one bucket during a compaction.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/tableindex/#deletion-vectors

A bucket has one index file with all of its vectors, which is rewritten when one of them changes.
"""

from collections.abc import Iterable

import numpy as np

from ingestd.paimon.spec.deletion_vector import Positions
from ingestd.paimon.spec.index_manifest import DELETION_VECTORS_INDEX, IndexManifestEntry
from ingestd.paimon.table.files.deletion_vectors import DeletionVectors, write_deletion_vectors
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable


class BucketVectors:
    """The deletion vectors of a bucket by data file, and their changes by a compaction.

    `deletions` contains the rows deleted before the compaction, `files` the names of their index
    files.
    """

    def __init__(
        self,
        table: FileStoreTable,
        partition: bytes,
        bucket: int,
        entries: Iterable[IndexManifestEntry],
    ) -> None:
        own = [entry for entry in entries if entry.index_type == DELETION_VECTORS_INDEX]
        self.deletions = DeletionVectors.of(table, own)
        self.files = tuple(entry.file_name for entry in own)
        self._table = table
        self._bucket_key = (partition, bucket)
        names = [dv_range.data_file_name for entry in own for dv_range in entry.dv_ranges or ()]
        self._before = frozenset(names)
        self._removed: set[str] = set()
        self._added: dict[str, list[Positions]] = {}

    def has(self, file_name: str) -> bool:
        """Return whether a data file had deleted rows before the compaction."""
        return file_name in self._before

    def remove(self, file_name: str) -> None:
        """Drop the deletion vector of a data file that the compaction removes."""
        self._removed.add(file_name)

    def delete(self, file_name: str, positions: Positions) -> None:
        """Mark the rows at these positions of a data file as deleted."""
        if len(positions):
            self._added.setdefault(file_name, []).append(positions)

    def write(self) -> IndexManifestEntry | None:
        """Write the index file of the bucket and return its entry, or None if nothing changed."""
        gone = self._removed & self._before
        if not (gone or self._added):
            return None
        vectors: dict[str, Positions] = {}
        for name in sorted((self._before - gone) | set(self._added)):
            known = [self.deletions.deleted_rows(*self._bucket_key, name)] if self.has(name) else []
            vectors[name] = np.unique(np.concatenate([*known, *self._added.get(name, [])]))
        return write_deletion_vectors(self._table, *self._bucket_key, vectors)
