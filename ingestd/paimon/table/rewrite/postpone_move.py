"""Move rows of postponed buckets (-2) into real buckets, in one COMPACT snapshot.

A partition keeps its number of buckets; a new partition gets `postpone.default-bucket-num` buckets.
Rows are ordered by the creation time of their files, and within a file by position, regardless of
their sequence numbers.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/data-distribution/#postpone-bucket
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from ingestd.crash_points import CrashPoint, reach
from ingestd.errors import ConfigError
from ingestd.paimon.merge.key_order import positions_by_number
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.spec.data_types import SEQUENCE_NUMBER, VALUE_KIND
from ingestd.paimon.spec.manifest import ManifestEntry, by_partition
from ingestd.paimon.spec.options import BucketMode, bucket_mode, refuse_unsupported
from ingestd.paimon.spec.paths import POSTPONE_BUCKET
from ingestd.paimon.spec.snapshot import BATCH_COMMIT_IDENTIFIER
from ingestd.paimon.table.buckets.bucket_assigner import assign_fixed
from ingestd.paimon.table.commit.table_commit import CommitResult
from ingestd.paimon.table.files.data_files import (
    SYSTEM_FIELDS,
    DataFileReader,
    delete_uncommitted_files,
)
from ingestd.paimon.table.metadata.file_store_scan import PartitionFilter, live_entries
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.table_state import TableState
from ingestd.paimon.table.rewrite.merged_stream import bounded_chunks
from ingestd.paimon.table.rewrite.rewrite_commit import (
    commit_rewrite,
    written_messages,
)
from ingestd.paimon.table.write.commit_message import CommitMessage, ManifestCommittable
from ingestd.paimon.table.write.table_write import data_file_names, write_bucket

MAX_CHUNK_BYTES = 256 << 20
"""Bytes of rows, as columns in memory, that are sorted into buckets at a time."""


def move_postponed(
    table: FileStoreTable,
    commit_user: str,
    *,
    state: TableState,
    now_ms: int,
    partition_filter: PartitionFilter | None = None,
) -> CommitResult:
    """Move the postponed rows of `state` into buckets; the result is `empty` if it has none.

    New files have level 0: they are readable at once, except in tables whose readers skip level 0.
    `commit_user` is the user of the snapshot. `partition_filter` selects partitions (None: all).
    Raises the errors of `postponed_moves` and of `commit`, for example CommitConflictError if
    another process has moved the same rows. The written files are then deleted, unless the outcome
    of the commit is unknown.
    """
    messages = written_messages(table, postponed_moves(table, state, partition_filter))
    reach(CrashPoint.MOVES_WRITTEN)
    committable = ManifestCommittable(BATCH_COMMIT_IDENTIFIER, messages)
    return commit_rewrite(table, committable, state=state, now_ms=now_ms, commit_user=commit_user)


def count_postponed_rows(
    table: FileStoreTable, state: TableState, partition_filter: PartitionFilter | None
) -> int:
    """Return the number of postponed rows of `state`, before they are merged.

    `partition_filter` restricts the partitions (None: all). Raises FormatError if a manifest is
    missing or damaged.
    """
    postponed = live_entries(
        table,
        state.manifests,
        partition_filter=partition_filter,
        buckets=frozenset({POSTPONE_BUCKET}),
    )
    return sum(entry.file.row_count for entry in postponed)


def postponed_moves(
    table: FileStoreTable, state: TableState, partition_filter: PartitionFilter | None
) -> Iterator[CommitMessage]:
    """Write the postponed rows of `state` to files of their buckets; yield a message per bucket.

    The messages contain the new files, and the removed files of postponed buckets. All messages of
    a partition must be in one commit. Yields nothing for tables without postponed buckets.
    `partition_filter` selects partitions (None: all). Raises UnsupportedError for a table that
    cannot be written, FormatError for a damaged file, and ConfigError for an invalid number of
    buckets.
    """
    if bucket_mode(table.schema) is not BucketMode.POSTPONE:
        return
    refuse_unsupported(table.schema, for_write=True)
    live = live_entries(table, state.manifests, partition_filter=partition_filter)
    for partition, entries in by_partition(live).items():
        postponed = [entry.file for entry in entries if entry.bucket == POSTPONE_BUCKET]
        if postponed:
            settled = [entry for entry in entries if entry.bucket >= 0]
            yield from _Move(table, partition, settled).messages(postponed)


def bucket_count(table: FileStoreTable, settled: Iterable[ManifestEntry]) -> int:
    """Return the bucket count of a partition, given its live files in real buckets (`settled`).

    Without such files, returns the option `postpone.default-bucket-num`. Raises ConfigError if the
    option is below 1.
    """
    known = next((entry.total_buckets for entry in settled), None)
    if known is not None:
        return known
    option = honoured.POSTPONE_DEFAULT_BUCKETS
    wanted = option.of(table.schema.options)
    if wanted < 1:
        raise ConfigError(f"option '{option.name}' = '{wanted}' must be above 0")
    return wanted


@dataclass(slots=True)
class _Bucket:
    """A bucket that receives rows: the next sequence number, and the written files."""

    sequence: int
    files: list[DataFileMeta]


class _Move:
    """The move of the postponed rows of one partition."""

    def __init__(
        self, table: FileStoreTable, partition: bytes, settled: Sequence[ManifestEntry]
    ) -> None:
        options = {**table.schema.options, "bucket": str(bucket_count(table, settled))}
        self._table = table.with_schema(replace(table.schema, options=options))
        self._partition = partition
        self._values = table.partition_values(partition)
        self._new_name = data_file_names(self._table)
        self._buckets: dict[int, _Bucket] = {}
        self._reached: dict[int, int] = defaultdict(lambda: -1)
        for entry in settled:
            most = max(self._reached[entry.bucket], entry.file.max_sequence_number)
            self._reached[entry.bucket] = most

    def messages(self, postponed: Sequence[DataFileMeta]) -> Iterator[CommitMessage]:
        files = sorted(postponed, key=lambda file: file.creation_time_ms or 0)
        try:
            for rows in self._chunks(files):
                self._write(rows)
        except BaseException:
            for number, bucket in self._buckets.items():
                delete_uncommitted_files(self._table, self._values, number, bucket.files)
            raise
        yield CommitMessage(
            self._partition, POSTPONE_BUCKET, POSTPONE_BUCKET, compact_before=tuple(files)
        )
        total = self._table.options.bucket
        for number, bucket in sorted(self._buckets.items()):
            new_files = tuple(bucket.files)
            yield CommitMessage(self._partition, number, total, compact_after=new_files)

    def _chunks(self, files: Sequence[DataFileMeta]) -> Iterator[pa.Table]:
        kind = next(field for field in SYSTEM_FIELDS if field.name == VALUE_KIND)
        fields = (kind, *self._table.schema.fields)
        reader, bucket_key = DataFileReader(self._table), (self._partition, POSTPONE_BUCKET)
        yield from bounded_chunks(
            (reader.read(*bucket_key, file, fields) for file in files), MAX_CHUNK_BYTES
        )

    def _write(self, rows: pa.Table) -> None:
        for number, positions in positions_by_number(assign_fixed(self._table, rows)):
            bucket = self._buckets.setdefault(number, _Bucket(self._reached[number] + 1, []))
            numbers = np.arange(bucket.sequence, bucket.sequence + len(positions), dtype=np.int64)
            bucket.sequence += len(positions)
            message = write_bucket(
                self._table,
                self._partition,
                number,
                rows.take(positions).append_column(SEQUENCE_NUMBER, pa.array(numbers)),
                new_name=self._new_name,
            )
            bucket.files.extend(message.new_files)
