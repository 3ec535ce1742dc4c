"""Delete rows of an append table without buckets by rewriting their files.

New files replace the old files in a COMPACT snapshot, so that rows appended at the same time are
kept. The commit is refused if another process has replaced one of the files. Streaming readers skip
such a snapshot. Older snapshots keep the rows until these snapshots expire.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/snapshot/#snapshot
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.errors import ConfigError
from ingestd.paimon.format.base import BatchSize
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.manifest import ManifestEntry
from ingestd.paimon.spec.options import BucketMode, bucket_mode, refuse_unsupported
from ingestd.paimon.spec.snapshot import BATCH_COMMIT_IDENTIFIER, Snapshot
from ingestd.paimon.table.compact.compact_bucket import CompactBucket
from ingestd.paimon.table.compact.rolling_write import RollingWriter
from ingestd.paimon.table.files.data_files import DataFileReader
from ingestd.paimon.table.files.row_tracking import rewritten_files, rewritten_table
from ingestd.paimon.table.metadata.file_store_scan import live_files
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.rewrite.rewrite_commit import (
    commit_rewrite,
    written_messages,
)
from ingestd.paimon.table.write.commit_message import CommitMessage, ManifestCommittable

RowTest = Callable[[pa.Table], npt.NDArray[np.bool_]]
"""Returns a mask of the rows to delete, given rows that have at least the requested columns."""

_BATCH_SIZE = BatchSize(8 << 20)


@dataclass(frozen=True, slots=True)
class Deletion:
    """The numbers of deleted rows and of their files; in a dry run, of rows to delete.

    `snapshot` is the new snapshot (None: nothing was deleted).
    """

    rows: int
    files: int
    snapshot: Snapshot | None = None


def delete_rows(
    table: FileStoreTable,
    is_deleted: RowTest,
    columns: Sequence[str],
    *,
    now_ms: int,
    dry_run: bool = False,
) -> Deletion:
    """Delete the rows that `is_deleted` marks, by their columns `columns`.

    `is_deleted` returns a mask of the rows to delete. It is called with rows that have `columns`
    only and, for files to rewrite, again with all columns. With `dry_run`, nothing is changed.
    Raises ConfigError for a table with keys, buckets or deletion vectors; UnsupportedError for a
    table that cannot be written; CommitConflictError, without deleting anything, if another process
    has replaced a file with such rows; FormatError for a damaged file.
    """
    _refuse(table)
    state = load_state(table)
    reader = DataFileReader(table)
    matching_files: list[tuple[ManifestEntry, int]] = []
    for entry in live_files(table, state.snapshot):
        count = _count(reader, entry, is_deleted, columns)
        if count:
            matching_files.append((entry, count))
    rows = sum(count for _, count in matching_files)
    if dry_run or not rows:
        return Deletion(rows, len(matching_files))
    rewrites = (
        _rewritten(table, entry, is_deleted, keeps=entry.file.row_count > count)
        for entry, count in matching_files
    )
    committable = ManifestCommittable(BATCH_COMMIT_IDENTIFIER, written_messages(table, rewrites))
    result = commit_rewrite(table, committable, state=state, now_ms=now_ms)
    return Deletion(rows, len(matching_files), result.snapshot)


def _refuse(table: FileStoreTable) -> None:
    refuse_unsupported(table.schema, for_write=True)
    vectors = honoured.DELETION_VECTORS.of(table.schema.options)
    if bucket_mode(table.schema) is not BucketMode.BUCKET_UNAWARE or vectors:
        raise ConfigError(
            f"table {table.name}: deleting rows needs an append table with 'bucket'=-1 and without "
            "deletion vectors"
        )


def _count(
    reader: DataFileReader, entry: ManifestEntry, is_deleted: RowTest, columns: Sequence[str]
) -> int:
    fields = reader.table.schema.select(columns)
    parts = reader.batches(entry.partition, entry.bucket, entry.file, fields, _BATCH_SIZE)
    return sum(int(np.count_nonzero(is_deleted(rows))) for _, rows in parts)


def _rewritten(
    table: FileStoreTable,
    entry: ManifestEntry,
    is_deleted: RowTest,
    *,
    keeps: bool,
) -> CommitMessage:
    """Rewrite a file without the rows to delete, and return the commit message.

    Without `keeps`, all rows are to be deleted, and no file is written.
    """
    bucket_key = (entry.partition, entry.bucket)
    gone = CommitMessage(*bucket_key, entry.total_buckets, compact_before=(entry.file,))
    if keeps:
        whole = rewritten_table(table)
        bucket = CompactBucket(whole, *bucket_key, entry.total_buckets, (entry.file,))
        writer = RollingWriter(bucket.target(0), entry.file.min_sequence_number)
        try:
            for _, rows in DataFileReader(whole).batches(
                *bucket_key, entry.file, whole.schema.fields, _BATCH_SIZE
            ):
                writer.add(rows.filter(pa.array(~is_deleted(rows))))
            return replace(gone, compact_after=rewritten_files(table, writer.close()))
        except BaseException:
            writer.abort()
            raise
    return gone
