"""Snapshots that a server makes visible instead of a file."""

import pickle
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import pytest

from ingestd.errors import CommitUnknownError, StorageError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.snapshot import Snapshot, encode_snapshot
from ingestd.paimon.table.metadata.catalog_commit import PartitionChange
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import snapshot_ids
from tests.support.native_tables import native_table, put
from tests.support.stored_rows import stored_rows

QUICK = {
    "commit.min-retry-wait": "1 ms",
    "commit.max-retry-wait": "1 ms",
    "commit.max-retries": "3",
}


@dataclass
class Server:
    """Writes the snapshot files itself; `lost` answers get lost before or after that."""

    table: FileStoreTable
    lost: list[str] = field(default_factory=list)
    asked: list[tuple[str, int, list[PartitionChange]]] = field(default_factory=list)

    def commit(self, branch: str, snapshot: Snapshot, changes: Iterable[PartitionChange]) -> bool:
        self.asked.append((branch, snapshot.id, list(changes)))
        lost = self.lost.pop(0) if self.lost else ""
        if lost == "before":
            raise StorageError("no answer")
        path = self.table.paths.snapshot(snapshot.id)
        made = self.table.io.try_write_atomic(path, encode_snapshot(snapshot))
        if lost == "after":
            raise StorageError("no answer")
        return made


def served(*lost: str) -> tuple[FileStoreTable, Server]:
    columns = [("id", "INT"), ("dt", "DATE")]
    options = {"bucket": "1", **QUICK}
    table = native_table(
        "/w", columns, keys=["id", "dt"], partitions=["dt"], options=options, io=MemoryFileIO()
    )
    server = Server(table, list(lost))
    return replace(table, snapshot_commit=server), server


def test_the_server_gets_what_each_partition_gains() -> None:
    table, server = served()
    put(table, [{"id": 1, "dt": 19857}, {"id": 2, "dt": 19857}, {"id": 3, "dt": 0}])
    (branch, snapshot_id, changes) = server.asked[0]
    assert (branch, snapshot_id) == ("main", 1)
    assert {(change.spec["dt"], change.record_count, change.file_count) for change in changes} == {
        ("19857", 2, 1),
        ("0", 1, 1),
    }
    assert not table.io.exists(table.paths.latest_hint)
    assert len(stored_rows(table)) == 3


@pytest.mark.parametrize("lost", [["before"], ["after"], ["before", "before", "after"]])
def test_a_lost_answer_commits_once(lost: list[str]) -> None:
    table, server = served(*lost)
    assert put(table, [{"id": 1, "dt": 1}]).status == "committed"
    assert snapshot_ids(table.io, table.paths) == [1]
    assert len(server.asked) == len(lost) + (lost[-1] == "before")


def test_a_server_that_never_answers_leaves_the_outcome_open() -> None:
    table, _ = served(*["before"] * 20)
    with pytest.raises(CommitUnknownError):
        put(table, [{"id": 1, "dt": 1}])


def test_tasks_get_the_table_without_the_server() -> None:
    table, _ = served()
    assert pickle.loads(pickle.dumps(table)).snapshot_commit is None
    assert "Server" not in repr(table)
