"""Who works on a table at once, as plain functions around the real commit, and what must hold.

Data files are named by what they hold: `w1-2` the second commit of writer `w1`, `w1-1+w1-2` both.
"""

import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from ingestd.errors import CommitConflictError, FencedError, FormatError, IngestdError
from ingestd.paimon.io.file_io import FileIO, MemoryFileIO
from ingestd.paimon.spec.binary_row import EMPTY_ROW
from ingestd.paimon.spec.snapshot import BATCH_COMMIT_IDENTIFIER, Snapshot
from ingestd.paimon.table.metadata.file_store_scan import live_files
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import (
    latest_snapshot,
    read_snapshot,
    snapshot_ids,
)
from ingestd.paimon.table.metadata.table_state import load_state, with_user
from ingestd.paimon.table.retention.expire_plan import expire_settings
from ingestd.paimon.table.retention.expire_snapshots import expire_snapshots
from ingestd.paimon.table.write.commit_message import CommitMessage, ManifestCommittable
from tests.support.interleaving import Actor
from tests.support.metadata_tables import NOW_MS, data_file, message, metadata_table, with_io
from tests.support.metadata_tables import commit_imagined as commit

_OPTIONS = {"commit.min-retry-wait": "0 ms", "commit.max-retry-wait": "0 ms"}
_EXPIRY = expire_settings(
    {
        "snapshot.num-retained.min": "1",
        "snapshot.num-retained.max": "1",
        "snapshot.time-retained": "0 ms",
    }
)
_TRIES = 6
Work = Callable[[FileStoreTable], bool]


@dataclass
class World:
    """One table in memory; `commits` of each writer are to be in it in the end."""

    io: MemoryFileIO
    table: FileStoreTable
    commits: dict[str, int] = field(default_factory=dict)

    @classmethod
    def new(cls) -> "World":
        """An empty table."""
        io = MemoryFileIO()
        return cls(io, metadata_table(io, options=_OPTIONS))

    def filled(self, writer: str, commits: int) -> "World":
        """With some commits that are in it from the beginning."""
        self.writer(writer, commits)(self.io)
        return self

    def copy(self) -> "World":
        """The same files, to be changed apart."""
        files = MemoryFileIO(dict(self.io.files), set(self.io.directories))
        return replace(self, commits=dict(self.commits), io=files, table=with_io(self.table, files))

    def writer(self, user: str, commits: int = 0) -> Actor:
        """Brings its commits one by one; begins where the table says it has got to."""
        wanted = self.commits[user] = max(commits, self.commits.get(user, 0))

        def write(table: FileStoreTable) -> bool:
            state = with_user(table, load_state(table), user)
            while (number := max(state.committed[user], 0) + 1) <= wanted:
                name = f"{user}-{number}"
                # A second attempt writes another file: no one knows of the first.
                _keep(table, name)
                committable = ManifestCommittable(number, (message(name),))
                state = commit(table, user, committable, state=state, now_ms=NOW_MS).state
            return True

        return self._stubborn(write)

    def compactor(self) -> Actor:
        """Puts all files into one, once; gives up if someone has been faster."""

        def compact(table: FileStoreTable) -> bool:
            state = load_state(table)
            files = [entry.file for entry in live_files(table, state.snapshot)]
            if len(files) < 2:
                return True
            name = "+".join(sorted(file.file_name for file in files))
            made = data_file(name, level=5, rows=sum(file.row_count for file in files))
            _keep(table, name)
            change = CommitMessage(
                EMPTY_ROW, 0, 2, compact_before=tuple(files), compact_after=(made,)
            )
            committable = ManifestCommittable(BATCH_COMMIT_IDENTIFIER, (change,))
            commit(table, "compactor", committable, state=state, now_ms=NOW_MS)
            return True

        return self._stubborn(compact)

    def expirer(self) -> Actor:
        """Expires all snapshots but the newest."""

        def expire(table: FileStoreTable) -> bool:
            expire_snapshots(table, _EXPIRY, NOW_MS + 1)
            return True

        return self._stubborn(expire)

    def _stubborn(self, work: Work) -> Actor:
        """Starts again after an error, as a supervised process does."""

        def actor(io: FileIO) -> None:
            for _ in range(_TRIES):
                try:
                    if work(with_io(self.table, io)):
                        return
                except (FencedError, CommitConflictError):
                    continue
                except FormatError as error:
                    # Reading is slower than expiry; nothing was planned on it.
                    assert "expired meanwhile" in str(error), error
                except IngestdError:
                    continue
            raise AssertionError("never done")

        return actor

    def check(self) -> None:
        """What must be true once all have ended."""
        ids = snapshot_ids(self.io, self.table.paths)
        assert ids == list(range(ids[0], ids[-1] + 1))
        snapshots = [read_snapshot(self.io, self.table.paths, id_) for id_ in ids]
        newest = latest_snapshot(self.io, self.table.paths)
        assert newest == snapshots[-1]
        made = Counter(
            (snapshot.commit_user, snapshot.commit_identifier)
            for snapshot in snapshots
            if snapshot.commit_identifier != BATCH_COMMIT_IDENTIFIER
        )
        assert all(count == 1 for count in made.values()), made
        for before, after in itertools.pairwise(snapshots):
            total = (before.total_record_count or 0) + (after.delta_record_count or 0)
            assert after.total_record_count == total
        for snapshot in snapshots:
            self._check_files(snapshot)
        held = Counter(self.held(snapshots[-1]))
        wanted = {f"{user}-{n}" for user, most in self.commits.items() for n in range(1, most + 1)}
        assert held == Counter(wanted)
        assert snapshots[-1].total_record_count == len(wanted)

    def held(self, snapshot: Snapshot) -> list[str]:
        names = (entry.file.file_name for entry in live_files(self.table, snapshot))
        return [part for name in names for part in name.split("+")]

    def _check_files(self, snapshot: Snapshot) -> None:
        for entry in live_files(self.table, snapshot):
            assert self.io.exists(_path(self.table, entry.file.file_name)), entry.file.file_name


def noticed(operation: str, path: str) -> bool:
    """Whether a call can be noticed by others, or can notice them.

    Manifests and data files have names of their own, so no one meets while they are written.
    """
    if operation == "delete_quietly":
        return "/snapshot/" in path
    return "/snapshot" in path


def noticed_with_expiry(operation: str, path: str) -> bool:
    """The same where files are deleted that others may be about to read."""
    return noticed(operation, path) or (
        "/manifest/" in path and operation in ("read_bytes", "delete_quietly")
    )


def _keep(table: FileStoreTable, name: str) -> None:
    table.io.overwrite(_path(table, name), b"rows")


def _path(table: FileStoreTable, name: str) -> str:
    return f"{table.path}/bucket-0/{name}"
