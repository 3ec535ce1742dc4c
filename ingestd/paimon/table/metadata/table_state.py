"""The state of a table that a committer keeps between commits.

A state belongs to one snapshot. `refresh_state` advances it to the newest snapshot by reading only
the changes of other writers.
"""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from ingestd.errors import CommitConflictError, CommitUnknownError, FormatError, StorageError
from ingestd.paimon.spec.index_manifest import IndexManifestEntry
from ingestd.paimon.spec.manifest import FileKind, ManifestEntry, ManifestFileMeta
from ingestd.paimon.spec.snapshot import (
    BATCH_COMMIT_IDENTIFIER,
    CARRIED_OPTION,
    OVERWRITTEN_PROPERTY,
    CommitKind,
    Snapshot,
    carried_properties,
)
from ingestd.paimon.table.metadata.file_store_scan import (
    delta_entries,
    forget_unlisted_manifests,
    live_entries,
    snapshot_manifests,
)
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.index_entries import IndexEntries, read_index_entries
from ingestd.paimon.table.metadata.schema_manager import read_schema
from ingestd.paimon.table.metadata.snapshot_manager import (
    find_snapshot,
    latest_snapshot,
    snapshot_ids,
    snapshots_from_latest,
    write_hints,
)

_LOG = logging.getLogger(__name__)


