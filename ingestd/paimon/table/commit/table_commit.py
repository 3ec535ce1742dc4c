"""Commit a committable as snapshots, with optimistic concurrency on the next snapshot file.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/snapshot/#snapshot

A snapshot exists if and only if its file does. The first writer that creates the file of the next
id has committed; every other writer refreshes its state and tries again. Each attempt checks for
conflicts with concurrent commits, writes the manifests, and publishes the snapshot; hint files are
written last. Data files are never deleted here, because the caller may commit them again.
"""

import logging
import random
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Literal

from ingestd.crash_points import CrashPoint, reach
from ingestd.errors import (
    CommitConflictError,
    CommitUnknownError,
    FencedError,
    IngestdError,
    LockUnavailableError,
    StorageError,
)
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.document_checks import sealed
from ingestd.paimon.spec.manifest import ManifestEntry, ManifestFileMeta, file_totals
from ingestd.paimon.spec.options import CoreOptions
from ingestd.paimon.spec.snapshot import (
    BASE_PROPERTY,
    BATCH_COMMIT_IDENTIFIER,
    CARRIED_OPTION,
    CARRIED_PREFIX,
    CommitKind,
    Snapshot,
    carried_properties,
    encode_snapshot,
)
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.paimon.table.commit.manifest_writer import (
    merge_manifests,
    write_index_manifest,
    write_manifest_list,
    write_manifests,
)
from ingestd.paimon.table.commit.registered_partitions import register_partitions
from ingestd.paimon.table.commit.snapshot_changes import (
    SnapshotChange,
    check_bucket_option,
    check_deletion_vectors,
    check_hash_index,
    check_key_places,
    check_own_files,
    checked_entries,
    in_commit_order,
    index_after,
    plan_changes,
    snapshot_time,
)
from ingestd.paimon.table.files.row_tracking import assign_row_ids
from ingestd.paimon.table.metadata.catalog_commit import partition_changes
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.schema_manager import latest_schema_id
from ingestd.paimon.table.metadata.snapshot_manager import find_snapshot
from ingestd.paimon.table.metadata.table_state import (
    TableState,
    committed_after,
    is_same_snapshot,
    max_sequence_of,
    newest_of_user,
    refresh_state,
    refuse_replaced,
    settle_published,
    with_user,
)
from ingestd.paimon.table.write.commit_message import ManifestCommittable

CommitStatus = Literal["committed", "replayed", "empty"]
_JITTER = 0.2
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CommitRequest:
    """The arguments of a commit, which are the same for every attempt.

    `now_ms` is the time of the snapshot, in milliseconds of the epoch. `planned_at` is the time in
    seconds, by `steady_seconds`, before which no file of the commit was written.
    """

    user: str
    committable: ManifestCommittable
    now_ms: int
    planned_at: float


@dataclass(frozen=True, slots=True)
class Delta:
    """The delta and changelog manifests of a change, which attempts with the same entries share.

    `list_name` and `list_size` are the file name and the size in bytes of the delta manifest list.
    Without changelog files, the fields of the changelog are empty or None.
    """

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
        """The names of all written manifests and manifest lists."""
        names = [meta.file_name for meta in (*self.manifests, *self.changelog_manifests)]
        lists = (self.list_name, self.changelog_list_name)
        return [*names, *(name for name in lists if name is not None)]

    @property
    def record_count(self) -> int:
        """The number of rows in added files minus the number of rows in deleted files."""
        return file_totals(self.entries).rows


@dataclass(frozen=True, slots=True)
class Attempt:
    """A snapshot ready to be published, and the state of the table after it.

    `written` are the names of the metadata files that were written for this attempt only. They are
    deleted if the snapshot is not published.
    """

    snapshot: Snapshot
    state: TableState
    written: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Base:
    """The base list, index manifest and schema of a snapshot."""

    list_name: str
    list_size: int
    index_manifest: str | None
    schema_id: int


