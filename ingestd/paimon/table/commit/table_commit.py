"""Making the work of writers visible: one snapshot file, created by whoever comes first.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/snapshot/

The order is: plan the snapshots, recognise a replay, then for each
snapshot: look what others did, check for conflicts, write manifests, publish; hints come last.
Whatever the outcome, data files stay: the caller knows whether it will try again with them.
"""

from dataclasses import dataclass
from typing import Literal

from ingestd.crash_points import Point, reach
from ingestd.errors import CommitConflictError, CommitUnknownError, FencedError, IngestdError
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.schema import TableSchema
from ingestd.paimon.spec.snapshot import (
    BATCH_COMMIT_IDENTIFIER,
    CARRIED_OPTION,
    CommitKind,
    Snapshot,
)
from ingestd.paimon.table.commit.attempt import (
    Attempt,
    CommitRequest,
    Delta,
    checked_entries,
    prepare,
    write_delta,
)
from ingestd.paimon.table.commit.changes import SnapshotChange, plan_changes
from ingestd.paimon.table.commit.conflict import (
    check_bucket_option,
    check_hash_index,
    check_key_places,
)
from ingestd.paimon.table.commit.conflict_compact import check_deletion_vectors
from ingestd.paimon.table.commit.own_files import check_own_files
from ingestd.paimon.table.commit.publish import discard, publish
from ingestd.paimon.table.commit.retries import Retries
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.schema_manager import latest_schema_id
from ingestd.paimon.table.metadata.snapshot_manager import write_hints
from ingestd.paimon.table.metadata.table_state import (
    TableState,
    newest_of_user,
    refresh_state,
    with_user,
)
from ingestd.paimon.table.write.commit_message import ManifestCommittable

CommitStatus = Literal["committed", "replayed", "empty"]


@dataclass(frozen=True, slots=True)
class CommitResult:
    """Outcome of a commit.

    `committed`: `snapshot` is the last one made. `replayed`: the user had committed this
    identifier (or a later one) before, `snapshot` is that user's newest, if it is retained.
    `empty`: there was nothing to commit. `state` is the table's newest known state in any case;
    `attempts` counts the snapshots that were tried.
    """

    status: CommitStatus
    snapshot: Snapshot | None
    state: TableState
    attempts: int


def commit(
    table: FileStoreTable,
    commit_user: str,
    committable: ManifestCommittable,
    *,
    state: TableState,
    now_ms: int,
    allow_empty: bool = False,
) -> CommitResult:
    """Commit on top of whatever the table holds, planned as of `state`.

    While `state` is the newest, no manifest of the table is read, unless files are deleted.
    An identifier at or below the user's newest one is `replayed` and changes nothing; that says
    nothing about the content, which the caller compares by the snapshot's properties.
    `BATCH_COMMIT_IDENTIFIER` is never taken for a replay.

    Raises FencedError if another committer with this user name went past `state`;
    CommitConflictError if the change cannot land or lost every try, then nothing of it is
    visible, except that an APPEND stays when only the COMPACT after it was refused;
    CommitUnknownError if the storage does not say whether it landed (delete nothing, try again).
    """
    changes = plan_changes(committable, allow_empty=allow_empty)
    if not changes:
        return CommitResult("empty", state.snapshot, state, 0)
    origin = CommitRequest(commit_user, committable, now_ms, state.loaded_at)
    # What is no part of a stream is never done again, so no one has to look for it.
    current = state if _is_batch(origin) else with_user(table, state, commit_user)
    attempts = 0
    if _is_replay(current, origin):
        return _replayed(table, refresh_state(table, current), origin, attempts)
    retries = Retries(table.options)
    for change in changes:
        landing = _CommitRetry(table, origin, change, current, retries)
        if not landing.run():
            return _replayed(table, landing.current, origin, landing.attempts)
        current = landing.current
        attempts += landing.attempts
    return CommitResult("committed", current.snapshot, current, attempts)


def _is_batch(origin: CommitRequest) -> bool:
    return origin.committable.identifier == BATCH_COMMIT_IDENTIFIER


def _is_replay(state: TableState, origin: CommitRequest) -> bool:
    if _is_batch(origin):
        return False
    return origin.committable.identifier <= state.committed[origin.user]


def _replayed(
    table: FileStoreTable, state: TableState, origin: CommitRequest, attempts: int
) -> CommitResult:
    return CommitResult("replayed", newest_of_user(table, state, origin.user), state, attempts)


class _CommitRetry:
    """The tries to land one snapshot; `current` is the newest state they have seen."""

    def __init__(
        self,
        table: FileStoreTable,
        origin: CommitRequest,
        change: SnapshotChange,
        planned: TableState,
        retries: Retries,
    ) -> None:
        self.current = planned
        self.attempts = 0
        self._table = table
        self._request = origin
        self._change = change
        self._planned = planned
        self._retries = retries
        self._delta: Delta | None = None

    def run(self) -> bool:
        """Land it; False if someone has committed the same identifier meanwhile."""
        try:
            landed = self._try_until_landed()
        except CommitUnknownError:
            raise
        except IngestdError:
            self._discard_delta()
            raise
        if not landed:
            self._discard_delta()
        return landed

    def _try_until_landed(self) -> bool:
        while True:
            self.current = refresh_state(self._table, self.current)
            if self._is_committed_already():
                return False
            check_own_files(self._table, self._change, self._request.planned_at)
            attempt = self._prepare()
            self.attempts += 1
            reach(Point.SNAPSHOT_READY)
            entries = self._delta.entries if self._delta else ()
            if publish(self._table, attempt.snapshot, self._retries, entries):
                reach(Point.SNAPSHOT_PUBLISHED)
                if self._table.snapshot_commit is None:
                    write_hints(self._table.io, self._table.paths, attempt.snapshot.id)
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
        expected, carried = self._request.committable.builds_on, self.current.carried
        if any(carried.get(name, "") != value for name, value in expected.items()):
            raise CommitConflictError(
                f"table {self._table.name}: the record in its newest snapshots is not the one that "
                "this commit builds on: the table was rolled back or restored, or another process "
                "wrote a record; read the table's state and plan again"
            )
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
        reach(Point.CONFLICTS_CHECKED)
        delta = self._delta_on_current()
        return prepare(self._table, self._change, delta, self.current, self._request, schema_id)

    def _check_writers(self, newest: TableSchema) -> None:
        """Raise if other pipelines write the table than those that the commit knows of."""
        known = honoured.PIPELINES.of(self._table.schema.options)
        if honoured.PIPELINES.of(newest.options) != known:
            raise CommitConflictError(
                f"table {self._table.name}: option '{CARRIED_OPTION}' was '{known}' and is now "
                f"'{honoured.PIPELINES.of(newest.options)}': another pipeline writes the table; "
                "read the table's state and plan again"
            )

    def _delta_on_current(self) -> Delta:
        entries = checked_entries(self._table, self._change, self.current)
        if self._delta is None or self._delta.entries != entries:
            self._discard_delta()
            self._delta = write_delta(self._table, entries, self._change.changelog)
        return self._delta

    def _is_committed_already(self) -> bool:
        """Whether our user's identifier has landed since the plan; FencedError if a later one."""
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
        if self._delta is not None:
            discard(self._table, self._delta.written)
            self._delta = None
