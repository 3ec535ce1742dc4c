"""What ingestd overwrites, tags, branches and analyzes, judged by Java, and the other way round."""

import json
from pathlib import Path
from typing import Any

import pytest

from ingestd.paimon.table.commit.overwrite import drop_partitions, truncate_table
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.partition_spec import parse_partition_spec
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot, read_snapshot
from ingestd.paimon.table.metadata.time_travel import on_branch
from ingestd.paimon.table.retention.branches import create_branch, fast_forward
from ingestd.paimon.table.retention.consumers import consumers, reset_consumer
from ingestd.paimon.table.retention.tags import create_tag, delete_tags
from ingestd.paimon.table.system.analyze import analyze_table, read_statistics
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.every_type import COLUMNS, ROWS
from tests.support.native_tables import NOW_MS, native_table, open_native, put
from tests.support.oracle import Oracle
from tests.support.pypaimon import Pypaimon
from tests.support.stored_rows import stored_rows

pytestmark = pytest.mark.compat

KINDS: dict[str, dict[str, Any]] = {
    "fixed": {"keys": ["id", "dt"], "options": {"bucket": "2"}},
    "dynamic": {"keys": ["id", "dt"], "options": {"bucket": "-1"}},
    "append": {"options": {"bucket": "-1"}},
}


@pytest.fixture(params=sorted(KINDS))
def table(request: pytest.FixtureRequest, tmp_path: Path) -> FileStoreTable:
    columns = [("id", "INT"), ("dt", "DATE"), ("v", "STRING")]
    made = native_table(tmp_path, columns, partitions=["dt"], **KINDS[request.param])
    put(made, [{"id": n, "dt": 19000 + n % 3, "v": "x"} for n in range(12)])
    return made


def ids(rows: list[dict[str, Any]]) -> list[int]:
    return sorted(row["id"] for row in rows)


def judged(oracle: Oracle, pypaimon: Pypaimon, table: FileStoreTable, warehouse: Path) -> list[int]:
    """Keys of the table, on which all readers agree; no one finds anything wrong."""
    assert oracle.fsck(warehouse, "db", "t", "--all") == []
    assert verify(table) == []
    found = ids(oracle.read(warehouse, "db", "t"))
    assert ids(pypaimon.read(warehouse, "db", "t").to_pylist()) == found
    assert ids(stored_rows(table)) == found
    return found


def test_dropped_partitions_and_emptied_tables(
    table: FileStoreTable, oracle: Oracle, pypaimon: Pypaimon, tmp_path: Path
) -> None:
    drop_partitions(table, [parse_partition_spec(table, "dt=2022-01-09")], now_ms=NOW_MS)
    assert judged(oracle, pypaimon, table, tmp_path) == [0, 2, 3, 5, 6, 8, 9, 11]
    oracle.append(tmp_path, "db", "t", [{"id": 1, "dt": "2022-01-09", "v": "java"}], tmp_path)
    put(table, [{"id": 4, "dt": 19001, "v": "ours"}])
    assert judged(oracle, pypaimon, table, tmp_path) == [0, 1, 2, 3, 4, 5, 6, 8, 9, 11]
    truncate_table(table, now_ms=NOW_MS)
    assert judged(oracle, pypaimon, table, tmp_path) == []
    oracle.append(tmp_path, "db", "t", [{"id": 7, "dt": "2022-01-09", "v": "java"}], tmp_path)
    assert judged(oracle, pypaimon, table, tmp_path) == [7]


def test_tags_and_branches_are_those_of_java(oracle: Oracle, tmp_path: Path) -> None:
    table = native_table(tmp_path, [("id", "INT"), ("v", "STRING")], keys=["id"])
    for number in range(3):
        put(table, [{"id": number, "v": "x"}])
    create_tag(table, "two", read_snapshot(table.io, table.paths, 2), now_ms=NOW_MS)
    create_tag(
        table, "short", read_snapshot(table.io, table.paths, 1), retained_ms=90_500, now_ms=NOW_MS
    )
    listed = {one["tag_name"]: one for one in oracle("read", tmp_path, "db", "t$tags")}
    assert (listed["two"]["snapshot_id"], listed["two"]["time_retained"]) == (2, None)
    assert (listed["short"]["snapshot_id"], listed["short"]["time_retained"]) == (1, "PT1M30.5S")
    assert ids(oracle.read(tmp_path, "db", "t", "--tag", "two")) == [0, 1]
    delete_tags(table, "short")
    branch = create_branch(table, "fix", "two")
    put(branch, [{"id": 50, "v": "ours"}])
    oracle.append(tmp_path, "db", "t$branch_fix", [{"id": 51, "v": "java"}], tmp_path)
    assert ids(oracle.read(tmp_path, "db", "t$branch_fix")) == [0, 1, 50, 51]
    assert ids(stored_rows(branch)) == [0, 1, 50, 51]
    assert verify(branch) == []
    fast_forward(table, "fix")
    forwarded = on_branch(table, "main")
    assert ids(oracle.read(tmp_path, "db", "t")) == ids(stored_rows(forwarded)) == [0, 1, 50, 51]
    assert oracle.fsck(tmp_path, "db", "t", "--all") == []
    oracle.append(tmp_path, "db", "t", [{"id": 60, "v": "java"}], tmp_path)
    assert ids(stored_rows(forwarded)) == [0, 1, 50, 51, 60]
    reset_consumer(table, "c", 3)
    assert oracle("read", tmp_path, "db", "t$consumers") == [
        {"consumer_id": c, "next_snapshot_id": n} for c, n in consumers(table).items()
    ]


def test_statistics_of_every_type_are_read_by_java(oracle: Oracle, tmp_path: Path) -> None:
    table = native_table(tmp_path, COLUMNS, keys=["id"], options={"bucket": "1"})
    put(table, ROWS)
    analyze_table(table, now_ms=NOW_MS)
    (row,) = oracle("read", tmp_path, "db", "t$statistics")
    snapshot = latest_snapshot(table.io, table.paths)
    assert snapshot is not None
    found = read_statistics(table, snapshot)
    assert found is not None
    assert json.loads(row["colstat"]) == found.document()["colStats"]
    assert row["mergedRecordCount"] == len(ROWS)
    oracle.append(tmp_path, "db", "t", [{"id": 1000}], tmp_path)
    inherited = latest_snapshot(table.io, table.paths)
    assert inherited is not None
    assert (inherited.id, inherited.statistics) == (3, snapshot.statistics)
    assert verify(open_native(tmp_path)) == []
