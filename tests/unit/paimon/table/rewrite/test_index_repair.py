"""A hash index is rebuilt where it is lost or wrong, and nowhere else."""

import uuid
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ingestd.errors import CommitConflictError, ConfigError, FormatError, UnsupportedError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.index_manifest import IndexManifestEntry, encode_hash_index
from ingestd.paimon.spec.snapshot import CommitKind
from ingestd.paimon.table.buckets.hash_index import HASH_CACHE
from ingestd.paimon.table.commit.table_commit import commit
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.partition_spec import parse_partition_spec, partition_filter
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.read.table_read import read_table
from ingestd.paimon.table.rewrite import index_repair
from ingestd.paimon.table.rewrite.index_repair import repair_hash_index
from ingestd.paimon.table.verify.table_verify import verify
from ingestd.paimon.table.write.commit_message import CommitMessage, ManifestCommittable
from tests.support.native_tables import NOW_MS, native_table, put

OPTIONS = {"bucket": "-1", "dynamic-bucket.target-row-num": "4"}


def filled(**options: str) -> FileStoreTable:
    """Keys 0 to 9 in three buckets."""
    columns = [("id", "INT"), ("v", "STRING")]
    io = MemoryFileIO()
    table = native_table("/w", columns, keys=["id"], options={**OPTIONS, **options}, io=io)
    put(table, [{"id": n, "v": "old"} for n in range(10)])
    return table


def entries(table: FileStoreTable) -> dict[int, IndexManifestEntry]:
    return {entry.bucket: entry for entry in load_state(table).index_entries.values()}


def lose(table: FileStoreTable, bucket: int) -> None:
    path = table.paths.index(entries(table)[bucket].file_name)
    table.io.delete_quietly(path)
    HASH_CACHE.discard(path)


def hold(table: FileStoreTable, bucket: int, hashes: list[int]) -> None:
    """Commit an index file with other hashes for a bucket."""
    name, data = f"index-{uuid.uuid4()}-0", encode_hash_index(np.array(hashes, np.int32))
    table.io.write_new(table.paths.index(name), data)
    entry = replace(entries(table)[bucket], file_name=name, file_size=len(data),
                    row_count=len(hashes))  # fmt: skip
    message = CommitMessage(entry.partition, bucket, -1, new_index_files=(entry,))
    state = load_state(table)
    commit(table, "u", ManifestCommittable(9, (message,)), state=state, now_ms=NOW_MS)


def repair(table: FileStoreTable, **options: Any) -> index_repair.IndexRepair:
    return repair_hash_index(table, now_ms=NOW_MS, **options)


def rows(table: FileStoreTable) -> list[tuple[int, str]]:
    return sorted((row["id"], row["v"]) for row in read_table(table).to_pylist())


def test_what_is_right_stays_as_it_is() -> None:
    table = filled()
    done = repair(table)
    assert (done.buckets, done.wrong, done.shared, done.snapshot) == (3, (), (), None)
    newest = latest_snapshot(table.io, table.paths)
    assert newest is not None
    assert newest.id == 1


def test_a_lost_file_is_made_anew_and_no_key_is_doubled_afterwards() -> None:
    table = filled()
    kept = entries(table)
    lose(table, 1)
    with pytest.raises(FormatError, match="ingestd rebuild-index"):
        put(table, [{"id": 1, "v": "new"}])
    plan = repair(table, dry_run=True)
    assert (len(plan.wrong), plan.snapshot) == (1, None)
    assert verify(table) != []
    done = repair(table)
    (wrong,) = done.wrong
    assert (wrong.bucket, wrong.missing, wrong.problem) == (1, 4, "is missing")
    assert done.snapshot is not None
    assert done.snapshot.commit_kind is CommitKind.COMPACT
    assert done.snapshot.delta_record_count == 0
    now = entries(table)
    assert [now[n].file_name == kept[n].file_name for n in range(3)] == [True, False, True]
    assert verify(table) == []
    put(table, [{"id": n, "v": "new"} for n in range(12)])
    assert rows(table) == [(n, "new") for n in range(12)]


def test_an_index_of_a_table_that_cannot_be_written_is_only_looked_at() -> None:
    table = filled()
    lose(table, 1)
    options = {**table.schema.options, "commit.callbacks": "org.example.Callback"}
    refused = table.with_schema(replace(table.schema, options=options))
    assert len(repair(refused, dry_run=True).wrong) == 1
    with pytest.raises(UnsupportedError, match=r"commit\.callbacks"):
        repair(refused)
    assert len(repair(table, dry_run=True).wrong) == 1