class Retries:
    """The retry budget of a commit, for lost races and for unclear responses of the storage.

    Allows `commit.max-retries` retries, and none after `commit.timeout`. The wait doubles from
    `commit.min-retry-wait` to `commit.max-retry-wait`, with jitter.
    """

    def __init__(self, options: CoreOptions) -> None:
        self._left = options.commit_max_retries
        self._next_ms = options.commit_min_retry_wait_ms
        self._longest_ms = options.commit_max_retry_wait_ms
        self._deadline = time.monotonic() + options.commit_timeout_ms / 1000

    def wait(self) -> bool:
        """Wait until the next retry is due; return False, without waiting, if no retry is left."""
        wait_ms = min(self._next_ms, self._longest_ms)
        seconds = wait_ms * (1 + random.uniform(0, _JITTER)) / 1000  # noqa: S311  # no secret
        if self._left <= 0 or time.monotonic() + seconds > self._deadline:
            return False
        self._left -= 1
        self._next_ms *= 2
        time.sleep(seconds)
        return True


@dataclass(frozen=True, slots=True)
class CommitResult:
    """The outcome of a commit.

    If `status` is "committed", `snapshot` is the last snapshot that was created. If it is
    "replayed", the user had already committed this identifier or a later one; `snapshot` is the
    user's newest snapshot, None if it has expired. If it is "empty", the committable had no
    changes; `snapshot` is the snapshot of the given state. `state` is always the newest known state
    of the table; `attempts` is the number of snapshots that were prepared to be published. `deltas`
    has the entries of the created snapshots, in order, by the name of their delta manifest list.
    """

    status: CommitStatus
    snapshot: Snapshot | None
    state: TableState
    attempts: int
    deltas: Mapping[str, Sequence[ManifestEntry]] = field(default_factory=dict)


def commit(
    table: FileStoreTable,
    commit_user: str,
    committable: ManifestCommittable,
    *,
    state: TableState,
    now_ms: int,
    allow_empty: bool = False,
) -> CommitResult:
    """Commit changes that were planned on `state` on top of the newest snapshot.

    If `state` is of the newest snapshot, manifests of the table are read only to merge them, to
    check a change that deletes files, or if the table was ever rescaled. An identifier at or below
    the newest one of the user is a replay and changes nothing; its content is not compared.
    `BATCH_COMMIT_IDENTIFIER` is never a replay. `now_ms` is the time of the snapshot (ms of the
    epoch). With `allow_empty`, a committable without changes becomes an empty APPEND.

    Raises FencedError if another committer with this user name committed after `state`;
    CommitConflictError if the change conflicts with another commit or lost every attempt: nothing
    of it is visible then, except an APPEND whose COMPACT was refused; SchemaConflictError if the
    option `bucket` was altered without a rescale; CommitUnknownError if the snapshot may have been
    published (delete nothing, try again); LockUnavailableError if no lock can be requested.
    """
    changes = plan_changes(committable, allow_empty=allow_empty)
    if not changes:
        return CommitResult("empty", state.snapshot, state, 0)
    request = CommitRequest(commit_user, committable, now_ms, state.loaded_at)
    # Batch commits are never replays, so their user is not looked up.
    current = state if _is_batch(request) else with_user(table, state, commit_user)
    if _is_replay(current, request):
        return _replayed(table, refresh_state(table, current), request, 0)
    retries, deltas, attempts = Retries(table.options), dict[str, Sequence[ManifestEntry]](), 0
    for change in changes:
        retry = _CommitRetry(table, request, change, current, retries)
        if not retry.run():
            return _replayed(table, retry.current, request, retry.attempts)
        current, attempts = retry.current, attempts + retry.attempts
        if retry.delta is not None:
            deltas[retry.delta.list_name] = retry.delta.entries
    return CommitResult("committed", current.snapshot, current, attempts, deltas)


def _is_batch(request: CommitRequest) -> bool:
    return request.committable.identifier == BATCH_COMMIT_IDENTIFIER


def _is_replay(state: TableState, request: CommitRequest) -> bool:
    if _is_batch(request):
        return False
    return request.committable.identifier <= state.committed[request.user]


