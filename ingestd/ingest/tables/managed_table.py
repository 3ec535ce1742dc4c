"""The state of one table on the driver, now or before a position, as read from its snapshots."""

from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from ingestd.errors import FormatError, ProgressLostError
from ingestd.ingest.settings.context import CoveredOffsets, TableContext, TruncatePoint
from ingestd.ingest.tables.log_positions import Vector
from ingestd.ingest.tables.progress import (
    PipelineProgress,
    TableProgress,
    decode_properties,
    property_names,
)
from ingestd.ingest.values.source_points import NO_POINT, SourcePoint
from ingestd.paimon.spec.snapshot import (
    BASE_PROPERTY,
    BATCH_COMMIT_IDENTIFIER,
    OVERWRITTEN_PROPERTY,
    Snapshot,
)
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import find_snapshot, is_newest
from ingestd.paimon.table.metadata.table_state import (
    TableState,
    load_state,
    newest_record,
    refresh_state,
)

_THREADS = 8


@dataclass(frozen=True, slots=True)
class EarlierState:
    """A snapshot of a table, and the progress of the pipeline that it contains.

    `snapshot_id` is None for the empty table before its first snapshot. `reached` is the latest
    point of the rows.
    """

    snapshot_id: int | None = None
    reached: SourcePoint = NO_POINT
    progress: PipelineProgress = field(default_factory=PipelineProgress)


def state_before(
    table: FileStoreTable, snapshot: Snapshot | None, pipeline: str, point: SourcePoint
) -> EarlierState | None:
    """Return the newest state of a table without rows that are newer than a point.

    Searches back from `snapshot` for a snapshot with the progress of `pipeline`. If no snapshot
    qualifies, the result is the state of the empty table, and if the required snapshots have
    expired, None. Raises FormatError if a progress record is damaged, and UnsupportedError if
    another version of ingestd wrote it.
    """
    shared = property_names(pipeline)[0]
    snapshot = newest_record(table, snapshot, shared)
    while snapshot is not None:
        where = table.paths.snapshot(snapshot.id)
        progress = decode_properties(pipeline, snapshot.properties, where)
        if progress is not None and not progress.reached.is_after(point):
            return EarlierState(snapshot.id, progress.reached, progress.pipeline)
        if snapshot.id == 1:
            return EarlierState()
        below = find_snapshot(table.io, table.paths, snapshot.id - 1)
        snapshot = newest_record(table, below, shared)
    return None


@dataclass(frozen=True, slots=True)
class ManagedTable:
    """A table: its handle, the state of its newest snapshot, and its covered offsets.

    `progress` is the newest progress record of the pipeline in the table. `covered` may be larger,
    because batches without rows for the table write no record. `properties` are the snapshot
    properties that contain the record, and `record_snapshot` is the id of their snapshot.
    `overwritten_by` are the ids of later snapshots in which other programs replaced rows, or None.
    """

    table: FileStoreTable
    state: TableState
    progress: TableProgress | None = None
    covered: Vector = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    record_snapshot: int = 0
    overwritten_by: str | None = None

    @property
    def is_empty(self) -> bool:
        """Whether the table has no snapshot."""
        return self.state.snapshot is None

    @property
    def is_of_others(self) -> bool:
        """Whether the table has snapshots, but no progress record of the pipeline."""
        return self.progress is None and not self.is_empty

    @property
    def row_count(self) -> int:
        """The number of rows in the files of the newest snapshot; 0 without a snapshot."""
        snapshot = self.state.snapshot
        return (snapshot.total_record_count if snapshot else None) or 0

    @property
    def counts_twice(self) -> bool:
        """Whether a row that is written again would count twice.

        This is so if the table has no primary key, or if it aggregates rows.
        """
        return not self.table.schema.primary_keys or bool(self.table.merge_rules.functions)

    def is_repeated_in(self, snapshot: Snapshot, pipeline: str) -> bool:
        """Return whether a snapshot repeats the newest record, under the name of `pipeline`.

        It does not after a commit of another program, or a rollback.
        """
        named = property_names(pipeline)[0] in self.properties
        return named and self.properties.items() <= snapshot.properties.items()

    @property
    def has_copied_record(self) -> bool:
        """Whether `progress` was written for another branch of the table; False if it is None."""
        return self.progress is not None and self.progress.branch != self.table.branch


