"""Where to read a table again from: what an older snapshot of it covers."""

from ingestd.ingest.tables.managed_table import ManagedTable
from ingestd.ingest.tables.positions import Vector
from ingestd.ingest.tables.progress import decode_properties, property_names
from ingestd.paimon.table.metadata.snapshot_manager import find_snapshot
from ingestd.paimon.table.metadata.table_state import newest_record


def covered_before(one: ManagedTable, pipeline: str, position: int) -> Vector | None:
    """Return what the newest snapshot covers whose rows are all from before a source position.

    The position is one of the source's log. What the table got beyond that vector may have come
    after it. An empty vector if the table has had no rows from before; None if the snapshots that
    would tell have expired. Raises FormatError if a record is damaged.
    """
    table = one.table
    shared = property_names(pipeline)[0]
    snapshot = newest_record(table, one.state.snapshot, shared)
    while snapshot is not None:
        where = table.paths.snapshot(snapshot.id)
        progress = decode_properties(pipeline, snapshot.properties, where)
        if progress is not None and progress.position <= position:
            return progress.pipeline.end
        if snapshot.id == 1:
            return {}
        below = find_snapshot(table.io, table.paths, snapshot.id - 1)
        snapshot = newest_record(table, below, shared)
    return None
