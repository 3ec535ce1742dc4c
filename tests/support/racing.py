"""Processes that commit to one table at once, on a local disk or in an object store."""

import multiprocessing
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from multiprocessing.context import SpawnProcess

from ingestd.errors import RetryableError
from ingestd.paimon.io.file_io import FileIO, LocalFileIO, file_io_for, is_local
from ingestd.paimon.spec.paths import TablePaths
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.schema_manager import latest_schema
from ingestd.paimon.table.metadata.snapshot_manager import read_snapshot, snapshot_ids
from ingestd.paimon.table.metadata.table_state import load_state
from tests.support.metadata_tables import append, live_names, message, metadata_table

_SPAWN = multiprocessing.get_context("spawn")
PATIENT = {"commit.max-retries": "1000", "manifest.merge-min-count": "5"}


@dataclass(frozen=True)
class Track:
    """Where a race is run: a table's path, and the options of its store."""

    path: str
    options: Mapping[str, str] = field(default_factory=dict)

    def io(self) -> FileIO:
        """The files of it."""
        if is_local(self.path):
            return LocalFileIO(sync=False)
        return file_io_for(self.path, self.options)

    def lay(self) -> FileStoreTable:
        """Make the table."""
        return metadata_table(self.io(), path=self.path, options=PATIENT)

    def table(self) -> FileStoreTable:
        """Open it."""
        io = self.io()
        schema = latest_schema(io, TablePaths(self.path))
        assert schema is not None
        return FileStoreTable(self.path, schema, io, "db.t")


@dataclass(frozen=True)
class Runner:
    """Commits identifiers 1 to `commits`; `keeps_state` carries its state along.

    One that `tries_again` makes a commit again that ended in an error which may heal.
    """

    track: Track
    user: str
    commits: int
    keeps_state: bool = False
    tries_again: bool = False

    def run(self) -> None:
        """Run to the end."""
        table = self.track.table()
        state = load_state(table) if self.keeps_state else None
        for identifier in range(1, self.commits + 1):
            while True:
                added = message(f"{self.user}-{identifier}")
                try:
                    done = append(table, self.user, identifier, added, state=state)
                    break
                except RetryableError:
                    if not self.tries_again:
                        raise
            state = done.state if self.keeps_state else None

    def start(self) -> SpawnProcess:
        """Run in a process of its own."""
        process = _SPAWN.Process(target=self.run)
        process.start()
        return process


def wrong_race(table: FileStoreTable, users: int, commits: int) -> list[str]:
    """What is wrong when all have run: each commit is there once, in the order of its user."""
    ids = snapshot_ids(table.io, table.paths)
    wrong = [] if ids == list(range(1, users * commits + 1)) else [f"snapshots {ids}"]
    snapshots = [read_snapshot(table.io, table.paths, snapshot_id) for snapshot_id in ids]
    made = Counter((s.commit_user, s.commit_identifier) for s in snapshots)
    names = {f"user{user}" for user in range(users)}
    wanted = Counter((name, n) for name in names for n in range(1, commits + 1))
    wrong += [f"{one}: {made[one]} times" for one in made | wanted if made[one] != wanted[one]]
    for name in names:
        mine = [s.commit_identifier for s in snapshots if s.commit_user == name]
        wrong += [] if mine == sorted(mine) else [f"{name} out of order: {mine}"]
    wrong += [] if [s.total_record_count for s in snapshots] == ids else ["counts of records"]
    files = sorted(f"{name}-{n}" for name in names for n in range(1, commits + 1))
    return wrong if live_names(table) == files else [*wrong, "files are not those committed"]
