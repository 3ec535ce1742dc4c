"""Replace the content of a table or of partitions in one OVERWRITE snapshot.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/snapshot/#snapshot

No files are deleted: older snapshots keep the old content until they expire. No changelog files are
committed; streaming readers skip such a snapshot by default.
"""

import uuid
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from ingestd.errors import ConfigError
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.binary_row import comparable_key
from ingestd.paimon.spec.compaction_options import num_levels
from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.spec.manifest import BucketKey, FileIdentifier, by_partition
from ingestd.paimon.spec.options import refuse_unsupported
from ingestd.paimon.spec.snapshot import BATCH_COMMIT_IDENTIFIER, Snapshot
from ingestd.paimon.table.commit.table_commit import CommitResult, commit
from ingestd.paimon.table.metadata.file_store_scan import (
    PartitionFilter,
    live_files,
    partition_test,
)
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.partition_spec import PartitionSpec, partition_filter
from ingestd.paimon.table.metadata.table_state import TableState, load_state
from ingestd.paimon.table.write.commit_message import CommitMessage, ManifestCommittable

_ABOUT_NEW_FILES = frozenset(
    option.name
    for option in (
        honoured.DELETION_VECTORS, honoured.CHANGELOG_PRODUCER, honoured.BUCKET_FUNCTION,
        honoured.FORCE_LOOKUP, honoured.INDEX_IN_DATA_DIR,
    )
)  # fmt: skip
"""Options that only apply to new files, so they are not checked when files are only deleted."""


@dataclass(frozen=True, slots=True)
class ReplacedPartition:
    """The data files of one partition that an overwrite would delete: number, rows and bytes.

    `partition` is the serialized row. Rows are counted before they are merged by key.
    """

    partition: bytes
    files: int
    rows: int
    bytes: int


def overwrite(
    table: FileStoreTable,
    commit_user: str,
    committable: ManifestCommittable,
    partition: PartitionSpec | None = None,
    *,
    state: TableState,
    now_ms: int,
) -> CommitResult:
    """Replace the content of a table with the files of a committable.

    By default, in a partitioned table, only partitions with new files are replaced; without new
    files nothing changes. With `dynamic-partition-overwrite`=false the partitions given by
    `partition` (None or empty: the whole table) are replaced. With `overwrite-upgrade` (the
    default), files of a bucket that do not overlap are added to the top level, where they need no
    merge. The other arguments are those of `commit`.

    Raises the errors of `commit`, UnsupportedError for a table that cannot be written, and
    ConfigError for files outside the given partitions.
    """
    refuse_unsupported(table.schema, for_write=True)
    added = {message.partition for message in committable.messages if message.new_files}
    dynamic = honoured.DYNAMIC_OVERWRITE.of(table.schema.options)
    replaced: PartitionFilter | None = None
    if table.schema.partition_keys and dynamic:
        if not added:
            return CommitResult("empty", state.snapshot, state, 0)
        replaced = frozenset(added)
    elif partition:
        replaced = partition_filter(table, [partition])
        _refuse_outside(table, added, replaced)
    upgraded = upgraded_messages(table, committable.messages)
    messages = tuple(replace(message, changelog_files=()) for message in upgraded)
    change = replace(committable, messages=messages, overwrite=True, replaced=replaced)
    return commit(table, commit_user, change, state=state, now_ms=now_ms)


def truncate_table(table: FileStoreTable, *, now_ms: int) -> CommitResult:
    """Delete all rows of a table in one snapshot.

    Raises UnsupportedError for a table that cannot be written, CommitConflictError,
    CommitUnknownError or LockUnavailableError if the commit fails.
    """
    return _take_out(table, None, now_ms)


