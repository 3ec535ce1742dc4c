"""Choose the write task of each row: all rows of a bucket, or bucket assigner, get the same task.

Rows of tables with fixed or dynamic buckets are sent with their bucket or key hash, so that it is
computed only once.
"""

import zlib

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.ingest.rows.blobs import BUCKET, HASH
from ingestd.ingest.settings.context import TableContext
from ingestd.paimon.spec.bucket import assigner_of, hash_columns, hash_row
from ingestd.paimon.spec.options import BucketMode, bucket_mode
from ingestd.paimon.table.buckets.bucket_assigner import assign_fixed
from ingestd.paimon.table.buckets.hash_index import key_hashes
from ingestd.paimon.table.cross_partition.load_key_index import (
    assigners_of_keys,
    primary_key_hashes,
)
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable

Slots = npt.NDArray[np.int64]


def assign_slots(
    target: TableContext, rows: pa.Table, slots: int, task_index: int
) -> tuple[pa.Table, Slots]:
    """Assign each row to a slot (0 to slots - 1), the write task that gets it.

    Returns the rows and the slots (n,). The rows of a table with fixed buckets get a column with
    their bucket. The rows of a table with dynamic buckets get a column with their key hash, unless
    keys can move between partitions. Rows of an append table without buckets are assigned to the
    slot of the task that decoded them, `task_index`. All rows of a key in a partition get the same
    slot. If keys can move between partitions, all rows of a key get the same slot.
    """
    mode = bucket_mode(target.table.schema)
    if mode is BucketMode.BUCKET_UNAWARE:
        return rows, np.full(rows.num_rows, task_index % slots, np.int64)
    salt = zlib.crc32(target.identifier.encode())
    if mode is BucketMode.HASH_FIXED:
        of_partitions = salt + partition_hashes(target.table, rows)
        buckets = assign_fixed(target.table, rows)
        return rows.append_column(BUCKET, pa.array(buckets)), (of_partitions + buckets) % slots
    if mode is BucketMode.HASH_DYNAMIC:
        hashes = key_hashes(target.table, rows)
        assigners = assigners_of(target, rows, hashes)
        slot_of = (salt + np.arange(target.assigners)) % slots
        return rows.append_column(HASH, pa.array(hashes)), slot_of[assigners]
    if mode is BucketMode.KEY_DYNAMIC:
        hashes = primary_key_hashes(target.table, rows)
        at = salt + assigners_of_keys(hashes, target.assigners)
        return rows, at % slots
    hashes = key_hashes(target.table, rows)
    return rows, (salt + partition_hashes(target.table, rows) + hashes) % slots


def partition_hashes(table: FileStoreTable, rows: pa.Table) -> npt.NDArray[np.int64]:
    """Return the hash of the partition of each row, or 0 without partition keys; shape (rows,)."""
    if not table.schema.partition_keys:
        return np.zeros(rows.num_rows, np.int64)
    columns = [rows.column(name) for name in table.schema.partition_keys]
    return hash_columns(columns, table.partition_types).astype(np.int64)


def assigners_of(
    target: TableContext, rows: pa.Table, hashes: npt.NDArray[np.int32]
) -> npt.NDArray[np.int64]:
    """Return the number of the bucket assigner of each row in a dynamic-bucket table.

    `hashes` (rows,) are the key hashes; the result has the same shape.
    """
    table, count = target.table, target.assigners
    has_keys = bool(table.schema.partition_keys)
    partitions = partition_hashes(table, rows) if has_keys else hash_row((), ())
    return assigner_of(partitions, hashes, count, count).astype(np.int64)
