"""Mark partitions as done when their time and an idle time have passed.

With the action `success-file` a file is written, and nothing else is stored: a partition is done if
none of its data files is newer than its success file. After late rows the file is written again,
and also after a later compaction, which creates new data files. With `done-partition` the catalog
lists a further partition, whose last value ends in ".done"; it stays.

Specification: https://paimon.apache.org/docs/1.4/maintenance/manage-partitions/#partition-mark-done
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC

from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.paths import MAIN_BRANCH, POSTPONE_BUCKET
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.table.metadata.catalog_commit import partition_spec
from ingestd.paimon.table.metadata.file_store_scan import live_files
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.index_paths import partition_directory
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.read.scan_plan import hides_level_0
from ingestd.paimon.table.retention.expire_partitions import partition_moment
from ingestd.paimon.table.retention.success_file import (
    SUCCESS_FILE,
    SuccessFile,
    read_success_file,
)

_LOG = logging.getLogger(__name__)
WATERMARK = "watermark"


def mark_done_partitions(
    table: FileStoreTable, options: Mapping[str, str], now_ms: int
) -> tuple[str, ...]:
    """Mark the partitions that are done; return the paths of the success files that were due.

    `options` are the options of the table; none is done unless both `partition.time-interval` and
    `partition.idle-time-to-done` are set. Partitions of other branches than main are not marked:
    their directories are those of the table. `now_ms` is in milliseconds of the epoch. Raises
    FormatError for a damaged success file, StorageError if the catalog does not respond, and
    UnsupportedError if `partition.timestamp-formatter` is not supported.
    """
    if table.branch != MAIN_BRANCH:
        return ()
    actions = honoured.PARTITION_DONE_ACTION.of(options)
    done = dict(_done_partitions(table, options, now_ms))
    marks = tuple(_due_marks(table, done, now_ms)) if "success-file" in actions else ()
    for mark in marks:
        mark.write(table.io)
    if done and "done-partition" in actions:
        _list_as_done(table, done)
    return tuple(mark.path for mark in marks)


def _list_as_done(table: FileStoreTable, done: Iterable[bytes]) -> None:
    if table.partitions is None:
        reason = (
            "'partition.mark-done-action' = 'done-partition' needs the metastore 'hive' and "
            "'metastore.partitioned-table' = 'true'; use 'success-file'"
        )
        context = {"table": table.name, "reason": reason}
        _LOG.warning("partitions_not_marked", extra={"ctx": context})
        return
    table.partitions.mark_done(
        [tuple(partition_spec(table, partition).values()) for partition in done]
    )


def _due_marks(
    table: FileStoreTable, done: Mapping[bytes, int], now_ms: int
) -> Iterator[SuccessFile]:
    for partition, newest_ms in done.items():
        path = f"{table.paths.root}/{partition_directory(table, partition)}{SUCCESS_FILE}"
        known = read_success_file(table.io, path)
        if known is None or known.modified_ms < newest_ms:
            yield SuccessFile(path, known.created_ms if known else now_ms, now_ms)


def _done_partitions(
    table: FileStoreTable, options: Mapping[str, str], now_ms: int
) -> Iterator[tuple[bytes, int]]:
    """Yield the partitions that are done, each with the time of its newest file (ms)."""
    idle_ms = honoured.PARTITION_IDLE_TIME.of(options)
    interval_ms = honoured.PARTITION_INTERVAL.of(options)
    snapshot = latest_snapshot(table.io, table.paths) if table.schema.partition_keys else None
    if idle_ms is None or interval_ms is None or snapshot is None:
        return
    by_watermark = honoured.PARTITION_DONE_MODE.of(options) == WATERMARK
    reached_ms = snapshot.watermark if by_watermark else now_ms
    if reached_ms is None:
        return
    for partition, newest_ms in _newest_files(table, snapshot).items():
        begin = partition_moment(table, partition, options)
        if begin is None:
            continue
        # A partition names no time zone: it is that of this machine, or UTC for watermarks.
        zoned = begin.replace(tzinfo=UTC) if by_watermark else begin
        idle_from_ms = int(zoned.timestamp() * 1000) + interval_ms
        if not by_watermark:
            idle_from_ms = max(idle_from_ms, newest_ms)
        if reached_ms - idle_from_ms > idle_ms:
            yield partition, newest_ms


def _newest_files(table: FileStoreTable, snapshot: Snapshot) -> dict[bytes, int]:
    """Return when the newest file of each partition was created (ms of the epoch).

    Partitions with rows that readers see only after a compaction are left out.
    """
    newest: dict[bytes, int] = {}
    waiting: set[bytes] = set()
    waits_for_level_0 = hides_level_0(table)
    for entry in live_files(table, snapshot):
        if entry.bucket == POSTPONE_BUCKET or (waits_for_level_0 and entry.file.level == 0):
            waiting.add(entry.partition)
        created_ms = entry.file.creation_time_ms or 0
        newest[entry.partition] = max(newest.get(entry.partition, 0), created_ms)
    return {partition: time for partition, time in newest.items() if partition not in waiting}
