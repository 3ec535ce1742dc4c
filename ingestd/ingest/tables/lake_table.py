"""One table of a pipeline as the driver knows it, and how it is read from the table itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ingestd.ingest.settings.context import Coverage, Emptying, TableContext
from ingestd.ingest.tables.mirror import (
    Mirror,
    SnapshotMark,
    TableHistory,
    effective_coverage,
    holds,
)
from ingestd.ingest.tables.progress import TableProgress, decode_properties, encode_properties
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import find_snapshot
from ingestd.paimon.table.metadata.table_state import TableState, load_state, newest_of_user


@dataclass(frozen=True, slots=True)
class LakeTable:
    """One table: its handle, the state of its newest snapshot, and what of the stream it holds.

    `progress` is the record of our newest snapshot, `record` the same as properties; `coverage`
    may be further, because batches without rows for the table leave no record in it.
    """

    table: FileStoreTable
    state: TableState
    progress: TableProgress | None = None
    coverage: Coverage = field(default_factory=dict)
    newest: SnapshotMark | None = None
    record: Mapping[str, str] = field(default_factory=dict)


def open_table(
    name: str, table: FileStoreTable, user: str, mirror: Mirror | None, mirror_path: str
) -> LakeTable:
    """A table with its state, and how much of the stream it holds by its snapshots and the mirror.

    FormatError if the table, or what the mirror (a file at `mirror_path`) repeats, is damaged.
    """
    state = load_state(table)
    newest = newest_of_user(table, state, user)
    mark = mark_of(newest) if newest else None
    history = _history(name, table, state, mark, mirror)
    if newest is not None:
        progress = decode_properties(newest.properties, table.paths.snapshot(newest.id))
    elif mirror is not None and holds(mirror, name, history):
        # Our newest snapshot has expired; the mirror repeats its record.
        progress = decode_properties(mirror.records.get(name, {}), mirror_path)
        mark = mirror.tables[name] if progress else None
    else:
        progress = None
    own = progress.covered if progress else {}
    coverage = effective_coverage(own, mirror, name, history)
    record = encode_properties(progress) if progress else {}
    return LakeTable(table, state, progress, coverage, mark, record)


def _history(
    name: str,
    table: FileStoreTable,
    state: TableState,
    newest: SnapshotMark | None,
    mirror: Mirror | None,
) -> TableHistory:
    marked = mirror.tables.get(name) if mirror else None
    now_there = find_snapshot(table.io, table.paths, marked.snapshot_id) if marked else None
    return TableHistory(
        newest=newest,
        latest_id=state.snapshot.id if state.snapshot else None,
        time_of_marked=now_there.time_millis if now_there else None,
    )


def mark_of(snapshot: Snapshot) -> SnapshotMark:
    """What the mirror keeps of a snapshot."""
    return SnapshotMark(snapshot.id, snapshot.time_millis, snapshot.commit_identifier)


def table_context(name: str, one: LakeTable, emptying: Emptying | None) -> TableContext:
    """What tasks must know of a table, also of one that the batch is emptying."""
    progress = one.progress
    context = TableContext(
        identifier=name,
        table=one.table,
        index_entries=one.state.index_entries,
        sequence_base=one.state.max_sequence_number + 1,
        assigners=one.table.options.dynamic_bucket_assigners,
        covered=one.coverage,
        truncate_before=progress.truncated if progress else None,
        feeds=progress.feeds if progress else frozenset(),
        position_reached=progress.position if progress else -1,
        snapshot_id=one.state.snapshot.id if one.state.snapshot else None,
    )
    return context if emptying is None else context.truncated(emptying)