def _replayed(
    table: FileStoreTable, state: TableState, request: CommitRequest, attempts: int
) -> CommitResult:
    return CommitResult("replayed", newest_of_user(table, state, request.user), state, attempts)


class _CommitRetry:
    """The retry loop for one snapshot.

    `current` is the newest known state of the table, and `delta` the manifests of the last attempt,
    if there was one.
    """

    def __init__(
        self,
        table: FileStoreTable,
        request: CommitRequest,
        change: SnapshotChange,
        planned: TableState,
        retries: Retries,
    ) -> None:
        self.current = planned
        self.attempts = 0
        self._table = table
        self._request = request
        self._change = change
        self._planned = planned
        self._retries = retries
        self.delta: Delta | None = None

    def run(self) -> bool:
        """Publish the snapshot; return False if the same identifier was committed concurrently.

        Raises the errors of `commit`. Manifests that were not published are deleted, unless the
        outcome is unknown.
        """
        try:
            committed = self._try_until_published()
        except CommitUnknownError:
            raise
        except IngestdError:
            self._discard_delta()
            raise
        if not committed:
            self._discard_delta()
        return committed

    def _try_until_published(self) -> bool:
        while True:
            self.current = refresh_state(self._table, self.current)
            if self._is_committed_already():
                return False
            check_own_files(self._table, self._change, self._request.planned_at)
            attempt = self._prepare()
            self.attempts += 1
            reach(CrashPoint.SNAPSHOT_READY)
            entries = self.delta.entries if self.delta else ()
            if publish(self._table, attempt.snapshot, self._retries, entries):
                reach(CrashPoint.SNAPSHOT_PUBLISHED)
                settle_published(self._table, self.current.snapshot, attempt.snapshot)
                if self._table.partitions is not None:
                    register_partitions(self._table, self._change, attempt.snapshot, entries)
                self.current = attempt.state
                return True
            discard(self._table, attempt.written)
            if not self._retries.wait():
                break
        raise CommitConflictError(
            f"table {self._table.name}: other writers were first in all {self.attempts} tries; "
            "nothing of this commit is visible; raise 'commit.max-retries' and 'commit.timeout' if "
            "that is normal here"
        )

    def _prepare(self) -> Attempt:
        schema_id = self._check_conflicts()
        reach(CrashPoint.CONFLICTS_CHECKED)
        delta = self._delta_on_current()
        return prepare(self._table, self._change, delta, self.current, self._request, schema_id)

    def _check_conflicts(self) -> int:
        """Check the change against `current`; return the id of the newest schema.

        Raises CommitConflictError for a conflict.
        """
        expected, carried = self._request.committable.builds_on, self.current.carried
        if any(carried.get(name, "") != value for name, value in expected.items()):
            raise CommitConflictError(
                f"table {self._table.name}: the record in its newest snapshots is not the one that "
                "this commit builds on: the table was rolled back or restored, or another process "
                "wrote a record; read the table's state and plan again"
            )
        refuse_replaced(self._table, self.current)
        known = self.current.snapshot.schema_id if self.current.snapshot else 0
        known = max(known, self._table.schema.id)
        schema_id = latest_schema_id(self._table.io, self._table.paths, known)
        if schema_id != self._table.schema.id:
            newest = self._table.schemas(schema_id)
            check_bucket_option(self._table, newest)
            if expected:
                self._check_writers(newest)
        if self._change.kind == CommitKind.COMPACT or self._change.rewrites is not None:
            check_deletion_vectors(self._table, self._planned, self.current, self._change)
        if self._change.relies_on_hash_index:
            partitions = self._change.partitions
            check_hash_index(self._table, self._planned, self.current, partitions)
        if self._change.kind == CommitKind.APPEND:
            check_key_places(self._table, self._planned, self.current)
        return schema_id

    def _check_writers(self, newest: TableSchema) -> None:
        """Raise CommitConflictError if the pipelines that write the table have changed."""
        known = honoured.PIPELINES.of(self._table.schema.options)
        if honoured.PIPELINES.of(newest.options) != known:
            raise CommitConflictError(
                f"table {self._table.name}: option '{CARRIED_OPTION}' was '{known}' and is now "
                f"'{honoured.PIPELINES.of(newest.options)}': another pipeline writes the table; "
                "read the table's state and plan again"
            )

    def _delta_on_current(self) -> Delta:
        entries = checked_entries(self._table, self._change, self.current)
        if self._table.options.row_tracking:
            entries = assign_row_ids(entries, self.current.snapshot)
        entries = in_commit_order(entries, self.current.snapshot, self._request.now_ms)
        if self.delta is None or self.delta.entries != entries:
            self._discard_delta()
            self.delta = write_delta(self._table, entries, self._change.changelog)
        return self.delta

    def _is_committed_already(self) -> bool:
        """Return whether the identifier was committed since the change was planned.

        Raises FencedError if the user committed another identifier.
        """
        if _is_batch(self._request):
            return False
        user, identifier = self._request.user, self._request.committable.identifier
        newest = self.current.committed[user]
        if newest == self._planned.committed[user]:
            return False
        if newest == identifier:
            return True
        raise FencedError(
            f"table {self._table.name}: commit user {user} has committed identifier {newest} while "
            f"{identifier} was being written: another process runs under this name; stop one"
        )

    def _discard_delta(self) -> None:
        if self.delta is not None:
            discard(self._table, self.delta.written)
            self.delta = None