def open_table(name: str, table: FileStoreTable, pipelines: Collection[str]) -> ManagedTable:
    """Return a table with its state and its newest progress record.

    `pipelines` are the current name of the pipeline, followed by its former names; the first name
    with a record is used. Raises FormatError if the table or its record is damaged,
    UnsupportedError if another version of ingestd wrote the record, and ProgressLostError if the
    record was committed on a snapshot that was rolled back at the same time.
    """
    state = load_state(table)
    # The newest snapshot with any record has all valid records: each of our commits repeats them.
    snapshot = newest_record(table, state.snapshot, "")
    for pipeline in pipelines if snapshot is not None else ():
        shared, own = property_names(pipeline)
        if snapshot is None or shared not in snapshot.properties:
            continue
        where = table.paths.snapshot(snapshot.id)
        progress = decode_properties(pipeline, snapshot.properties, where)
        if progress is None:
            raise FormatError(f"{where}: the property {own} of its progress record is missing")
        _check_base(name, table, snapshot)
        return ManagedTable(
            table=table,
            state=state,
            progress=progress,
            covered=progress.pipeline.end,
            properties={key: snapshot.properties[key] for key in (shared, own)},
            record_snapshot=snapshot.id,
            overwritten_by=state.carried.get(OVERWRITTEN_PROPERTY),
        )
    return ManagedTable(table, state)


def _check_base(name: str, table: FileStoreTable, snapshot: Snapshot) -> None:
    """Raise ProgressLostError if the base of a snapshot was rolled back while it was published.

    A rollback "as latest" by other programs copies the rows and properties of an older snapshot,
    with the identifier of batch commits. Such a copy is not checked: its record is valid, and its
    base property refers to the base of the older snapshot.
    """
    is_copy = snapshot.commit_identifier == BATCH_COMMIT_IDENTIFIER
    base = None if is_copy else snapshot.properties.get(BASE_PROPERTY)
    below = find_snapshot(table.io, table.paths, snapshot.id - 1) if base else None
    if below is not None and below.delta_manifest_list != base:
        raise ProgressLostError(
            f"table {name}: snapshot {snapshot.id} was committed on a snapshot "
            f"{below.id} that was rolled back at the same time, so its rows and its progress "
            f"record disagree; go back below it with `ingestd rollback WAREHOUSE {name} "
            f"--snapshot {below.id}`, then start again"
        )


def refreshed(tables: Mapping[str, ManagedTable]) -> dict[str, ManagedTable]:
    """Return the tables to which other writers have committed, with their newest state, by name.

    By this state, new rows get sequence numbers above those of the other writers, and old values
    are looked up in a snapshot that exists. Tables without a primary key are left out, and so are
    tables to which another process has written a progress record, because the next commit to these
    fails. Raises CommitConflictError if a table was rolled back, and FormatError if a file of it is
    damaged.
    """
    with ThreadPoolExecutor(_THREADS, "refresh") as pool:
        newest = pool.map(_refreshed, tables.values())
        return {name: one for name, one in zip(tables, newest, strict=True) if one is not None}


def _refreshed(managed: ManagedTable) -> ManagedTable | None:
    table, snapshot = managed.table, managed.state.snapshot
    if not table.schema.primary_keys:
        return None
    if snapshot is not None and is_newest(table.io, table.paths, snapshot.id):
        return None
    state = refresh_state(table, managed.state)
    is_same_record = managed.properties.items() <= state.carried.items()
    return replace(managed, state=state) if is_same_record and state is not managed.state else None


def table_context(
    name: str, managed: ManagedTable, covered: CoveredOffsets, truncate: TruncatePoint | None
) -> TableContext:
    """Return the context of a table for tasks; `truncate` is set if the batch truncates the table.

    `covered` are the covered offsets of the table in the topics of the batch.
    """
    progress = managed.progress
    context = TableContext(
        identifier=name,
        table=managed.table,
        index_entries=managed.state.index_entries,
        sequence_base=managed.state.max_sequence_number + 1,
        assigners=managed.table.options.dynamic_bucket_assigners,
        covered=covered,
        truncate_before=progress.truncated if progress else None,
        source_tables=progress.source_tables if progress else frozenset(),
        reached=progress.reached if progress else NO_POINT,
        snapshot_id=managed.state.snapshot.id if managed.state.snapshot else None,
    )
    return context if truncate is None else context.truncated(truncate)


def covered_before(managed: ManagedTable, pipeline: str, point: SourcePoint) -> Vector | None:
    """Return the offsets covered by the newest snapshot without rows newer than a point.

    `pipeline` is the name of the pipeline. Records from the returned offsets on may be newer.
    Returns an empty vector if every snapshot has newer rows, and None if the required snapshots
    have expired. Raises FormatError if a progress record is damaged, and UnsupportedError if
    another version of ingestd wrote it.
    """
    state = state_before(managed.table, managed.state.snapshot, pipeline, point)
    return None if state is None else state.progress.end
