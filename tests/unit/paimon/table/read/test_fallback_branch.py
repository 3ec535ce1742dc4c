"""What is read of a fallback branch; `tests/compat/test_fallback_branch.py` asks Java."""

from dataclasses import replace

import pytest

from ingestd.errors import ConfigError, UnsupportedError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.schema import encode_schema
from ingestd.paimon.spec.schema_change import SetOption
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.metadata.time_travel import on_branch
from ingestd.paimon.table.read.fallback_branch import (
    fallback_branch,
    snapshot_rows,
    visible_partitions,
)
from ingestd.paimon.table.read.scan_options import ScanTarget, scan_target
from ingestd.paimon.table.read.table_read import TableReader
from ingestd.paimon.table.retention.branches import create_branch
from tests.support.native_tables import alter, native_table, put


@pytest.fixture
def table() -> FileStoreTable:
    """Partition a in the table, a and b in its branch `fb`."""
    columns = [("p", "STRING"), ("id", "INT")]
    table = native_table("/w", columns, keys=["p", "id"], partitions=["p"], io=MemoryFileIO())
    branch = create_branch(table, "fb")
    put(table, [{"p": "a", "id": 1}])
    put(branch, [{"p": "a", "id": 2}, {"p": "b", "id": 3}])
    return alter(table, SetOption("scan.fallback-branch", "fb"))


def ids(table: FileStoreTable, target: ScanTarget) -> list[int]:
    fallback = fallback_branch(table, target)
    parts = list(snapshot_rows(TableReader(table, ["id"]), target.snapshot, fallback))
    return sorted(id_ for part in parts for id_ in part.column("id").to_pylist())


def test_rows_of_both_branches(table: FileStoreTable) -> None:
    assert ids(table, scan_target(table)) == [1, 3]
    assert ids(table, ScanTarget()) == [2, 3], "without a snapshot, the table has no partition"
    assert ids(alter(table, SetOption("scan.fallback-branch", " ")), scan_target(table)) == [1]


def test_partitions_of_a_snapshot(table: FileStoreTable) -> None:
    branch = on_branch(table, "fb")
    newest = latest_snapshot(branch.io, branch.paths)
    assert len(visible_partitions(branch, newest)) == 2
    assert visible_partitions(branch, None) == frozenset()


def test_a_branch_that_selects_changes_is_refused(table: FileStoreTable) -> None:
    alter(on_branch(table, "fb"), SetOption("incremental-between", "0,1"))
    with pytest.raises(ConfigError, match="'fb' has the option 'incremental-between'"):
        fallback_branch(table, scan_target(table))


def test_a_branch_with_an_unsupported_option_is_refused(table: FileStoreTable) -> None:
    branch = on_branch(table, "fb")
    options = {**branch.schema.options, "pk-clustering-override": "true"}
    newer = replace(branch.schema, id=1, options=options)
    branch.io.overwrite(branch.paths.schema(1), encode_schema(newer))
    with pytest.raises(UnsupportedError, match=r"pk-clustering-override"):
        fallback_branch(table, scan_target(table))


def test_a_branch_that_does_not_exist_is_refused(table: FileStoreTable) -> None:
    other = alter(table, SetOption("scan.fallback-branch", "other"))
    with pytest.raises(ConfigError, match="has no branch 'other'"):
        fallback_branch(other, scan_target(other))


def test_changes_and_a_fallback_branch_exclude_each_other(table: FileStoreTable) -> None:
    other = alter(table, SetOption("incremental-between", "0,1"))
    with pytest.raises(ConfigError, match=r"'scan\.fallback-branch' exclude each other"):
        scan_target(other)