def drop_partitions(
    table: FileStoreTable,
    partitions: Sequence[PartitionSpec],
    *,
    now_ms: int,
    files: frozenset[FileIdentifier] | None = None,
) -> CommitResult:
    """Delete all rows of the partitions that match at least one spec, in one snapshot.

    A spec has values of some or all partition columns. With `files`, nothing is deleted unless
    these are exactly the live files of the partitions. Raises ConfigError without specs or for a
    spec without columns, UnsupportedError for a table that cannot be written, and
    CommitConflictError, CommitUnknownError or LockUnavailableError if the commit fails.
    """
    if not partitions or not all(partitions):
        raise ConfigError(f"table {table.name}: name at least one partition column and its value")
    return _take_out(table, partition_filter(table, partitions), now_ms, files)


def replaced_partitions(
    table: FileStoreTable, snapshot: Snapshot | None, replaced: PartitionFilter | None
) -> list[ReplacedPartition]:
    """Return the partitions whose live files an overwrite of `replaced` (None: all) would delete.

    The live files are those of `snapshot`; without a snapshot (None), the result is [].
    """
    live = live_files(table, snapshot, partition_filter=replaced)
    return [
        ReplacedPartition(
            partition,
            len(entries),
            sum(entry.file.row_count for entry in entries),
            sum(entry.file.file_size for entry in entries),
        )
        for partition, entries in by_partition(live).items()
    ]


def upgraded_messages(
    table: FileStoreTable, messages: Sequence[CommitMessage]
) -> list[CommitMessage]:
    """Return the messages, with new files moved to the top level if they need no merge.

    The new files of a bucket need no merge if their key ranges do not overlap. All messages are
    unchanged if the table has no primary key, if any bucket is postponed or any file is above level
    0, or if the option `overwrite-upgrade` is false.
    """
    is_enabled = honoured.OVERWRITE_UPGRADE.of(table.schema.options)
    only_level_0 = all(
        message.bucket >= 0 and all(file.level == 0 for file in message.new_files)
        for message in messages
    )
    if not (is_enabled and only_level_0 and table.schema.primary_keys):
        return list(messages)
    by_bucket: dict[BucketKey, list[DataFileMeta]] = defaultdict(list)
    for message in messages:
        by_bucket[message.partition, message.bucket] += message.new_files
    rising = {bucket for bucket, files in by_bucket.items() if not _overlap(table, files)}
    top = num_levels(table.schema.options) - 1
    return [
        _on_level(message, top) if (message.partition, message.bucket) in rising else message
        for message in messages
    ]


def _take_out(
    table: FileStoreTable,
    replaced: PartitionFilter | None,
    now_ms: int,
    files: frozenset[FileIdentifier] | None = None,
) -> CommitResult:
    options = {k: v for k, v in table.schema.options.items() if k not in _ABOUT_NEW_FILES}
    refuse_unsupported(replace(table.schema, options=options), for_write=True)
    committable = ManifestCommittable(
        BATCH_COMMIT_IDENTIFIER, (), overwrite=True, replaced=replaced, rewrites=files
    )
    return commit(table, str(uuid.uuid4()), committable, state=load_state(table), now_ms=now_ms)


def _refuse_outside(
    table: FileStoreTable, partitions: set[bytes], replaced: PartitionFilter
) -> None:
    inside = partition_test(table, replaced)
    for partition in partitions:
        if not inside(partition):
            values = table.partition_values(partition)
            named = dict(zip(table.schema.partition_keys, values, strict=True))
            raise ConfigError(
                f"table {table.name}: rows of partition {named} are not of the partition that is "
                "overwritten; leave them out, or set 'dynamic-partition-overwrite' to true"
            )


def _overlap(table: FileStoreTable, files: Sequence[DataFileMeta]) -> bool:
    types = [table.schema.field(name).type for name in table.schema.trimmed_primary_keys]
    ranges = sorted(
        (comparable_key(types, file.min_key), comparable_key(types, file.max_key)) for file in files
    )
    return any(high >= low for (_, high), (low, _) in pairwise(ranges))


def _on_level(message: CommitMessage, level: int) -> CommitMessage:
    files = tuple(replace(file, level=level) for file in message.new_files)
    return replace(message, new_files=files)
