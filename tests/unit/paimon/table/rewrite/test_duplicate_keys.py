"""Of keys in several buckets the newest rows stay, and nothing else is touched."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from ingestd.errors import CommitConflictError, ConfigError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.binary_row import EMPTY_ROW
from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.spec.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind
from ingestd.paimon.table.buckets.hash_index import key_hashes
from ingestd.paimon.table.commit.table_commit import commit
from ingestd.paimon.table.compact.table_compact import compact_table
from ingestd.paimon.table.metadata.file_store_scan import live_entries
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.read.incremental_read import read_changelog
from ingestd.paimon.table.read.table_read import read_table
from ingestd.paimon.table.rewrite.bucket_keys import SharedHash
from ingestd.paimon.table.rewrite.duplicate_keys import drop_older, refuse_undecided
from ingestd.paimon.table.rewrite.index_repair import IndexRepair, repair_hash_index
from ingestd.paimon.table.verify.table_verify import verify
from ingestd.paimon.table.write.commit_message import ManifestCommittable
from ingestd.paimon.table.write.table_write import data_file_names, write_bucket
from tests.support.native_tables import NOW_MS, native_table, put, rows_table

OPTIONS = {"bucket": "-1", "dynamic-bucket.target-row-num": "4"}
DELETE = 3


def new_table(**options: str) -> FileStoreTable:
    columns = [("id", "INT"), ("v", "STRING")]
    given = {**OPTIONS, **options}
    return native_table("/w", columns, keys=["id"], options=given, io=MemoryFileIO())


def filled(**options: str) -> FileStoreTable:
    """Keys 0 to 9 in buckets 0 to 2, all in the highest level."""
    table = new_table(**options)
    put(table, [{"id": n, "v": "old"} for n in range(10)])
    compact_table(table, now_ms=NOW_MS, full=True)
    return table


def write(table: FileStoreTable, bucket: int, first: int, kinds: Mapping[int, int]) -> None:
    """Rows in a bucket that no index tells of, numbered from `first`; keys with their kinds."""
    given = [{"id": key, "v": f"{first}", "_kind": kind} for key, kind in kinds.items()]
    rows, names = rows_table(table.schema, given, first), data_file_names(table)
    message = write_bucket(table, EMPTY_ROW, bucket, rows, new_name=names)
    committable = ManifestCommittable(BATCH_COMMIT_IDENTIFIER, (message,))
    commit(table, "u", committable, state=load_state(table), now_ms=NOW_MS)


def repair(table: FileStoreTable) -> IndexRepair:
    return repair_hash_index(table, now_ms=NOW_MS, drop_doubled=True)


def rows(table: FileStoreTable) -> list[tuple[int, str]]:
    return sorted((row["id"], row["v"]) for row in read_table(table).to_pylist())


def files(table: FileStoreTable, bucket: int) -> list[DataFileMeta]:
    entries = live_entries(table, load_state(table).manifests)
    return [entry.file for entry in entries if entry.bucket == bucket]


def test_older_rows_go_and_their_files_stay_in_their_level() -> None:
    table = filled()
    levels = {file.level for bucket in range(3) for file in files(table, bucket)}
    untouched = files(table, 2)
    write(table, 7, 100, {1: 0, 2: 0, 5: 0})
    assert len(rows(table)) == 13
    told = read_changelog(table).num_rows
    done = repair(table)
    assert done.dropped is not None
    assert done.dropped.snapshot is not None
    assert (done.dropped.rows, done.dropped.files) == (3, 2)
    assert done.dropped.snapshot.commit_kind is CommitKind.COMPACT
    assert done.dropped.snapshot.delta_record_count == -3
    assert rows(table) == [(n, "100" if n in (1, 2, 5) else "old") for n in range(10)]
    assert read_changelog(table).num_rows == told
    assert {file.level for bucket in range(3) for file in files(table, bucket)} == levels
    assert files(table, 2) == untouched
    assert verify(table) == []
    again = repair(table)
    assert (again.shared, again.wrong) == ((), ())
    assert again.dropped is not None
    assert again.dropped.snapshot is None
    put(table, [{"id": n, "v": "new"} for n in range(10)])
    assert rows(table) == [(n, "new") for n in range(10)]


def test_all_rows_of_the_key_go_deleted_ones_too_and_files_without_rows() -> None:
    table = new_table()
    write(table, 0, 0, {1: 0, 2: 0})
    write(table, 0, 10, {1: DELETE})
    write(table, 0, 20, {1: 0})
    write(table, 1, 30, {1: 0})
    done = repair(table)
    assert done.dropped is not None
    assert (done.dropped.rows, done.dropped.files) == (3, 3)
    assert [file.row_count for file in files(table, 0)] == [1]
    assert rows(table) == [(1, "30"), (2, "0")]
    assert verify(table) == []


def test_a_key_that_only_one_bucket_shows_is_left_alone() -> None:
    table = new_table()
    write(table, 0, 0, {1: 0, 2: 0})
    write(table, 1, 10, {1: DELETE})
    done = repair(table)
    assert done.dropped is not None
    assert done.dropped.rows == 0
    assert rows(table) == [(1, "0"), (2, "0")]


def shared(table: FileStoreTable) -> tuple[tuple[bytes, SharedHash], ...]:
    return repair_hash_index(table, now_ms=NOW_MS, dry_run=True).shared


def test_what_was_written_meanwhile_stays() -> None:
    table = filled()
    write(table, 7, 100, {1: 0})
    planned, entries = shared(table), list(live_entries(table, load_state(table).manifests))
    write(table, 0, 200, {1: 0})
    assert drop_older(table, entries, planned, now_ms=NOW_MS).rows == 1
    # Newer than what was looked at: another repair finds it in two buckets again.
    assert rows(table)[1:3] == [(1, "100"), (1, "200")]
    repair(table)
    assert rows(table) == [(n, "200" if n == 1 else "old") for n in range(10)]


def test_files_that_were_replaced_meanwhile_refuse_it_and_no_file_is_left() -> None:
    table = filled()
    write(table, 7, 100, {1: 0})
    planned, entries = shared(table), list(live_entries(table, load_state(table).manifests))
    write(table, 0, 200, {2: 0})
    compact_table(table, now_ms=NOW_MS, full=True)
    before = set(table.io.files)  # type: ignore[attr-defined]
    with pytest.raises(CommitConflictError):
        drop_older(table, entries, planned, now_ms=NOW_MS)
    left = set(table.io.files) - before  # type: ignore[attr-defined]
    assert [path for path in left if "/bucket-" in path] == []


@pytest.mark.parametrize(
    "options",
    [
        {"merge-engine": "partial-update"},
        {"sequence.field": "v"},
        {"deletion-vectors.enabled": "true"},
    ],
)
def test_tables_whose_rows_are_not_decided_by_numbers_are_refused(options: dict[str, Any]) -> None:
    table = new_table(**options)
    with pytest.raises(ConfigError, match=next(iter(options))):
        refuse_undecided(table)
    with pytest.raises(ConfigError, match="overwrite the partition"):
        repair(table)
    assert repair_hash_index(table, now_ms=NOW_MS).dropped is None


def test_the_keeper_decides_and_not_the_owner_of_the_hash() -> None:
    table = filled()
    write(table, 7, 100, {1: 0})
    entries = list(live_entries(table, load_state(table).manifests))
    ((partition, found),) = shared(table)
    other = replace(found, keepers=(0,))
    assert drop_older(table, entries, [(partition, other)], now_ms=NOW_MS).rows == 1
    assert rows(table) == [(n, "old") for n in range(10)]


ONE, OTHER = "k165251", "k191679"
"""Two keys with the same 32 bits of hash."""


def test_different_keys_with_one_hash_are_not_doubled() -> None:
    table = native_table(
        "/w", [("id", "STRING"), ("v", "STRING")], keys=["id"], options=OPTIONS, io=MemoryFileIO()
    )
    one, other = key_hashes(table, pa.table({"id": [ONE, OTHER]})).tolist()
    assert one == other

    def put_into(bucket: int, first: int, *keys: str) -> None:
        given = [{"id": key, "v": f"{first}"} for key in keys]
        made = rows_table(table.schema, given, first)
        message = write_bucket(table, EMPTY_ROW, bucket, made, new_name=data_file_names(table))
        committable = ManifestCommittable(BATCH_COMMIT_IDENTIFIER, (message,))
        commit(table, "u", committable, state=load_state(table), now_ms=NOW_MS)

    put_into(0, 0, ONE)
    put_into(1, 10, OTHER)
    ((_, found),) = shared(table)
    assert (found.hash, found.keys, found.buckets) == (one, (), (0, 1))
    done = repair(table)
    assert done.dropped is not None
    assert done.dropped.rows == 0
    stored = [{"id": ONE, "v": "0"}, {"id": OTHER, "v": "10"}]
    assert sorted(read_table(table).to_pylist(), key=lambda row: str(row["id"])) == stored
    # Of the same hash one key is in two buckets and the other is not: only that one is dropped.
    put_into(1, 20, ONE)
    done = repair(table)
    assert done.dropped is not None
    assert done.dropped.rows == 1
    stored[0]["v"] = "20"
    assert sorted(read_table(table).to_pylist(), key=lambda row: str(row["id"])) == stored
