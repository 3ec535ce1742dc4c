"""What older snapshots of a table say of the stream: where to read it again, and from when on."""

from ingestd.ingest.settings.context import Coverage
from ingestd.ingest.tables.progress import TableProgress, decode_properties
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import find_snapshot

_FIRST = 1


def covered_before(
    table: FileStoreTable, newest: Snapshot | None, user: str, position: int
) -> Coverage | None:
    """First offsets that the table got after its newest snapshot without rows behind a position.

    The position is one of the source's log. What the table got later, by snapshots of the commit
    user from there up to `newest`, lies behind these offsets. None where that snapshot, or one
    after it, has expired. FormatError if a record in a snapshot is damaged.
    """
    starts: dict[str, dict[str, dict[int, int]]] = {}
    snapshot = newest
    while snapshot is not None:
        record = _record(table, snapshot, user)
        if record is not None and record.position <= position:
            return starts
        for source, topics in (record.sources if record else {}).items():
            for topic, one in topics.items():
                known = starts.setdefault(source, {}).setdefault(topic, {})
                known.update({partition: span.start for partition, span in one.spans.items()})
        if snapshot.id == _FIRST:
            return starts
        snapshot = find_snapshot(table.io, table.paths, snapshot.id - 1)
    return None


def _record(table: FileStoreTable, snapshot: Snapshot, user: str) -> TableProgress | None:
    if snapshot.commit_user != user:
        return None
    return decode_properties(snapshot.properties, table.paths.snapshot(snapshot.id))
