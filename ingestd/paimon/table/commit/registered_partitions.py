"""Report the partitions that a snapshot added or emptied to the registry of the catalog."""

import logging
from collections.abc import Iterable

from ingestd.errors import StorageError
from ingestd.paimon.spec.manifest import FileKind, ManifestEntry
from ingestd.paimon.spec.paths import MAIN_BRANCH
from ingestd.paimon.spec.snapshot import CommitKind, Snapshot
from ingestd.paimon.table.commit.snapshot_changes import SnapshotChange
from ingestd.paimon.table.metadata.catalog_commit import partition_spec
from ingestd.paimon.table.metadata.file_store_scan import live_files
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable

_LOG = logging.getLogger(__name__)


def register_partitions(
    table: FileStoreTable,
    change: SnapshotChange,
    snapshot: Snapshot,
    entries: Iterable[ManifestEntry],
) -> None:
    """Report the partitions that a published snapshot added or emptied, if a registry lists them.

    `change` is the change that became the snapshot, `entries` are the delta entries of the
    snapshot. Only snapshots of the main branch are reported. While the registry knows no partition,
    as in a new process, all partitions are reported, since another process may have ended before it
    reported its own. An overwrite empties a partition if it deletes files there and adds none,
    unless it rewrites rows (`change.rewrites`). If the catalog does not respond, a warning is
    logged, since the snapshot is published.
    """
    registry = table.partitions
    if registry is None or table.branch != MAIN_BRANCH:
        return
    touched = {FileKind.ADD: set[bytes](), FileKind.DELETE: set[bytes]()}
    for entry in entries:
        touched[entry.kind].add(entry.partition)
    added, emptied = touched[FileKind.ADD], touched[FileKind.DELETE] - touched[FileKind.ADD]
    if change.kind != CommitKind.OVERWRITE or change.rewrites is not None:
        emptied.clear()
    try:
        if registry.is_new:
            added = {entry.partition for entry in live_files(table, snapshot)}
        registry.update(_values(table, added), _values(table, emptied))
    except StorageError as error:
        context = {"table": table.name, "count": len(added | emptied), "error": error.message}
        _LOG.warning("partitions_not_registered", extra={"ctx": context})


def _values(table: FileStoreTable, partitions: set[bytes]) -> list[tuple[str, ...]]:
    return [tuple(partition_spec(table, partition).values()) for partition in partitions]
