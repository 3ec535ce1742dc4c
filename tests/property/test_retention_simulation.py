"""What is deleted and what others begin to need at the same time, under every order of turns.

Expiry, tags, branches, rollbacks and writers are the real code over files in memory; only the
order of their calls is chosen. With INGESTD_LONG=1 the bound is one preemption more.
"""

import itertools
import os
from collections.abc import Callable, Mapping

import pytest

from ingestd.errors import ArgumentError, CommitConflictError, ConfigError
from ingestd.paimon.io.file_io import FileIO, MemoryFileIO
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import (
    latest_snapshot,
    read_snapshot,
    requested_snapshot,
    snapshot_ids,
)
from ingestd.paimon.table.metadata.time_travel import tagged_snapshot, tagged_snapshots
from ingestd.paimon.table.retention.branches import create_branch
from ingestd.paimon.table.retention.expire_changelogs import expire_changelogs
from ingestd.paimon.table.retention.expire_plan import ExpireSettings, expire_settings
from ingestd.paimon.table.retention.expire_snapshots import expire_snapshots
from ingestd.paimon.table.retention.referenced_files import all_branches, files_of
from ingestd.paimon.table.retention.rollback import plan_rollback, rollback
from ingestd.paimon.table.retention.tags import create_tag, delete_tags
from tests.property.commit_actors import World
from tests.support.interleaving import Actor, Bound, explore
from tests.support.metadata_tables import NOW_MS, with_io

DEEPER = int("INGESTD_LONG" in os.environ)
Cast = Callable[["Kept"], Mapping[str, Actor]]
_FEW = {
    "snapshot.num-retained.min": "1",
    "snapshot.num-retained.max": "1",
    "snapshot.time-retained": "0 ms",
}
_CHANGES = {"changelog.num-retained.min": "2", "changelog.num-retained.max": "2"}
OLD, NEW = 3, 5
"""A snapshot whose files a later one has replaced, and the newest."""


class Kept:
    """A table with three commits, a compaction and another commit; who works on it, and how."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.table, self.io = world.table, world.io
        self.rolled_back = False

    def expirer(self, **options: str) -> Actor:
        settings = expire_settings({**_FEW, **_CHANGES, **options} if options else _FEW)
        return self._actor(lambda table: _expire(table, settings))

    def tagger(self) -> Actor:
        def tag(table: FileStoreTable) -> None:
            at = requested_snapshot(table.io, table.paths, OLD)
            create_tag(table, "late", at, now_ms=NOW_MS)

        return self._actor(tag)

    def untagger(self) -> Actor:
        return self._actor(lambda table: delete_tags(table, "old"))

    def brancher(self) -> Actor:
        return self._actor(lambda table: create_branch(table, "b", "old"))

    def roller(self, tag: str | None = None) -> Actor:
        def roll_back(table: FileStoreTable) -> None:
            at = (
                requested_snapshot(table.io, table.paths, OLD)
                if tag is None
                else tagged_snapshot(table, tag)
            )
            rollback(table, plan_rollback(table, at))
            self.rolled_back = True

        return self._actor(roll_back)

    def check(self) -> None:
        """Whatever exists can be read, and a table that was rolled back is what it was."""
        for line in all_branches(self.table):
            ids = snapshot_ids(line.io, line.paths)
            assert ids == list(range(ids[0], ids[-1] + 1))
            newest = latest_snapshot(line.io, line.paths)
            assert newest is not None
            assert newest.id == ids[-1]
            snapshots = [read_snapshot(line.io, line.paths, id_) for id_ in ids]
            for snapshot in (*snapshots, *tagged_snapshots(line).values()):
                self._check_files(line, snapshot)
            for before, after in itertools.pairwise(snapshots):
                total = (before.total_record_count or 0) + (after.delta_record_count or 0)
                assert after.total_record_count == total
            if self.rolled_back and line.branch == "main":
                assert "before-4" not in self.world.held(newest)
                assert {"before-1", "before-2", "before-3"} <= set(self.world.held(newest))

    def _check_files(self, line: FileStoreTable, snapshot: Snapshot) -> None:
        missing = [path for path in files_of(line, snapshot) if not line.io.exists(path)]
        assert missing == []

    def _actor(self, work: Callable[[FileStoreTable], object]) -> Actor:
        """Do something once; what comes too late is refused."""

        def actor(io: FileIO) -> None:
            for _ in range(6):
                try:
                    work(with_io(self.table, io))
                    return
                except CommitConflictError:
                    continue  # a writer at work: roll back again
                except (ConfigError, ArgumentError) as error:
                    late = ("expired meanwhile", "has expired", "no tag", "deleted meanwhile")
                    assert any(text in error.message for text in (*late, "does not exist")), error
                    return

        return actor


def _expire(table: FileStoreTable, settings: ExpireSettings) -> None:
    expire_snapshots(table, settings, NOW_MS + 1)
    expire_changelogs(table, settings, NOW_MS + 1)


def noticed(operation: str, path: str) -> bool:
    """Whether others could notice a call: files of snapshots, tags, branches, and deletions."""
    if operation == "delete_quietly":
        return True
    return any(part in path for part in ("/snapshot", "/tag", "/branch", "/changelog"))


CASTS: Mapping[str, Cast] = {
    "a tag of a snapshot that expires": lambda kept: {
        "expiry": kept.expirer(),
        "tag": kept.tagger(),
    },
    "a rollback to a snapshot that expires": lambda kept: {
        "expiry": kept.expirer(),
        "rollback": kept.roller(),
    },
    "a rollback beside a writer": lambda kept: {
        "a": kept.world.writer("a", 1),
        "rollback": kept.roller(),
    },
    "a rollback beside a compaction": lambda kept: {
        "compactor": kept.world.compactor(),
        "rollback": kept.roller(),
    },
    "two expiries, which keep changes": lambda kept: {
        "one": kept.expirer(**_CHANGES),
        "two": kept.expirer(**_CHANGES),
    },
    "a rollback to a tag that is deleted": lambda kept: {
        "untag": kept.untagger(),
        "rollback": kept.roller("old"),
    },
    "a branch of a tag that is deleted": lambda kept: {
        "untag": kept.untagger(),
        "branch": kept.brancher(),
    },
    "expiry beside a branch of a tag": lambda kept: {
        "expiry": kept.expirer(),
        "branch": kept.brancher(),
    },
}


def _made(tagged: bool) -> World:
    world = World.new().filled("before", 3)
    world.compactor()(world.io)
    world = world.filled("before", 4)
    if tagged:
        at = read_snapshot(world.io, world.table.paths, OLD)
        create_tag(world.table, "old", at, now_ms=NOW_MS)
        expire_snapshots(world.table, expire_settings(_FEW), NOW_MS + 1)
    return world


@pytest.mark.parametrize("name", CASTS)
def test_in_no_order_of_turns_a_file_that_is_needed_goes(name: str) -> None:
    start = _made(tagged=name.endswith("deleted"))
    if name == "expiry beside a branch of a tag":
        at = read_snapshot(start.io, start.table.paths, OLD)
        create_tag(start.table, "old", at, now_ms=NOW_MS)

    def world() -> tuple[FileIO, Mapping[str, Actor], Callable[[], None]]:
        kept = Kept(start.copy())
        io: MemoryFileIO = kept.io
        return io, CASTS[name](kept), kept.check

    assert explore(world, Bound(1 + DEEPER), noticed) > 10
