"""Whether the new files of a commit are still there when it lands.

A removal of orphans takes files that are old and that no snapshot names, and a commit that took
long has such files. Where files are on disks they may also be on the disk of another machine.
"""

from collections.abc import Iterator

from ingestd.errors import CommitConflictError
from ingestd.paimon.io.file_io import LocalFileIO
from ingestd.paimon.spec.manifest import FileKind
from ingestd.paimon.spec.snapshot import CommitKind
from ingestd.paimon.table.commit.changes import SnapshotChange
from ingestd.paimon.table.files.data_files import live_path
from ingestd.paimon.table.files.file_index_read import index_file_path
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.index_paths import index_path
from ingestd.paimon.table.metadata.table_state import steady_seconds

LONG_COMMIT_SECONDS = 3 * 3600.0
"""A commit whose files may be older than this looks for each of them."""


def check_own_files(table: FileStoreTable, change: SnapshotChange, planned_at: float) -> None:
    """Look for the files that a change adds, unless they are appended, young and in a shared store.

    Files of a disk cost nothing to look for, and those of a compaction little beside it; its
    process is not asked who leads the pipeline, either. `planned_at` is a time of
    `steady_seconds` before which none of them was written. Raises CommitConflictError if one is
    missing: what wrote it has to write again.
    """
    cheap = isinstance(table.io, LocalFileIO) or change.kind != CommitKind.APPEND
    if not cheap and steady_seconds() - planned_at < LONG_COMMIT_SECONDS:
        return
    for path in _new_paths(table, change):
        if not table.io.exists(path):
            raise CommitConflictError(
                f"table {table.name}: {path} was written for this commit and does not exist: it "
                "was removed (by `ingestd remove-orphans` with a small --older-than), or written "
                "to the disk of another machine; nothing of this commit is visible, write again"
            )


def _new_paths(table: FileStoreTable, change: SnapshotChange) -> Iterator[str]:
    for entry in (*change.entries, *change.changelog):
        if entry.kind == FileKind.ADD:
            place = (table, entry.partition, entry.bucket, entry.file)
            yield live_path(*place)
            yield from (index_file_path(*place, name) for name in entry.file.extra_files)
    for index in change.index:
        yield index_path(table, index)
    if change.statistics is not None:
        yield table.paths.statistics(change.statistics)