def test_missing_and_foreign_hashes_are_put_right() -> None:
    table = filled()
    before = {n: decoded(table, n) for n in range(3)}
    hold(table, 0, [*before[0][:2], before[1][0]])
    done = repair(table)
    assert [(one.bucket, one.missing, one.foreign) for one in done.wrong] == [(0, 2, 1)]
    assert {n: decoded(table, n) for n in range(3)} == before
    assert verify(table) == []


def test_hashes_without_rows_are_no_harm() -> None:
    table = filled()
    hold(table, 2, [*decoded(table, 2), 12_345])
    assert repair(table).wrong == ()


def test_a_file_of_another_size_or_with_a_hash_twice_is_made_anew() -> None:
    table = filled()
    hold(table, 0, [*decoded(table, 0), decoded(table, 0)[0]])
    path = table.paths.index(entries(table)[1].file_name)
    table.io.delete_quietly(path)
    table.io.write_new(path, b"1234")
    assert [one.problem for one in repair(table).wrong] == [
        "holds a hash twice",
        "has 4 bytes, expected 16",
    ]
    assert verify(table) == []


def test_without_index_manifest_the_whole_index_is_made_anew() -> None:
    table = filled()
    snapshot = latest_snapshot(table.io, table.paths)
    assert snapshot is not None
    assert snapshot.index_manifest is not None
    table.io.delete_quietly(table.paths.manifest(snapshot.index_manifest))
    assert [one.problem for one in repair(table).wrong] == ["does not exist"] * 3
    assert verify(table) == []


def test_only_wanted_partitions_are_looked_at() -> None:
    columns = [("p", "INT"), ("id", "INT")]
    table = native_table(
        "/w", columns, keys=["p", "id"], partitions=["p"], options=OPTIONS, io=MemoryFileIO()
    )
    put(table, [{"p": n % 2, "id": n} for n in range(6)])
    for entry in load_state(table).index_entries.values():
        table.io.delete_quietly(table.paths.index(entry.file_name))
    HASH_CACHE.limit(0)
    try:
        wanted = partition_filter(table, [parse_partition_spec(table, "p=1")])
        assert repair(table, partition_filter=wanted).buckets == 1
        assert len(repair(table, dry_run=True).wrong) == 1
    finally:
        HASH_CACHE.limit(64 << 20)


def test_a_writer_that_was_first_wins_and_the_repair_plans_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = filled()
    hold(table, 0, [])
    plan, calls = index_repair._plan, []

    def and_then_somebody_writes(*arguments: Any) -> index_repair.IndexRepair:
        found = plan(*arguments)
        if not calls:
            put(table, [{"id": 77, "v": "x"}])
        calls.append(found)
        return found

    monkeypatch.setattr(index_repair, "_plan", and_then_somebody_writes)
    before = {path for path in table.io.files if "/index/" in path}  # type: ignore[attr-defined]
    done = repair(table)
    assert len(calls) == 2
    assert done.snapshot is not None
    assert verify(table) == []
    after = {path for path in table.io.files if "/index/" in path}  # type: ignore[attr-defined]
    # That of the other writer, and ours: nothing is left of the try that lost.
    assert len(after - before) == 2


def test_a_commit_that_relied_on_the_replaced_index_is_refused() -> None:
    table = filled()
    lose(table, 1)
    planned = load_state(table)
    assert repair(table).snapshot is not None
    entry = planned.index_entries.of_partition(next(iter(planned.index_entries))[0])[0]
    message = CommitMessage(entry.partition, entry.bucket, -1, new_index_files=(entry,))
    with pytest.raises(CommitConflictError, match="hash index"):
        commit(table, "u", ManifestCommittable(5, (message,)), state=planned, now_ms=NOW_MS)


def test_tables_without_a_hash_index_are_refused_by_name() -> None:
    table = native_table("/w", [("id", "INT")], keys=["id"], options={"bucket": "2"},
                         io=MemoryFileIO())  # fmt: skip
    with pytest.raises(ConfigError, match=r"db\.t has no hash index"):
        repair(table)


def decoded(table: FileStoreTable, bucket: int) -> list[int]:
    data = table.io.read_bytes(table.paths.index(entries(table)[bucket].file_name))
    found: list[int] = sorted(np.frombuffer(data, ">i4").tolist())
    return found
