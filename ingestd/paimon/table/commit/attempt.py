"""One try to make one snapshot: its manifests, the snapshot itself, the table's state after it.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/snapshot/

Nothing here is visible to readers yet.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ingestd.crash_points import Point, reach
from ingestd.errors import CommitConflictError
from ingestd.paimon.spec.index_manifest import IndexManifestEntry
from ingestd.paimon.spec.manifest import FileKind, ManifestEntry, ManifestFileMeta
from ingestd.paimon.spec.snapshot import (
    BASE_PROPERTY,
    CARRIED_PREFIX,
    CommitKind,
    Snapshot,
    carried_properties,
)
from ingestd.paimon.table.commit.changes import SnapshotChange
from ingestd.paimon.table.commit.conflict import check_files, was_rescaled
from ingestd.paimon.table.commit.conflict_compact import check_expected_files, check_rewrites
from ingestd.paimon.table.commit.manifest_merge import merge_manifests
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.index_entries import IndexEntries, index_key, split_index_entries
from ingestd.paimon.table.metadata.manifest_store import (
    write_index_manifest,
    write_manifest_list,
    write_manifests,
)
from ingestd.paimon.table.metadata.scan import live_entries, partition_test
from ingestd.paimon.table.metadata.table_state import (
    TableState,
    committed_after,
    max_sequence_of,
)
from ingestd.paimon.table.write.commit_message import ManifestCommittable


@dataclass(frozen=True, slots=True)
class CommitRequest:
    """Who commits, what and when: the same for every try.

    `planned_at` is a time of `steady_seconds` before which no file of it was written.
    """

    user: str
    committable: ManifestCommittable
    now_ms: int
    planned_at: float


@dataclass(frozen=True, slots=True)
class Delta:
    """Written manifests of a change; they serve every try that has the same entries."""

    entries: tuple[ManifestEntry, ...]
    manifests: tuple[ManifestFileMeta, ...]
    list_name: str
    list_size: int
    changelog_manifests: tuple[ManifestFileMeta, ...] = ()
    changelog_list_name: str | None = None
    changelog_list_size: int | None = None
    changelog_record_count: int | None = None

    @property
    def written(self) -> list[str]:
        """Names of everything that was written for it."""
        names = [meta.file_name for meta in (*self.manifests, *self.changelog_manifests)]
        lists = (self.list_name, self.changelog_list_name)
        return [*names, *(name for name in lists if name is not None)]

    @property
    def record_count(self) -> int:
        """Rows of added files less rows of deleted files."""
        signs = {FileKind.ADD: 1, FileKind.DELETE: -1}
        return sum(signs[entry.kind] * entry.file.row_count for entry in self.entries)


@dataclass(frozen=True, slots=True)
class Attempt:
    """A snapshot that is ready to be published, and the state that the table has then."""

    snapshot: Snapshot
    state: TableState
    written: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Base:
    """What a snapshot refers to besides its delta."""

    list_name: str
    list_size: int
    index_manifest: str | None
    schema_id: int


def checked_entries(
    table: FileStoreTable, change: SnapshotChange, state: TableState
) -> tuple[ManifestEntry, ...]:
    """All entries of the change on top of `state`; CommitConflictError if they don't fit.

    An OVERWRITE first deletes every live file of the partitions that it replaces. A plain append
    is not checked, so it reads nothing, unless the table's buckets were counted otherwise once.
    """
    if change.kind == CommitKind.ANALYZE:
        return change.entries
    if change.kind == CommitKind.APPEND and not was_rescaled(table):
        return change.entries
    if change.kind == CommitKind.OVERWRITE:
        live = live_entries(table, state.manifests, partition_filter=change.replaced)
        check_rewrites(table, live, change)
        entries = (*(replace(entry, kind=FileKind.DELETE) for entry in live), *change.entries)
        check_files(table, live, entries, same_buckets=False)
        return entries
    live = live_entries(table, state.manifests, partition_filter=change.partitions)
    check_files(table, live, change.entries)
    check_expected_files(table, live, change)
    return change.entries


def write_delta(
    table: FileStoreTable, entries: tuple[ManifestEntry, ...], changelog: Sequence[ManifestEntry]
) -> Delta:
    """Write the delta manifests and, if there are changelog files, theirs."""
    manifests = write_manifests(table, entries)
    name, size = write_manifest_list(table, manifests)
    reach(Point.DELTA_WRITTEN)
    if not changelog:
        return Delta(entries, manifests, name, size)
    changelog_manifests = write_manifests(table, changelog)
    changelog_name, changelog_size = write_manifest_list(table, changelog_manifests)
    reach(Point.CHANGELOG_LISTED)
    return Delta(
        entries=entries,
        manifests=manifests,
        list_name=name,
        list_size=size,
        changelog_manifests=changelog_manifests,
        changelog_list_name=changelog_name,
        changelog_list_size=changelog_size,
        changelog_record_count=sum(entry.file.row_count for entry in changelog),
    )


def prepare(
    table: FileStoreTable,
    change: SnapshotChange,
    delta: Delta,
    state: TableState,
    origin: CommitRequest,
    schema_id: int,
) -> Attempt:
    """Write the base manifest list and the index manifest; the snapshot on top of `state`."""
    merged = merge_manifests(table, state.manifests)
    list_name, list_size = write_manifest_list(table, merged.manifests)
    reach(Point.BASE_WRITTEN)
    written = [*(meta.file_name for meta in merged.written), list_name]
    index_entries, repeated = _index_after(table, change, state)
    index_manifest = state.snapshot.index_manifest if state.snapshot else None
    if index_entries is not state.index_entries:
        index_manifest = None
        if index_entries or repeated:
            index_manifest = write_index_manifest(table, index_entries, repeated)
            written.append(index_manifest)
            reach(Point.INDEX_MANIFEST_WRITTEN)
            path = table.paths.manifest(index_manifest)
            index_entries = index_entries.written(table.io, path)
    base = _Base(list_name, list_size, index_manifest, schema_id)
    snapshot = _snapshot(change, delta, base, state, origin)
    after = TableState(
        snapshot=snapshot,
        manifests=(*merged.manifests, *delta.manifests),
        index_entries=index_entries,
        max_sequence_number=max_sequence_of(delta.entries, state.max_sequence_number),
        repeated_index_entries=repeated,
        committed=committed_after(state, snapshot),
        carried=carried_properties(snapshot),
    )
    return Attempt(snapshot, after, tuple(written))


def _index_after(
    table: FileStoreTable, change: SnapshotChange, state: TableState
) -> tuple[IndexEntries, tuple[IndexManifestEntry, ...]]:
    if change.kind == CommitKind.OVERWRITE:
        return _index_overwritten(table, change, state)
    if change.removed_index:
        return _index_without(table, change, state)
    if not change.index:
        # The same object, so that the next commit sees at once that nothing changed.
        return state.index_entries, state.repeated_index_entries
    repeated_keys = {index_key(entry) for entry in state.repeated_index_entries}
    for entry in change.index:
        if index_key(entry) in repeated_keys:
            raise CommitConflictError(
                f"table {table.name}: bucket {entry.bucket} has several {entry.index_type} index "
                f"files, so {entry.file_name} cannot take the place of one"
            )
    return state.index_entries.with_changes(change.index), state.repeated_index_entries


def _index_without(
    table: FileStoreTable, change: SnapshotChange, state: TableState
) -> tuple[IndexEntries, tuple[IndexManifestEntry, ...]]:
    """The index files but for those that are gone, and those of the change."""
    before = (*state.index_entries.values(), *state.repeated_index_entries)
    missing = change.removed_index - {entry.file_name for entry in before}
    if missing:
        raise CommitConflictError(
            f"table {table.name}: index file {min(missing)} was replaced by another commit; plan "
            "this change again on the newest snapshot"
        )
    stay = [entry for entry in before if entry.file_name not in change.removed_index]
    by_key, repeated = split_index_entries((*stay, *change.index))
    return IndexEntries(by_key), repeated


def _index_overwritten(
    table: FileStoreTable, change: SnapshotChange, state: TableState
) -> tuple[IndexEntries, tuple[IndexManifestEntry, ...]]:
    """The index files of partitions that stay, and those of the change."""
    goes = partition_test(table, change.replaced)
    before = (*state.index_entries.values(), *state.repeated_index_entries)
    stay = [entry for entry in before if not goes(entry.partition)]
    if len(stay) == len(before) and not change.index:
        return state.index_entries, state.repeated_index_entries
    by_key, repeated = split_index_entries((*stay, *change.index))
    return IndexEntries(by_key), repeated


def _properties(state: TableState, committable: ManifestCommittable) -> dict[str, str]:
    """The carried properties, and over them those of the commit; an empty value drops a name."""
    own = committable.properties
    if any(name.startswith(CARRIED_PREFIX) for name in own):
        below = state.snapshot.delta_manifest_list if state.snapshot else ""
        own = {**own, BASE_PROPERTY: below}
    merged = {**state.carried, **own}
    return {name: value for name, value in merged.items() if value or name == BASE_PROPERTY}


def _snapshot(
    change: SnapshotChange, delta: Delta, base: _Base, state: TableState, origin: CommitRequest
) -> Snapshot:
    committable, previous = origin.committable, state.snapshot
    total = (previous.total_record_count if previous else None) or 0
    inherits = previous is not None and previous.schema_id == base.schema_id
    return Snapshot(
        id=previous.id + 1 if previous else 1,
        schema_id=base.schema_id,
        base_manifest_list=base.list_name,
        base_manifest_list_size=base.list_size,
        delta_manifest_list=delta.list_name,
        delta_manifest_list_size=delta.list_size,
        changelog_manifest_list=delta.changelog_list_name,
        changelog_manifest_list_size=delta.changelog_list_size,
        index_manifest=base.index_manifest,
        commit_user=origin.user,
        commit_identifier=committable.identifier,
        commit_kind=change.kind,
        # Readers look for a time by halving, so it never goes back, whatever clocks do.
        time_millis=max(origin.now_ms, previous.time_millis if previous else 0),
        total_record_count=total + delta.record_count,
        delta_record_count=delta.record_count,
        changelog_record_count=delta.changelog_record_count,
        watermark=_later(committable.watermark, previous.watermark if previous else None),
        statistics=change.statistics or (previous.statistics if previous and inherits else None),
        properties=_properties(state, committable),
        next_row_id=(previous.next_row_id if previous else None) or 0,
    )


def _later(left: int | None, right: int | None) -> int | None:
    known = [watermark for watermark in (left, right) if watermark is not None]
    return max(known, default=None)