def publish(
    table: FileStoreTable,
    snapshot: Snapshot,
    retries: Retries,
    entries: Sequence[ManifestEntry] = (),
) -> bool:
    """Create the snapshot file directly or through the catalog; return False if the id is taken.

    `entries` are the changes of the snapshot, for a catalog that keeps partition statistics. After
    a storage error the outcome is unknown: the file is read back, and if it does not exist, the
    same bytes are written again. If the storage does not respond until the retries are used up,
    raises CommitUnknownError (the snapshot may still appear), or LockUnavailableError if the lock
    could not be requested. Raises CommitConflictError if others hold the lock for too long.
    """
    path = table.paths.snapshot(snapshot.id)
    problem: StorageError | None = None
    unlocked: LockUnavailableError | None = None
    while True:
        try:
            if _create(table, snapshot, entries):
                return True
            stored = find_snapshot(table.io, table.paths, snapshot.id)
        except LockUnavailableError as error:
            _LOG.warning("lock_unavailable", extra={"ctx": {"path": path, "error": str(error)}})
            unlocked = error
            stored = None if problem is None else _read_back(table, snapshot.id)
        except StorageError as error:
            problem = error
            _LOG.warning("publish_unclear", extra={"ctx": {"path": path, "error": str(error)}})
            stored = _read_back(table, snapshot.id)
        if stored is not None:
            return is_same_snapshot(stored, snapshot)
        if not retries.wait():
            break
    if problem is None and unlocked is not None:
        raise unlocked
    raise CommitUnknownError(
        f"table {table.name}: whether snapshot {snapshot.id} was published is not known, the "
        f"storage does not report it ({problem}); its files stay, try again when it responds"
    ) from problem


def _create(table: FileStoreTable, snapshot: Snapshot, entries: Sequence[ManifestEntry]) -> bool:
    server = table.snapshot_commit
    if server is not None:
        return server.commit(table.branch, snapshot, partition_changes(table, entries))
    path = table.paths.snapshot(snapshot.id)
    with ExitStack() as stack:
        if table.lock is not None:
            try:
                stack.enter_context(table.lock.held(table.branch))
            except StorageError as error:
                raise LockUnavailableError(
                    f"table {table.name}: its lock cannot be requested: {error}; nothing of this "
                    "commit is visible, try again when the catalog responds"
                ) from error
        return table.io.try_write_atomic(path, sealed(encode_snapshot(snapshot)))


def discard(table: FileStoreTable, names: Sequence[str]) -> None:
    """Delete manifests and manifest lists, by name, of an attempt that has definitely failed.

    Failures are logged, not raised.
    """
    for name in names:
        table.io.delete_quietly(table.paths.manifest(name))