def steady_seconds() -> float:
    """Return the seconds of a monotonic clock that also runs while the machine is suspended."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


@dataclass(frozen=True, slots=True)
class TableState:
    """The state of a table as of `snapshot` (None: no snapshot yet), as committers need it.

    `manifests` are the manifests of the base and then of the delta manifest list. `index_entries`
    is keyed by (partition, bucket, index type); further entries of the same key, such as deletion
    vectors of append tables, are in `repeated_index_entries`. `max_sequence_number` is at least the
    largest sequence number of every live file, -1 without files. `committed` has the newest
    streaming commit identifier of each known commit user (-1: the user was searched for and not
    found). `carried` are the properties that the next commit copies, from the newest snapshot that
    has such properties. `loaded_at` is the time (of `steady_seconds`) at which this state was
    loaded; files of a commit that is based on this state are written later.
    """

    snapshot: Snapshot | None
    manifests: tuple[ManifestFileMeta, ...] = ()
    index_entries: IndexEntries = field(default_factory=IndexEntries)
    max_sequence_number: int = -1
    repeated_index_entries: tuple[IndexManifestEntry, ...] = ()
    committed: Mapping[str, int] = field(default_factory=dict)
    carried: Mapping[str, str] = field(default_factory=dict)
    loaded_at: float = field(default_factory=steady_seconds, compare=False)

    def index_of(self, partition: bytes) -> list[IndexManifestEntry]:
        """Return all index entries of a partition, which is given as a serialized row."""
        repeated = (
            repeated_index_entry
            for repeated_index_entry in self.repeated_index_entries
            if repeated_index_entry.partition == partition
        )
        return [*self.index_entries.of_partition(partition), *repeated]


def load_state(table: FileStoreTable) -> TableState:
    """Load the state of the newest snapshot.

    Reads all manifests, to find the largest sequence number. Raises FormatError if a manifest is
    missing or damaged, unless the snapshot has expired in the meantime: then a newer snapshot is
    read.
    """
    return _at_newest(table, lambda snapshot: _state_of(table, snapshot))


def refresh_state(table: FileStoreTable, state: TableState) -> TableState:
    """Return the state of the newest snapshot, advanced from `state`.

    If `state` is of the newest snapshot, it is returned itself. Raises CommitConflictError if the
    snapshot of `state` was rolled back: changes planned on it must be planned again. Raises
    FormatError if a manifest is missing or damaged.
    """
    return _at_newest(table, lambda latest: _refreshed(table, state, latest))


def newest_record(table: FileStoreTable, snapshot: Snapshot | None, name: str) -> Snapshot | None:
    """Search back from `snapshot` for the newest snapshot that has the carried property `name`.

    Carried properties, such as progress records, are properties that each commit copies from its
    base. An empty name matches any of them. Returns None if `snapshot` is None, or if no retained
    snapshot has the property.
    """
    for retained in _walk(table, snapshot) if snapshot else ():
        carried = carried_properties(retained)
        if name in carried or (carried and not name):
            return retained
    return None


def is_same_snapshot(left: Snapshot | None, right: Snapshot | None) -> bool:
    """Return whether two snapshots are of the same commit, and do not only have the same id.

    None is equal to None only.
    """
    if left is None or right is None:
        return left is right
    return _identity(left) == _identity(right)


def with_user(table: FileStoreTable, state: TableState, user: str) -> TableState:
    """Return the state with the newest streaming commit identifier of `user` in `committed`.

    The retained snapshots are searched if the identifier is not known yet; it is -1 if none is of
    the user.
    """
    if user in state.committed:
        return state
    snapshot = newest_of_user(table, state, user)
    newest = -1 if snapshot is None else snapshot.commit_identifier
    return replace(state, committed={**state.committed, user: newest})


def newest_of_user(table: FileStoreTable, state: TableState, user: str) -> Snapshot | None:
    """Return the user's newest streaming snapshot, searching back from the snapshot of the state.

    Returns None if no such snapshot is retained.
    """
    snapshot = state.snapshot
    while snapshot is not None and not (snapshot.commit_user == user and _is_streaming(snapshot)):
        snapshot = find_snapshot(table.io, table.paths, snapshot.id - 1)
    return snapshot


def committed_after(state: TableState, snapshot: Snapshot) -> Mapping[str, int]:
    """Return a copy of `state.committed`, updated by `snapshot`, which follows the state."""
    return {**state.committed, **_newest_identifiers([snapshot])}


def max_sequence_of(entries: Iterable[ManifestEntry], floor: int = -1) -> int:
    """Return the largest sequence number of the files in ADD entries, and at least `floor`."""
    added = (e.file.max_sequence_number for e in entries if e.kind == FileKind.ADD)
    return max(floor, max(added, default=floor))


def _at_newest(
    table: FileStoreTable, derive: Callable[[Snapshot | None], TableState]
) -> TableState:
    """Return the state that `derive` returns for the newest snapshot.

    If the snapshot expires while its files are read, `derive` is called again with the snapshot
    that is the newest by then. Raises FormatError if a file of a snapshot that still exists is
    missing or damaged.
    """
    while True:
        snapshot = latest_snapshot(table.io, table.paths)
        try:
            return derive(snapshot)
        except FormatError:
            if snapshot is None or find_snapshot(table.io, table.paths, snapshot.id):
                raise


def _refreshed(table: FileStoreTable, state: TableState, latest: Snapshot | None) -> TableState:
    if is_same_snapshot(latest, state.snapshot):
        return state
    if latest is None or not _continues(table, state.snapshot, latest):
        raise CommitConflictError(
            f"table {table.name} was rolled back below snapshot "
            f"{state.snapshot.id if state.snapshot else 0}; load its state and plan again"
        )
    news = _snapshots_between(table, state.snapshot, latest)
    if news is not None:
        try:
            return _advance_over(table, state, news)
        except FormatError:
            if _snapshots_between(table, state.snapshot, latest) is not None:
                raise  # otherwise a snapshot expired before its changes were read
    retained = _newest_identifiers(snapshots_from_latest(table.io, table.paths))
    return replace(_state_of(table, latest), committed={**state.committed, **retained})


def _identity(snapshot: Snapshot) -> tuple[object, ...]:
    return (
        snapshot.id,
        snapshot.commit_user,
        snapshot.commit_identifier,
        snapshot.commit_kind,
        snapshot.delta_manifest_list,
    )


def _continues(table: FileStoreTable, known: Snapshot | None, latest: Snapshot) -> bool:
    """Return whether `latest` is a successor of the snapshot `known`, which may have expired."""
    if known is None:
        return True
    if latest.id <= known.id:
        return False
    stored = find_snapshot(table.io, table.paths, known.id)
    return stored is None or is_same_snapshot(stored, known)


def _snapshots_between(
    table: FileStoreTable, known: Snapshot | None, latest: Snapshot
) -> list[Snapshot] | None:
    """Return the snapshots after `known` up to `latest`, or None if any of them has expired."""
    first = 1 if known is None else known.id + 1
    snapshots: list[Snapshot] = []
    for snapshot_id in range(first, latest.id):
        snapshot = find_snapshot(table.io, table.paths, snapshot_id)
        if snapshot is None:
            return None
        snapshots.append(snapshot)
    return [*snapshots, latest]


def _advance_over(table: FileStoreTable, state: TableState, news: list[Snapshot]) -> TableState:
    latest = news[-1]
    index_entries, repeated = state.index_entries, state.repeated_index_entries
    known_index = state.snapshot.index_manifest if state.snapshot else None
    if latest.index_manifest != known_index:
        index_entries, repeated = _read_index(table, latest)
    largest = state.max_sequence_number
    for snapshot in news:
        largest = max_sequence_of(delta_entries(table, snapshot), largest)
    return TableState(
        snapshot=latest,
        manifests=tuple(snapshot_manifests(table, latest)),
        index_entries=index_entries,
        max_sequence_number=largest,
        repeated_index_entries=repeated,
        committed={**state.committed, **_newest_identifiers(reversed(news))},
        carried=_carried(reversed(news), lambda: state.carried),
    )


def _state_of(table: FileStoreTable, snapshot: Snapshot | None) -> TableState:
    if snapshot is None:
        return TableState(None)
    manifests = tuple(snapshot_manifests(table, snapshot))
    forget_unlisted_manifests(table.paths, manifests)
    index_entries, repeated = _read_index(table, snapshot)
    return TableState(
        snapshot=snapshot,
        manifests=manifests,
        index_entries=index_entries,
        max_sequence_number=max_sequence_of(live_entries(table, manifests)),
        repeated_index_entries=repeated,
        committed=_newest_identifiers([snapshot]),
        carried=_retained_record(table, snapshot),
    )


def _carried(
    newest_first: Iterable[Snapshot], below: Callable[[], Mapping[str, str]]
) -> Mapping[str, str]:
    """Return the carried properties of the newest of these snapshots that has any, or `below()`.

    `below` returns the carried properties of older snapshots. `OVERWRITTEN_PROPERTY` gets the ids
    of later OVERWRITE snapshots, which other programs wrote without these properties, because the
    properties no longer describe the rows.
    """
    overwrites: list[str] = []
    carried: Mapping[str, str] = {}
    for snapshot in newest_first:
        if carried := carried_properties(snapshot):
            break
        if snapshot.commit_kind == CommitKind.OVERWRITE:
            overwrites.append(str(snapshot.id))
    carried = carried or below()
    if not carried or not overwrites:
        return carried
    noted = [carried[OVERWRITTEN_PROPERTY]] if OVERWRITTEN_PROPERTY in carried else []
    return {**carried, OVERWRITTEN_PROPERTY: ", ".join([*noted, *reversed(overwrites)])}


def _retained_record(table: FileStoreTable, snapshot: Snapshot) -> Mapping[str, str]:
    """Return the carried properties of the newest snapshot, up to `snapshot`, that has any.

    Older snapshots are read only if an option of the table states that it has such properties.
    """
    marked = CARRIED_OPTION in table.schema.options
    return _carried(_walk(table, snapshot) if marked else [snapshot], dict)


def _walk(table: FileStoreTable, snapshot: Snapshot | None) -> Iterator[Snapshot]:
    """Yield the snapshots from `snapshot` back to the oldest that has not expired."""
    while snapshot is not None:
        yield snapshot
        snapshot = find_snapshot(table.io, table.paths, snapshot.id - 1)


def _newest_identifiers(snapshots: Iterable[Snapshot]) -> dict[str, int]:
    """Return each user's newest streaming commit identifier in snapshots given newest first."""
    newest: dict[str, int] = {}
    for snapshot in filter(_is_streaming, snapshots):
        newest.setdefault(snapshot.commit_user, snapshot.commit_identifier)
    return newest


