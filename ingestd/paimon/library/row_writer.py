"""Write the rows of a commit to files of their partitions and buckets.

In a table with dynamic buckets, the assignment of buckets to new keys is kept in memory until the
index files are written.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.paimon.merge.row_kinds import without_ignored
from ingestd.paimon.spec.binary_row import serialize_row
from ingestd.paimon.spec.data_types import VALUE_KIND
from ingestd.paimon.spec.options import BucketMode, bucket_mode
from ingestd.paimon.spec.paths import POSTPONE_BUCKET
from ingestd.paimon.table.buckets.bucket_assigner import (
    DynamicBucketAssigner,
    assign_fixed,
    partitions_of_rows,
)
from ingestd.paimon.table.buckets.hash_index import key_hashes
from ingestd.paimon.table.cross_partition.assigner import CrossPartitionAssigner
from ingestd.paimon.table.cross_partition.load_key_index import KeyShare
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.table_state import TableState
from ingestd.paimon.table.write.commit_message import CommitMessage
from ingestd.paimon.table.write.postpone import postponed_table
from ingestd.paimon.table.write.table_write import (
    AssignedRows,
    data_file_names,
    write_assigned,
)

_Numbers = npt.NDArray[np.int64]
_ALL_KEYS = KeyShare(0, 1)


class RowWriter:
    """Writes the rows of one commit to new files of their partitions and buckets.

    Buckets are assigned by the indexes of `state`, the state of the table on which the commit is
    based; with `fresh`, existing keys are ignored, because the commit replaces all rows. The names
    of files in postponed buckets contain `commit_user`.
    """

    def __init__(
        self, table: FileStoreTable, state: TableState, commit_user: str, *, fresh: bool
    ) -> None:
        self._mode = bucket_mode(table.schema)
        waits = self._mode is BucketMode.POSTPONE
        self._table = postponed_table(table, commit_user) if waits else table
        self._snapshot_id = state.snapshot.id if state.snapshot else None
        self._index = [] if fresh else list(state.index_entries.values())
        self._assigners: dict[bytes, DynamicBucketAssigner] = {}
        self._new_name = data_file_names(self._table)

    @property
    def takes_all_at_once(self) -> bool:
        """Whether all rows of a commit must be written in one call of `write`.

        This is true for tables whose keys may move between partitions.
        """
        return self._mode is BucketMode.KEY_DYNAMIC

    def write(self, rows: pa.Table) -> Iterator[CommitMessage]:
        """Write rows to files, and yield the commit message of each bucket that received rows.

        The rows have the columns of the table; for a primary-key table, also the sequence number
        and the row kind. Nothing is written before the result is iterated. Raises ValueError if the
        rows do not fit the table, UnsupportedError for a row kind that the merge engine does not
        support or if no dynamic bucket is left for new keys, and StorageError if the storage fails.
        """
        table = self._table
        if VALUE_KIND in rows.column_names:
            rows = without_ignored(rows, table.merge_rules)  # their keys must not be indexed
        if not rows.num_rows:
            return
        codes, values = partitions_of_rows(table, rows)
        partitions = [serialize_row(table.partition_types, value) for value in values]
        if self._mode is BucketMode.KEY_DYNAMIC:
            assigner = CrossPartitionAssigner(table, self._snapshot_id, _ALL_KEYS)
            assigned = assigner.assign(rows, codes, partitions)
            written = list(write_assigned(table, assigned, self._new_name))
            yield from written
            assigner.wrote([file.file_name for message in written for file in message.new_files])
            return
        buckets = self._buckets(rows, codes, partitions)
        assigned = AssignedRows(rows, codes, partitions, buckets)
        yield from write_assigned(table, assigned, self._new_name)

    def index_files(self) -> Iterator[CommitMessage]:
        """Write an index file for each dynamic bucket with new keys; yield its commit message.

        Call this after all calls of `write`. Nothing is yielded if the table has no hash index.
        """
        for assigner in self._assigners.values():
            for entry in assigner.prepare_commit():
                yield CommitMessage(entry.partition, entry.bucket, -1, new_index_files=(entry,))

    def _buckets(self, rows: pa.Table, codes: _Numbers, partitions: Sequence[bytes]) -> _Numbers:
        if self._mode is BucketMode.POSTPONE:
            return np.full(rows.num_rows, POSTPONE_BUCKET, np.int64)
        if self._mode is BucketMode.HASH_FIXED:
            return assign_fixed(self._table, rows).astype(np.int64)
        buckets: _Numbers = np.zeros(rows.num_rows, np.int64)
        if self._mode is BucketMode.BUCKET_UNAWARE:
            return buckets
        hashes = key_hashes(self._table, rows)
        for number, partition in enumerate(partitions):
            positions = np.flatnonzero(codes == number)
            buckets[positions] = self._assigner(partition).assign(hashes[positions])
        return buckets

    def _assigner(self, partition: bytes) -> DynamicBucketAssigner:
        if partition not in self._assigners:
            self._assigners[partition] = DynamicBucketAssigner(
                self._table, partition, self._index, 0, 1
            )
        return self._assigners[partition]
