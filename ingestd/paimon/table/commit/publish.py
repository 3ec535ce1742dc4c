"""Publishing a snapshot: creating its file first, and being certain of the outcome.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/snapshot/

A snapshot exists when, and only when, its file does. Whoever creates
the file of the next id first has committed; everybody else starts again on top of it.
"""

import logging
from collections.abc import Sequence

from ingestd.errors import CommitUnknownError, StorageError
from ingestd.paimon.spec.document_checks import sealed
from ingestd.paimon.spec.manifest import ManifestEntry
from ingestd.paimon.spec.snapshot import Snapshot, encode_snapshot
from ingestd.paimon.table.commit.retries import Retries
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_commit import partition_changes
from ingestd.paimon.table.metadata.snapshot_manager import find_snapshot
from ingestd.paimon.table.metadata.table_state import is_same_snapshot

_LOG = logging.getLogger(__name__)


def publish(
    table: FileStoreTable,
    snapshot: Snapshot,
    retries: Retries,
    entries: Sequence[ManifestEntry] = (),
) -> bool:
    """Create the snapshot file, or have it created; False if its id is another commit's.

    `entries` are what the snapshot changes, for a server that keeps statistics.

    An error of the storage leaves the outcome open, so the file is read back, and if it is not
    there the very same bytes are tried again. CommitUnknownError when the storage does not
    answer for long: the snapshot may still appear.
    """
    path = table.paths.snapshot(snapshot.id)
    problem: StorageError | None = None
    while True:
        try:
            if _create(table, snapshot, entries):
                return True
            found = find_snapshot(table.io, table.paths, snapshot.id)
        except StorageError as error:
            problem = error
            _LOG.warning("publish_unclear", extra={"ctx": {"path": path, "error": str(error)}})
            found = _read_back(table, snapshot.id)
        if found is not None:
            return is_same_snapshot(found, snapshot)
        if not retries.wait():
            break
    raise CommitUnknownError(
        f"table {table.name}: whether snapshot {snapshot.id} was published is not known, the "
        f"storage does not tell ({problem}); its files stay, try again when the storage answers"
    ) from problem


def _create(table: FileStoreTable, snapshot: Snapshot, entries: Sequence[ManifestEntry]) -> bool:
    server = table.snapshot_commit
    if server is not None:
        return server.commit(table.branch, snapshot, partition_changes(table, entries))
    path = table.paths.snapshot(snapshot.id)
    return table.io.try_write_atomic(path, sealed(encode_snapshot(snapshot)))


def discard(table: FileStoreTable, names: Sequence[str]) -> None:
    """Delete manifests of a try that is known to have lost."""
    for name in names:
        table.io.delete_quietly(table.paths.manifest(name))


def _read_back(table: FileStoreTable, snapshot_id: int) -> Snapshot | None:
    try:
        return find_snapshot(table.io, table.paths, snapshot_id)
    except StorageError:
        return None
