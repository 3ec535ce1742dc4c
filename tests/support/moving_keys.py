"""Batches written to tables whose keys move between partitions, as a write task does it.

batch = Batch(table)
batch.write([{"id": 1, "day": "a"}])      # files that no one sees yet
batch.commit()
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from ingestd.paimon.spec.binary_row import serialize_row
from ingestd.paimon.table.commit.table_commit import CommitResult, commit
from ingestd.paimon.table.compact.table_compact import compact_table
from ingestd.paimon.table.cross_partition.assigner import CrossPartitionAssigner
from ingestd.paimon.table.cross_partition.load_key_index import KeyShare
from ingestd.paimon.table.metadata.file_store_scan import live_entries
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.table_state import TableState, load_state
from ingestd.paimon.table.read.bucket_read import BucketReader
from ingestd.paimon.table.read.scan_plan import group_by_bucket
from ingestd.paimon.table.write.commit_message import CommitMessage, ManifestCommittable
from ingestd.paimon.table.write.table_write import (
    AssignedRows,
    data_file_names,
    write_assigned,
)
from tests.support.native_tables import NOW_MS, USER, rows_table, split_by

WHOLE = KeyShare(0, 1)
Rows = Sequence[Mapping[str, Any]]


@dataclass
class Batch:
    """One batch on the newest snapshot of a table, with a single assigner."""

    table: FileStoreTable
    state: TableState = field(init=False)
    messages: tuple[CommitMessage, ...] = ()

    def __post_init__(self) -> None:
        self.state = load_state(self.table)

    def assign(self, rows: Rows) -> AssignedRows:
        """Rows in arrival order, assigned."""
        return self._assigned(rows)[1]

    def write(self, rows: Rows) -> "Batch":
        """Rows in arrival order as files that are not committed."""
        assigner, assigned = self._assigned(rows)
        self.messages = tuple(write_assigned(self.table, assigned, data_file_names(self.table)))
        assigner.wrote([file.file_name for message in self.messages for file in message.new_files])
        return self

    def commit(self, user: str = USER) -> CommitResult:
        """Make the files visible."""
        number = (self.state.snapshot.id if self.state.snapshot else 0) + 1
        committable = ManifestCommittable(number, self.messages)
        return commit(self.table, user, committable, state=self.state, now_ms=NOW_MS)

    def _assigned(self, rows: Rows) -> tuple[CrossPartitionAssigner, AssignedRows]:
        table, snapshot = self.table, self.state.snapshot
        whole = rows_table(table.schema, rows, self.state.max_sequence_number + 1)
        numbered = whole.append_column("_at", pa.array(np.arange(whole.num_rows)))
        codes, partitions = np.zeros(whole.num_rows, np.int64), list[bytes]()
        for values, part in split_by(numbered, table.schema.partition_keys):
            codes[part.column("_at").to_numpy()] = len(partitions)
            partitions.append(serialize_row(table.partition_types, values))
        assigner = CrossPartitionAssigner(table, snapshot.id if snapshot else None, WHOLE)
        return assigner, assigner.assign(whole, codes, partitions)


TAKEN_BACK: list[dict[str, Any]] = [
    {"day": "a", "id": 1, "n": 1},
    {"day": "a", "id": 1, "n": 1, "_kind": 3},
]
"""Rows of an aggregation: a row that loses all cells outside the key, also `day`."""


def taken_back(table: FileStoreTable) -> None:
    """Write TAKEN_BACK and compact: the file has no partition for its row."""
    Batch(table).write(TAKEN_BACK).commit()
    compact_table(table, now_ms=NOW_MS, full=True)


def load_buckets(table: FileStoreTable) -> dict[Any, list[tuple[Any, int]]]:
    """Where each key's live rows are: (partition value, bucket), by the first key column."""
    found: dict[Any, list[tuple[Any, int]]] = {}
    state = load_state(table)
    reader = BucketReader(table, table.schema.select(table.schema.primary_keys))
    for bucket in group_by_bucket(live_entries(table, state.manifests)):
        (partition,) = table.partition_values(bucket.partition)
        for rows in reader.read(bucket):
            for key in rows.column(0).to_pylist():
                found.setdefault(key, []).append((partition, bucket.bucket))
    return found
