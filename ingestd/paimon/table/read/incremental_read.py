"""Read the rows added between two snapshots: their new files, merged.

Deleted rows are dropped, and a changed row has the values of the last snapshot that changed it. For
every single change, see `changelog_read`.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/snapshot/#snapshot
"""

from collections.abc import Iterator

import pyarrow as pa

from ingestd.paimon.spec.manifest import FileKind
from ingestd.paimon.spec.options import refuse_unsupported
from ingestd.paimon.spec.snapshot import CommitKind
from ingestd.paimon.table.metadata.scan import delta_entries
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot_id, requested_snapshot
from ingestd.paimon.table.read.scan_plan import plan_changed
from ingestd.paimon.table.read.table_read import TableReader


def iter_changed(
    reader: TableReader, first_id: int, last_id: int | None = None
) -> Iterator[pa.Table]:
    """Yield the rows added by the APPEND snapshots from `first_id` to `last_id` (None: the newest).

    Raises ConfigError if a snapshot has expired.
    """
    table = reader.table
    refuse_unsupported(table.schema, for_write=False)
    newest = latest_snapshot_id(table.io, table.paths) or 0
    last = newest if last_id is None else min(last_id, newest)
    entries = []
    for snapshot_id in range(first_id, last + 1):
        snapshot = requested_snapshot(table.io, table.paths, snapshot_id)
        if snapshot.commit_kind == CommitKind.APPEND:
            entries += [e for e in delta_entries(table, snapshot) if e.kind == FileKind.ADD]
    yield from reader.read_units(plan_changed(table, entries, reader.predicate).units)