def _read_back(table: FileStoreTable, snapshot_id: int) -> Snapshot | None:
    try:
        return find_snapshot(table.io, table.paths, snapshot_id)
    except StorageError:
        return None


def write_delta(
    table: FileStoreTable, entries: tuple[ManifestEntry, ...], changelog: Sequence[ManifestEntry]
) -> Delta:
    """Write the delta manifests and, if there are changelog files, the changelog manifests.

    Each of the two kinds of manifests has its own manifest list.
    """
    manifests = write_manifests(table, entries)
    name, size = write_manifest_list(table, manifests)
    reach(CrashPoint.DELTA_WRITTEN)
    if not changelog:
        return Delta(entries, manifests, name, size)
    changelog_manifests = write_manifests(table, changelog)
    changelog_name, changelog_size = write_manifest_list(table, changelog_manifests)
    reach(CrashPoint.CHANGELOG_LISTED)
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
    request: CommitRequest,
    schema_id: int,
) -> Attempt:
    """Write the base manifest list and, if it changes, the index manifest of the next snapshot.

    `delta` has the manifests of `change`, which is applied to `state` for `request`; `schema_id` is
    the schema of the snapshot. The snapshot is not published. Raises FormatError if a manifest is
    missing or damaged, CommitConflictError if an index file to remove or replace is not in `state`.
    """
    merged = merge_manifests(table, state.manifests)
    list_name, list_size = write_manifest_list(table, merged.manifests)
    reach(CrashPoint.BASE_WRITTEN)
    written = [*(meta.file_name for meta in merged.written), list_name]
    index_entries, repeated = index_after(table, change, state)
    index_manifest = state.snapshot.index_manifest if state.snapshot else None
    if index_entries is not state.index_entries:
        index_manifest = None
        if index_entries or repeated:
            index_manifest = write_index_manifest(table, index_entries, repeated)
            written.append(index_manifest)
            reach(CrashPoint.INDEX_MANIFEST_WRITTEN)
            path = table.paths.manifest(index_manifest)
            index_entries = index_entries.written(table.io, path)
    base = _Base(list_name, list_size, index_manifest, schema_id)
    snapshot = _snapshot(change, delta, base, state, request)
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


def _properties(state: TableState, committable: ManifestCommittable) -> dict[str, str]:
    """Return the carried properties overridden by those of the commit.

    An empty value removes a property. If the commit itself has carried properties, `BASE_PROPERTY`
    is the name of the delta manifest list of the previous snapshot ("" without one).
    """
    own = committable.properties
    if any(name.startswith(CARRIED_PREFIX) for name in own):
        below = state.snapshot.delta_manifest_list if state.snapshot else ""
        own = {**own, BASE_PROPERTY: below}
    merged = {**state.carried, **own}
    return {name: value for name, value in merged.items() if value or name == BASE_PROPERTY}


def _snapshot(
    change: SnapshotChange, delta: Delta, base: _Base, state: TableState, request: CommitRequest
) -> Snapshot:
    committable, previous = request.committable, state.snapshot
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
        commit_user=request.user,
        commit_identifier=committable.identifier,
        commit_kind=change.kind,
        time_millis=snapshot_time(delta.entries, previous, request.now_ms),
        total_record_count=total + delta.record_count,
        delta_record_count=delta.record_count,
        changelog_record_count=delta.changelog_record_count,
        watermark=_later(committable.watermark, previous.watermark if previous else None),
        statistics=change.statistics or (previous.statistics if previous and inherits else None),
        properties=_properties(state, committable),
        next_row_id=_next_row_id(delta, previous),
    )


def _next_row_id(delta: Delta, previous: Snapshot | None) -> int:
    """Return the id of the next new row, after those of the new files."""
    files = [entry.file for entry in delta.entries if entry.file.first_row_id is not None]
    ends = [(file.first_row_id or 0) + file.row_count for file in files]
    return max([(previous.next_row_id if previous else None) or 0, *ends])


def _later(left: int | None, right: int | None) -> int | None:
    known = [watermark for watermark in (left, right) if watermark is not None]
    return max(known, default=None)