def _is_streaming(snapshot: Snapshot) -> bool:
    return snapshot.commit_identifier != BATCH_COMMIT_IDENTIFIER


def _read_index(
    table: FileStoreTable, snapshot: Snapshot
) -> tuple[IndexEntries, tuple[IndexManifestEntry, ...]]:
    if snapshot.index_manifest is None:
        return IndexEntries(), ()
    return read_index_entries(table.io, table.paths.manifest(snapshot.index_manifest))


def refuse_replaced(table: FileStoreTable, state: TableState) -> None:
    """Raise CommitConflictError if a table without snapshots was dropped, or created again.

    Files that were written for the older table are lost then. A table whose `state` has a snapshot
    is not checked here: `refresh_state` notices that its snapshots are gone. Tables of a REST
    catalog are not checked either: the server does not state the time of their schema, and refuses
    commits to a table that has another id.
    """
    if state.snapshot is not None or not table.schema.time_millis:
        return
    try:
        found = read_schema(table.io, table.paths, table.schema.id).time_millis
    except FormatError:
        found = None
    if found != table.schema.time_millis:
        raise CommitConflictError(
            f"table {table.name} was dropped, and perhaps created again, since it was opened; open "
            "it again and plan again"
        )


def settle_published(table: FileStoreTable, base: Snapshot | None, published: Snapshot) -> None:
    """Write the hints of a published snapshot, and delete it if its base was rolled back meanwhile.

    `base` is the snapshot on which `published` was planned. A rollback that deletes `base` does not
    see a snapshot that is published later, so the table would be as before the rollback. A rollback
    that sees it reports a writer at work. Nothing is done for catalogs whose server publishes
    snapshots. Raises CommitUnknownError if the snapshot was deleted: its files stay, because
    another program may have seen it.
    """
    if table.snapshot_commit is not None:
        return
    io, paths = table.io, table.paths
    write_hints(io, paths, published.id)
    try:
        if base is None or is_same_snapshot(find_snapshot(io, paths, base.id), base):
            return
        others = [id_ for id_ in snapshot_ids(io, paths) if id_ != published.id]
    except (FormatError, StorageError) as error:
        context = {"path": paths.snapshot(published.id), "error": str(error)}
        _LOG.warning("base_not_checked", extra={"ctx": context})
        return
    # Without older snapshots the base has expired; newer ones are already based on this one.
    if not others or others[0] > base.id or others[-1] > published.id:
        return
    io.delete_quietly(paths.snapshot(published.id))
    write_hints(io, paths, others[-1])
    raise CommitUnknownError(
        f"table {table.name} was rolled back below snapshot {base.id} while snapshot "
        f"{published.id} was published on it, which was deleted again; load its state and plan "
        "again"
    )
