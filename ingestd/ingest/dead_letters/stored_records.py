"""Find which rejected records the dead-letter table contains already.

If a table is rolled back, its records are read again, and those that are rejected again have a dead
letter already. The coordinates of dead letters are read only in this case, and only in the range of
offsets of the rejected records.
"""

from collections.abc import Collection, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from ingestd.cdc.base import RejectedRecord
from ingestd.ingest.dead_letters.dead_letter import DeadLetter
from ingestd.paimon.spec.predicate import And, Comparison
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.read.table_read import TableReader

_Record = tuple[int, int | None]
"""The offset and the timestamp of a record: a topic that is created again has other records."""


def without_stored(
    table: FileStoreTable,
    pipelines: Sequence[str],
    other_sources: Collection[str],
    dead_letters: Sequence[DeadLetter],
    stored_until: int,
) -> list[DeadLetter]:
    """Return the dead letters of one topic partition that the dead-letter table does not contain.

    Only records before the offset `stored_until` can have a dead letter in the table. `pipelines`
    are the current and former names of this pipeline; dead letters of other pipelines, which may
    share the table, are ignored. So are those of `other_sources`, the other sources of this
    pipeline, whose clusters may have a topic of the same name. Raises FormatError if the table is
    damaged, and StorageError if the warehouse does not respond.
    """
    old = [one.rejected for one in dead_letters if one.rejected.offset < stored_until]
    stored = _stored(table, pipelines, other_sources, old) if old else frozenset()
    return [one for one in dead_letters if _identity(one.rejected) not in stored]


def _identity(record: RejectedRecord) -> _Record:
    return record.offset, record.timestamp if record.timestamp >= 0 else None


def _stored(
    table: FileStoreTable,
    pipelines: Sequence[str],
    other_sources: Collection[str],
    records: Sequence[RejectedRecord],
) -> frozenset[_Record]:
    """Return the records with dead letters in the range of offsets of some rejected records."""
    snapshot = latest_snapshot(table.io, table.paths)
    if snapshot is None:
        return frozenset()
    offsets = [record.offset for record in records]
    wanted = And(
        (
            Comparison("topic", "=", records[0].topic),
            Comparison("partition", "=", records[0].partition),
            Comparison("offset", ">=", min(offsets)),
            Comparison("offset", "<=", max(offsets)),
        )
    )
    found: set[_Record] = set()
    columns = ("offset", "timestamp", "job", "source")
    others = pa.array(sorted(other_sources), pa.string())
    for found_rows in TableReader(table, columns, wanted).rows(snapshot):
        ours = pc.is_in(found_rows.column("job"), pa.array(pipelines))
        theirs = pc.is_in(found_rows.column("source"), others)
        rows = found_rows.filter(pc.and_not(ours, theirs))
        times = rows.column("timestamp").cast(pa.int64()).to_pylist()
        known = rows.column("offset").to_numpy().tolist()
        found.update(zip(known, times, strict=True))
    return frozenset(found)
