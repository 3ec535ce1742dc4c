"""Read the changes of snapshots: each change by itself, as streaming readers do, or merged by key.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/changelog-producer/#changelog-producer

Without a changelog producer the changes are the rows of the new files of each APPEND snapshot, as
they were written; compactions and overwrites are left out. With a changelog producer, they are the
rows of the changelog files of any snapshot. If the table keeps changes for longer than snapshots,
its changelog directory has a copy of each expired snapshot.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.errors import UnsupportedError
from ingestd.paimon.casts.evolution import evolve
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.data_types import VALUE_KIND, DataField, DataType, RowKind
from ingestd.paimon.spec.manifest import FileKind, ManifestEntry
from ingestd.paimon.spec.options import refuse_unsupported
from ingestd.paimon.spec.snapshot import CommitKind, Snapshot
from ingestd.paimon.table.files.data_files import SYSTEM_FIELDS, read_data_file
from ingestd.paimon.table.metadata.file_store_scan import changelog_entries, delta_entries
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.index_paths import partition_directory
from ingestd.paimon.table.metadata.long_lived_changelogs import first_change_id
from ingestd.paimon.table.metadata.snapshot_manager import (
    find_changelog,
    find_snapshot,
    latest_snapshot_id,
    requested_snapshot,
)
from ingestd.paimon.table.read.scan_plan import plan_changed
from ingestd.paimon.table.read.table_read import TableReader

CHANGE_FIELDS = (
    DataField(-1, "_snapshot", DataType("BIGINT", nullable=False)),
    DataField(-2, "rowkind", DataType("STRING", nullable=False)),
)
"""The columns of a changelog that precede those of the table."""


def read_changelog(
    table: FileStoreTable, from_id: int | None = None, to_id: int | None = None
) -> pa.Table:
    """Return the changes of the snapshots from `from_id` to `to_id` (inclusive) as one table.

    `from_id` None stands for the oldest snapshot whose changes are available; `to_id` None, or an
    id after the newest snapshot, for the newest snapshot. The first columns are the snapshot id and
    the kind (+I, -U, +U, -D). Raises ArgumentError if a snapshot has expired without a changelog,
    UnsupportedError for a table that cannot be read correctly, and FormatError for a file that is
    missing or damaged.
    """
    parts = list(iter_changelog(table, from_id, to_id))
    return pa.concat_tables(parts) if parts else evolve(pa.table({}), (), change_fields(table))


def iter_changelog(
    table: FileStoreTable, from_id: int | None = None, to_id: int | None = None
) -> Iterator[pa.Table]:
    """Yield the changes of the snapshots from `from_id` to `to_id` (inclusive), file by file.

    `from_id` None stands for the oldest snapshot whose changes are available; `to_id` None, or an
    id after the newest snapshot, for the newest snapshot. Columns are `change_fields`: the snapshot
    id, the kind (+I, -U, +U, -D), and the columns of the table. The order is by snapshot, partition
    and bucket, then as written. Raises ArgumentError if a snapshot has expired without a changelog,
    UnsupportedError for a table that cannot be read correctly, and FormatError for a file that is
    missing or damaged.
    """
    _refuse_changes(table)
    newest = latest_snapshot_id(table.io, table.paths) or 0
    last = newest if to_id is None else min(to_id, newest)
    first = first_change_id(table) if from_id is None else from_id
    for snapshot_id in range(first or 1, last + 1):
        snapshot = _changes_of(table, snapshot_id)
        entries = [entry for entry in _entries(table, snapshot) if entry.kind == FileKind.ADD]
        texts = {entry.partition: partition_directory(table, entry.partition) for entry in entries}
        entries.sort(key=lambda entry: (texts[entry.partition], entry.bucket))
        for entry in entries:
            yield _changes(table, snapshot_id, entry)


def iter_added_rows(table: FileStoreTable, from_id: int, to_id: int) -> Iterator[pa.Table]:
    """Yield the rows that the snapshots from `from_id` to `to_id` (inclusive) added (+I, +U).

    They have the columns of the table and are not merged: each row is yielded as it was written.
    Raises ArgumentError if a snapshot has expired without a changelog, UnsupportedError for a table
    that cannot be read correctly, and FormatError for a file that is missing or damaged.
    """
    added = pa.array([RowKind.INSERT.symbol, RowKind.UPDATE_AFTER.symbol])
    for rows in iter_changelog(table, from_id, to_id):
        kept = rows.filter(pc.is_in(rows.column(CHANGE_FIELDS[1].name), value_set=added))
        yield kept.drop_columns([field.name for field in CHANGE_FIELDS])


def iter_changed(reader: TableReader, first_id: int, last_id: int | None) -> Iterator[pa.Table]:
    """Yield the rows added by the APPEND snapshots from `first_id` to `last_id`, merged by key.

    The range includes `last_id`; None, or an id after the newest snapshot, stands for the newest
    snapshot. The rows of the range are merged with each other, not with older rows. `reader`
    selects the rows and columns. Raises ArgumentError if a snapshot has expired, UnsupportedError
    for a table that cannot be read correctly, and FormatError for a file that is missing or
    damaged.
    """
    table = reader.table
    _refuse_changes(table)
    newest = latest_snapshot_id(table.io, table.paths) or 0
    last = newest if last_id is None else min(last_id, newest)
    entries = []
    for snapshot_id in range(first_id, last + 1):
        snapshot = requested_snapshot(table.io, table.paths, snapshot_id)
        if snapshot.commit_kind == CommitKind.APPEND:
            entries += [e for e in delta_entries(table, snapshot) if e.kind == FileKind.ADD]
    yield from reader.read_units(plan_changed(table, entries, reader.predicate).units)


def change_fields(table: FileStoreTable) -> tuple[DataField, ...]:
    """Return the fields of a changelog: snapshot id, row kind, then the fields of the table."""
    return (*CHANGE_FIELDS, *table.schema.fields)


def _refuse_changes(table: FileStoreTable) -> None:
    """Raise UnsupportedError if the changes of a table cannot be read."""
    refuse_unsupported(table.schema, for_write=False)
    if honoured.DATA_EVOLUTION.of(table.schema.options):
        raise UnsupportedError(
            f"table {table.name}: its changes cannot be read, because 'data-evolution.enabled' "
            "is set: a new file may have columns of rows that are there already; read snapshots"
        )


def _changes_of(table: FileStoreTable, snapshot_id: int) -> Snapshot:
    """Return a snapshot, or its long-lived changelog if it has expired.

    Raises ArgumentError if neither exists.
    """
    snapshot = find_snapshot(table.io, table.paths, snapshot_id)
    if snapshot is None:
        snapshot = find_changelog(table.io, table.paths, snapshot_id)
    # The snapshot may expire, or its changelog, between these requests: the last raises an error.
    return snapshot or requested_snapshot(table.io, table.paths, snapshot_id)


def _entries(table: FileStoreTable, snapshot: Snapshot) -> list[ManifestEntry]:
    if table.options.changelog_producer != "none":
        return changelog_entries(table, snapshot)
    if snapshot.commit_kind != CommitKind.APPEND:
        return []
    return delta_entries(table, snapshot)


def _changes(table: FileStoreTable, snapshot_id: int, entry: ManifestEntry) -> pa.Table:
    fields = table.schema.fields
    keyed = bool(table.schema.primary_keys)
    wanted = (*fields, *SYSTEM_FIELDS) if keyed else fields
    rows = read_data_file(table, entry.partition, entry.bucket, entry.file, wanted)
    symbols = pa.array([kind.symbol for kind in RowKind])
    kinds = rows.column(VALUE_KIND).to_numpy() if keyed else np.zeros(rows.num_rows, np.int8)
    columns = {
        "_snapshot": pa.array(np.full(rows.num_rows, snapshot_id, np.int64)),
        "rowkind": symbols.take(pa.array(kinds)),
        **{field.name: rows.column(field.name) for field in fields},
    }
    return pa.table(columns)
