"""The newest state of a table without rows from after a position in the log of its source."""

from dataclasses import dataclass, field

from ingestd.ingest.tables.log_positions import UNKNOWN
from ingestd.ingest.tables.progress import PipelineProgress, decode_properties, property_names
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import find_snapshot
from ingestd.paimon.table.metadata.table_state import newest_record


@dataclass(frozen=True, slots=True)
class EarlierState:
    """A snapshot of a table, and the progress of the pipeline that it contains.

    `snapshot_id` is None for the empty table before its first snapshot. `position` is the largest
    source position of the rows, -1 if unknown.
    """

    snapshot_id: int | None = None
    position: int = UNKNOWN
    progress: PipelineProgress = field(default_factory=PipelineProgress)


def state_before(
    table: FileStoreTable, snapshot: Snapshot | None, pipeline: str, position: int
) -> EarlierState | None:
    """Return the newest state at or below `snapshot` without rows from after `position`.

    Returns None if the required snapshots have expired. Raises FormatError if a progress record is
    damaged.
    """
    shared = property_names(pipeline)[0]
    snapshot = newest_record(table, snapshot, shared)
    while snapshot is not None:
        where = table.paths.snapshot(snapshot.id)
        progress = decode_properties(pipeline, snapshot.properties, where)
        if progress is not None and progress.position <= position:
            return EarlierState(snapshot.id, progress.position, progress.pipeline)
        if snapshot.id == 1:
            return EarlierState()
        below = find_snapshot(table.io, table.paths, snapshot.id - 1)
        snapshot = newest_record(table, below, shared)
    return None
