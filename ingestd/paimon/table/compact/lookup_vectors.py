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

    `deletions` has the rows deleted before the compaction.
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
        self._place = (partition, bucket)
        names = [dv_range.data_file_name for entry in own for dv_range in entry.dv_ranges or ()]
        self._before = frozenset(names)
        self._removed: set[str] = set()
        self._added: dict[str, list[Positions]] = {}

    def has(self, file_name: str) -> bool:
        """Return whether a data file had deleted rows before the compaction."""
        return file_name in self._before

    def remove(self, file_name: str) -> None:
        """Remove the vector of a deleted data file."""
        self._removed.add(file_name)

    def delete(self, file_name: str, positions: Positions) -> None:
        """Delete rows of a data file."""
        if len(positions):
            self._added.setdefault(file_name, []).append(positions)

    def write(self) -> IndexManifestEntry | None:
        """Return the new index file of the bucket; None if no vector changed."""
        gone = self._removed & self._before
        if not (gone or self._added):
            return None
        vectors: dict[str, Positions] = {}
        for name in sorted((self._before - gone) | set(self._added)):
            known = [self.deletions.deleted_rows(*self._place, name)] if self.has(name) else []
            vectors[name] = np.unique(np.concatenate([*known, *self._added.get(name, [])]))
        return write_deletion_vectors(self._table, *self._place, vectors)
