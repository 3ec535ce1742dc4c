"""Whatever happens to a table: what is kept stays readable, and what is of no use can be found."""

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.table.commit.overwrite import drop_partitions, truncate_table
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import find_snapshot, snapshot_ids
from ingestd.paimon.table.metadata.time_travel import tag_names, tagged_snapshot
from ingestd.paimon.table.read.table_read import TableReader
from ingestd.paimon.table.retention.branches import create_branch
from ingestd.paimon.table.retention.expire_plan import expire_settings
from ingestd.paimon.table.retention.expire_snapshots import expire_snapshots
from ingestd.paimon.table.retention.orphans import find_orphans, remove_orphans
from ingestd.paimon.table.retention.referenced_files import all_branches, files_of
from ingestd.paimon.table.retention.rollback import plan_rollback, rollback
from ingestd.paimon.table.retention.tags import create_tag, delete_tags
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.examples import examples
from tests.support.native_tables import NOW_MS, native_table, put

LATER = NOW_MS + 10_000_000
Rows = list[tuple[Any, ...]]


def rows_of(line: FileStoreTable, snapshot: Snapshot) -> Rows:
    parts = [row.to_pylist() for row in TableReader(line).rows(snapshot)]
    return sorted(tuple(row.values()) for part in parts for row in part)


class Life:
    """A table, and what each of its snapshots, tags and branches held when it was made."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        columns = [("id", "INT"), ("p", "INT"), ("v", "INT")]
        self.io = MemoryFileIO()
        self.table = native_table(
            "/w", columns, keys=["id", "p"], partitions=["p"], options={"bucket": "2"}, io=self.io
        )
        self.known: dict[tuple[int, str], Rows] = {}
        self.step = 0

    def lines(self) -> list[FileStoreTable]:
        return all_branches(self.table)

    def check(self) -> None:
        for line in self.lines():
            kept = [
                find_snapshot(line.io, line.paths, n) for n in snapshot_ids(line.io, line.paths)
            ]
            kept += [tagged_snapshot(line, name) for name in tag_names(line.io, line.paths)]
            for snapshot in filter(None, kept):
                found = rows_of(line, snapshot)
                key = (snapshot.id, snapshot.delta_manifest_list)
                assert self.known.setdefault(key, found) == found

    def do(self, action: str) -> None:
        self.step += 1
        line = self.random.choice(self.lines())
        ids = snapshot_ids(line.io, line.paths)
        getattr(self, f"_{action}")(line, ids)
        self.check()

    def _put(self, line: FileStoreTable, ids: list[int]) -> None:
        rows = [
            {"id": self.random.randrange(9), "p": self.random.randrange(3), "v": self.step}
            for _ in range(3)
        ]
        put(line, list({(row["id"], row["p"]): row for row in rows}.values()), identifier=self.step)

    def _truncate(self, line: FileStoreTable, ids: list[int]) -> None:
        truncate_table(line, now_ms=NOW_MS)

    def _drop(self, line: FileStoreTable, ids: list[int]) -> None:
        drop_partitions(line, [{"p": self.random.randrange(3)}], now_ms=NOW_MS)

    def _tag(self, line: FileStoreTable, ids: list[int]) -> None:
        snapshot = find_snapshot(line.io, line.paths, self.random.choice([*ids, 0]))
        if snapshot is not None:
            create_tag(line, f"t{self.step}", snapshot, now_ms=NOW_MS)

    def _untag(self, line: FileStoreTable, ids: list[int]) -> None:
        names = tag_names(line.io, line.paths)
        if names:
            delete_tags(line, self.random.choice(names))

    def _branch(self, line: FileStoreTable, ids: list[int]) -> None:
        names = tag_names(self.table.io, self.table.paths)
        if names and len(self.lines()) < 3:
            create_branch(self.table, f"b{self.step}", self.random.choice(names))

    def _expire(self, line: FileStoreTable, ids: list[int]) -> None:
        options = {"snapshot.num-retained.min": str(self.random.randrange(1, 4))}
        expire_snapshots(line, expire_settings(options), LATER)

    def _back(self, line: FileStoreTable, ids: list[int]) -> None:
        names = tag_names(line.io, line.paths)
        snapshot = find_snapshot(line.io, line.paths, self.random.choice([*ids, 0]))
        if names and self.random.randrange(2):
            snapshot = tagged_snapshot(line, self.random.choice(names))
        if snapshot is not None:
            rollback(line, plan_rollback(line, snapshot))

    def _clean(self, line: FileStoreTable, ids: list[int]) -> None:
        remove_orphans(self.table, find_orphans(self.table, LATER))


ACTIONS = ["put", "put", "put", "truncate", "drop", "tag", "untag", "branch", "expire", "expire",
           "back", "clean"]  # fmt: skip


@settings(max_examples=examples(8))
@given(st.integers(0, 2**32), st.lists(st.sampled_from(ACTIONS), min_size=4, max_size=16))
def test_a_table_keeps_what_it_promises(seed: int, actions: list[str]) -> None:
    life = Life(seed)
    life.do("put")
    for action in actions:
        life.do(action)
    life.do("clean")
    assert [finding for line in life.lines() for finding in verify(line)] == []
    assert find_orphans(life.table, LATER).files == ()


@settings(max_examples=examples(4))
@given(st.integers(0, 2**32), st.lists(st.sampled_from(ACTIONS[:6]), min_size=4, max_size=12))
def test_expiry_alone_leaves_no_orphans(seed: int, actions: list[str]) -> None:
    """Without rollbacks, branches and deleted tags nothing is left for the clean-up."""
    life = Life(seed)
    for action in ["put", *actions, "expire"]:
        life.do(action)
    assert find_orphans(life.table, LATER).files == ()


def test_a_branch_without_a_schema_keeps_its_files() -> None:
    """Its creation has copied the snapshot, and not yet the schemas."""
    life = Life(1)
    life.do("put")
    life.do("put")
    root = life.table.paths.root
    life.io.write_new(f"{root}/branch/branch-x/snapshot/snapshot-1", _snapshot(life, 1))
    life.do("truncate")
    expire_snapshots(life.table, expire_settings({"snapshot.num-retained.min": "1"}), LATER)
    remove_orphans(life.table, find_orphans(life.table, LATER))
    branch = next(line for line in life.lines() if line.branch == "x")
    kept = find_snapshot(branch.io, branch.paths, 1)
    assert kept is not None
    assert all(life.io.exists(path) for path in files_of(branch, kept))


def _snapshot(life: Life, number: int) -> bytes:
    return life.io.read_bytes(life.table.paths.snapshot(number))
