from dataclasses import replace
from pathlib import Path

import pytest

from ingestd.errors import ConfigError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.snapshot import encode_snapshot
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import read_snapshot
from ingestd.paimon.table.metadata.time_travel import (
    branch_names,
    on_branch,
    snapshot_as_of,
    tag_names,
    tagged_snapshot,
)
from ingestd.paimon.table.read.table_read import read_table
from tests.support.native_tables import NOW_MS, native_table, put


@pytest.fixture
def table() -> FileStoreTable:
    made = native_table("/w", [("k", "INT")], io=MemoryFileIO())
    for k in range(3):
        put(made, [{"k": k}])
    return made


def test_tags_are_copies_of_snapshots(table: FileStoreTable) -> None:
    data = table.io.read_bytes(table.paths.snapshot(2))
    table.io.write_new(f"{table.paths.tag_dir}/tag-then", data)
    table.io.delete_quietly(table.paths.snapshot(2))
    assert tag_names(table.io, table.paths) == ["then"]
    assert tagged_snapshot(table, "then").id == 2
    with pytest.raises(ConfigError, match="no tag 'now'; its tags: then"):
        tagged_snapshot(table, "now")


def test_a_point_in_time_means_the_newest_snapshot_before_it(table: FileStoreTable) -> None:
    assert snapshot_as_of(table, NOW_MS).id == 3
    assert snapshot_as_of(table, NOW_MS + 1).id == 3
    with pytest.raises(ConfigError, match="no snapshot at or before that time"):
        snapshot_as_of(table, NOW_MS - 1)
    for number, millis in ((1, 10), (2, 20), (3, 30)):
        snapshot = replace(read_snapshot(table.io, table.paths, number), time_millis=millis)
        table.io.overwrite(table.paths.snapshot(number), encode_snapshot(snapshot))
    assert [snapshot_as_of(table, at).id for at in (10, 19, 20, 29, 31)] == [1, 1, 2, 2, 3]


def test_branches_share_files_and_have_snapshots_of_their_own(table: FileStoreTable) -> None:
    root = Path(table.path)
    for name in ("schema/schema-0", "snapshot/snapshot-1"):
        table.io.write_new(f"{root}/branch/branch-b/{name}", table.io.read_bytes(f"{root}/{name}"))
    branch = on_branch(table, "b")
    assert branch_names(table.io, table.paths) == ["b"]
    assert read_table(branch).to_pydict() == {"k": [0]}
    assert read_table(table).num_rows == 3
    assert read_snapshot(branch.io, branch.paths, 1).id == 1
    with pytest.raises(ConfigError, match="no branch 'c'; its branches: main, b"):
        on_branch(table, "c")
