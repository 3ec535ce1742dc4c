"""Java goes on with tables whose index, buckets or order ingestd has rebuilt."""

from pathlib import Path
from typing import Any

import pytest

from ingestd.paimon.spec.binary_row import serialize_row
from ingestd.paimon.spec.schema_change import SetOption
from ingestd.paimon.spec.snapshot import BATCH_COMMIT_IDENTIFIER
from ingestd.paimon.table.buckets.hash_index import HASH_CACHE
from ingestd.paimon.table.commit.table_commit import commit
from ingestd.paimon.table.compact.table_compact import compact_table
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.rewrite.index_repair import repair_hash_index
from ingestd.paimon.table.rewrite.rescale import rescale
from ingestd.paimon.table.rewrite.sort_compact import sort_compact
from ingestd.paimon.table.verify.table_verify import verify
from ingestd.paimon.table.write.commit_message import ManifestCommittable
from ingestd.paimon.table.write.table_write import data_file_names, write_bucket
from tests.support.native_tables import (
    NOW_MS,
    alter,
    native_table,
    open_native,
    put,
    rows_table,
)
from tests.support.oracle import Oracle

pytestmark = pytest.mark.compat

COLUMNS = [("p", "INT"), ("id", "INT"), ("v", "STRING")]
Rows = list[dict[str, Any]]


def sent(keys: range, text: str) -> Rows:
    return [{"p": n % 2, "id": n, "v": f"{text} {n}"} for n in keys]


def found(oracle: Oracle, warehouse: Path) -> dict[int, str]:
    rows = oracle.read(warehouse, "db", "t")
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: row["v"] for row in rows}


def java_goes_on(oracle: Oracle, warehouse: Path, wanted: dict[int, str]) -> None:
    """Java finds the table sound, updates old keys and adds new ones, and compacts."""
    assert found(oracle, warehouse) == wanted
    assert oracle.fsck(warehouse, "db", "t") == []
    java = sent(range(30, 80), "java")
    oracle.append(warehouse, "db", "t", java, warehouse, "--user", "java", "--identifier", "1")
    oracle.compact(warehouse, "db", "t")
    assert found(oracle, warehouse) == wanted | {row["id"]: row["v"] for row in java}
    assert oracle.fsck(warehouse, "db", "t") == []
    assert verify(open_native(warehouse)) == []


@pytest.mark.parametrize("lost", ["files", "manifest"])
def test_java_doubles_no_key_after_a_lost_index_was_repaired(
    lost: str, tmp_path: Path, oracle: Oracle
) -> None:
    options = {"bucket": "-1", "dynamic-bucket.target-row-num": "8"}
    keys = ["p", "id"]
    table = native_table(tmp_path, COLUMNS, keys=keys, partitions=["p"], options=options)
    put(table, sent(range(40), "old"))
    put(table, sent(range(35, 50), "new"))
    state = load_state(table)
    assert state.snapshot is not None
    gone = [table.paths.index(entry.file_name) for entry in state.index_entries.values()]
    if lost == "manifest":
        gone = [table.paths.manifest(str(state.snapshot.index_manifest))]
    for path in gone:
        table.io.delete_quietly(path)
        HASH_CACHE.discard(path)
    assert oracle.fsck(tmp_path, "db", "t") != []
    assert repair_hash_index(table, now_ms=NOW_MS).snapshot is not None
    wanted = {row["id"]: row["v"] for row in (*sent(range(40), "old"), *sent(range(35, 50), "new"))}
    java_goes_on(oracle, tmp_path, wanted)


def test_java_goes_on_after_doubled_keys_were_dropped(tmp_path: Path, oracle: Oracle) -> None:
    options = {"bucket": "-1", "dynamic-bucket.target-row-num": "8"}
    keys = ["p", "id"]
    table = native_table(tmp_path, COLUMNS, keys=keys, partitions=["p"], options=options)
    put(table, sent(range(40), "old"))
    compact_table(table, now_ms=NOW_MS, full=True)
    new, names = sent(range(10, 20, 2), "new"), data_file_names(table)
    partition = serialize_row(table.partition_types, (0,))
    rows = rows_table(table.schema, new, 100)
    message = write_bucket(table, partition, 7, rows, new_name=names)
    committable = ManifestCommittable(BATCH_COMMIT_IDENTIFIER, (message,))
    commit(table, "u", committable, state=load_state(table), now_ms=NOW_MS)
    assert len(oracle.read(tmp_path, "db", "t")) == 45
    assert oracle.fsck(tmp_path, "db", "t") != []
    done = repair_hash_index(table, now_ms=NOW_MS, drop_doubled=True)
    assert done.dropped is not None
    assert done.dropped.rows == 5
    wanted = {row["id"]: row["v"] for row in (*sent(range(40), "old"), *new)}
    java_goes_on(oracle, tmp_path, wanted)


@pytest.mark.parametrize(("before", "after"), [(2, 4), (3, 2)])
def test_java_goes_on_in_the_new_buckets(
    before: int, after: int, tmp_path: Path, oracle: Oracle
) -> None:
    options = {"bucket": str(before)}
    keys = ["p", "id"]
    table = native_table(tmp_path, COLUMNS, keys=keys, partitions=["p"], options=options)
    put(table, sent(range(60), "old"))
    put(table, [{"p": 0, "id": 4, "v": "old 4", "_kind": 3}, *sent(range(50, 60), "new")])
    compact_table(table, now_ms=NOW_MS)
    wanted = {row["id"]: row["v"] for row in (*sent(range(60), "old"), *sent(range(50, 60), "new"))}
    del wanted[4]
    table = alter(table, SetOption("bucket", str(after)))
    assert list(rescale(table, after, clock_ms=lambda: NOW_MS))
    java_goes_on(oracle, tmp_path, wanted)


def test_java_goes_on_with_deletion_vectors_in_the_new_buckets(
    tmp_path: Path, oracle: Oracle
) -> None:
    options = {"bucket": "2", "deletion-vectors.enabled": "true"}
    table = native_table(tmp_path, COLUMNS, keys=["id"], options=options)
    put(table, sent(range(60), "old"))
    compact_table(table, now_ms=NOW_MS)
    put(table, sent(range(50, 60), "new"))
    compact_table(table, now_ms=NOW_MS)
    table = alter(table, SetOption("bucket", "3"))
    assert list(rescale(table, 3, clock_ms=lambda: NOW_MS))
    wanted = {row["id"]: row["v"] for row in (*sent(range(60), "old"), *sent(range(50, 60), "new"))}
    java_goes_on(oracle, tmp_path, wanted)


@pytest.mark.parametrize("strategy", ["order", "zorder"])
def test_java_reads_sorted_append_tables_and_goes_on(
    strategy: str, tmp_path: Path, oracle: Oracle
) -> None:
    table = native_table(tmp_path, COLUMNS, partitions=["p"])
    for turn in range(3):
        put(table, sent(range(20 * turn, 20 * turn + 20), "old"))
    done = list(sort_compact(table, ["v", "id"], strategy, clock_ms=lambda: NOW_MS))
    assert len(done) == 2
    rows = oracle.read(tmp_path, "db", "t")
    assert {row["id"]: row["v"] for row in rows} == {n: f"old {n}" for n in range(60)}
    assert oracle.fsck(tmp_path, "db", "t") == []
    java = sent(range(60, 70), "java")
    oracle.append(tmp_path, "db", "t", java, tmp_path, "--user", "java", "--identifier", "1")
    assert len(found(oracle, tmp_path)) == 70
    assert verify(open_native(tmp_path)) == []
