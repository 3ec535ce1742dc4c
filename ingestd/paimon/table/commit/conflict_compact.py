"""Whether a compaction may land: what it relies on beside the files that it replaces.

Specification: https://paimon.apache.org/docs/1.4/concepts/concurrency-control/

Appends of others never disturb a compaction;
another compaction of the same bucket does, even where no file is replaced by both: rows would
get below older ones, or deletion vectors get lost.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from ingestd.errors import CommitConflictError
from ingestd.paimon.spec.index_manifest import DELETION_VECTORS_INDEX
from ingestd.paimon.spec.manifest import FileKind, ManifestEntry
from ingestd.paimon.table.commit.changes import SnapshotChange
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.table_state import TableState

_Bucket = tuple[bytes, int]


def check_expected_files(
    table: FileStoreTable, live: Iterable[ManifestEntry], change: SnapshotChange
) -> None:
    """Refuse a compaction if someone has changed its bucket above level 0 meanwhile."""
    if not change.beside:
        return
    replaced = {entry.identifier for entry in change.entries if entry.kind == FileKind.DELETE}
    found: dict[_Bucket, set[str]] = defaultdict(set)
    for entry in live:
        if entry.file.level > 0 and entry.identifier not in replaced:
            found[entry.partition, entry.bucket].add(entry.file.file_name)
    for place, names in change.beside.items():
        if found[place] != names:
            raise CommitConflictError(
                f"table {table.name}: bucket {place[1]} was compacted by another commit; plan this "
                "compaction again on the newest snapshot"
            )


def check_rewrites(
    table: FileStoreTable, live: Iterable[ManifestEntry], change: SnapshotChange
) -> None:
    """Refuse an overwrite that was made of the rows it replaces if there are others by now."""
    if change.rewrites is None:
        return
    found = {entry.identifier for entry in live}
    if found != change.rewrites:
        raise CommitConflictError(
            f"table {table.name}: another commit has changed {len(found ^ change.rewrites)} files "
            "of what was rewritten; nothing was changed by this commit: stop writing to it, and "
            "call again"
        )


def check_deletion_vectors(
    table: FileStoreTable, planned: TableState, current: TableState, change: SnapshotChange
) -> None:
    """Refuse what replaces files if deletion vectors of its buckets have changed meanwhile."""
    if planned.index_entries is current.index_entries:
        return
    places = {(entry.partition, entry.bucket) for entry in change.entries}
    places |= {(partition, bucket) for partition, bucket, *_ in change.rewrites or ()}
    before, after = _vector_files(planned, places), _vector_files(current, places)
    if before != after:
        raise CommitConflictError(
            f"table {table.name}: another commit has changed deletion vectors of a bucket of this "
            "compaction; plan it again on the newest snapshot"
        )


def _vector_files(state: TableState, places: set[_Bucket]) -> Mapping[_Bucket, frozenset[str]]:
    files: dict[_Bucket, set[str]] = defaultdict(set)
    for entry in (*state.index_entries.values(), *state.repeated_index_entries):
        place = (entry.partition, entry.bucket)
        if entry.index_type == DELETION_VECTORS_INDEX and place in places:
            files[place].add(entry.file_name)
    return {place: frozenset(names) for place, names in files.items()}
