"""Another number of buckets: the same rows, in one snapshot for what belongs together."""

import random
from typing import Any

import pytest

from ingestd.errors import CommitConflictError, ConfigError, SchemaConflictError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.schema_change import SetOption
from ingestd.paimon.spec.snapshot import CommitKind
from ingestd.paimon.table.compact.table_compact import compact_table
from ingestd.paimon.table.metadata.file_store_scan import live_files
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.partition_spec import parse_partition_spec, partition_filter
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.read.table_read import read_table
from ingestd.paimon.table.rewrite import rescale as subject
from ingestd.paimon.table.rewrite.postpone_move import move_postponed
from ingestd.paimon.table.rewrite.rescale import Rescaled, plan_rescale, refuse_rescale, rescale
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.native_tables import NOW_MS, alter, native_table, put

COLUMNS = [("p", "INT"), ("id", "INT"), ("v", "STRING")]


def filled(buckets: int = 2, **options: str) -> FileStoreTable:
    given = {"bucket": str(buckets), **options}
    table = native_table(
        "/w", COLUMNS, keys=["p", "id"], partitions=["p"], options=given, io=MemoryFileIO()
    )
    draw = random.Random(buckets)
    for turn in range(3):
        put(table, [{"p": n % 2, "id": draw.randrange(200), "v": f"{turn}-{n}"} for n in range(90)])
    return table


def to(table: FileStoreTable, buckets: int, **options: Any) -> list[Rescaled]:
    return list(rescale(table, buckets, clock_ms=lambda: NOW_MS, **options))


def rows(table: FileStoreTable) -> list[str]:
    return sorted(map(str, read_table(table).to_pylist()))


def places(table: FileStoreTable) -> set[tuple[int, int]]:
    """Levels and numbers of buckets of the live files."""
    found = live_files(table, latest_snapshot(table.io, table.paths))
    return {(entry.file.level, entry.total_buckets) for entry in found}


@pytest.mark.parametrize(("before", "after"), [(2, 4), (4, 2), (3, 5), (1, 9)])
@pytest.mark.parametrize("engine", ["deduplicate", "first-row"])
def test_the_rows_are_the_same_in_their_new_buckets(engine: str, before: int, after: int) -> None:
    table = filled(before, **{"merge-engine": engine})
    if engine == "first-row":  # whose readers leave out level 0
        compact_table(table, now_ms=NOW_MS, full=True)
    wanted = rows(table)
    table = alter(table, SetOption("bucket", str(after)))
    (done,) = to(table, after)
    assert done.snapshot is not None
    assert done.snapshot.commit_kind is CommitKind.OVERWRITE
    assert (len(done.partitions), done.rows) == (2, len(wanted))
    assert rows(table) == wanted
    assert places(table) == {(5, after)}
    assert verify(table) == []
    put(table, [{"p": 0, "id": 1, "v": "after"}, {"p": 7, "id": 1, "v": "after"}])
    assert verify(table) == []
    assert to(table, after) == []


def test_deletion_vectors_and_deletes_are_heeded() -> None:
    table = filled(2, **{"deletion-vectors.enabled": "true"})
    compact_table(table, now_ms=NOW_MS)
    put(table, [{"p": 0, "id": n, "v": None, "_kind": 3} for n in range(100)])
    compact_table(table, now_ms=NOW_MS)
    wanted = rows(table)
    table = alter(table, SetOption("bucket", "3"))
    to(table, 3)
    assert rows(table) == wanted
    assert len(load_state(table).index_entries) == 0
    assert verify(table) == []


def test_rows_of_append_tables_keep_their_order() -> None:
    options = {"bucket": "3", "bucket-key": "id"}
    table = native_table("/w", COLUMNS[1:], options=options, io=MemoryFileIO())
    for turn in range(3):
        put(table, [{"id": n, "v": f"{turn}"} for n in range(20)])
    table = alter(table, SetOption("bucket", "2"))
    to(table, 2)
    found = read_table(table).to_pylist()
    assert len(found) == 60
    for n in range(20):
        assert [row["v"] for row in found if row["id"] == n] == ["0", "1", "2"]
    files = [live_file.file for live_file in live_files(table, load_state(table).snapshot)]
    assert {file.min_sequence_number for file in files} == {0}
    assert verify(table) == []


def test_partitions_are_committed_together_up_to_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "COMMIT_BYTES", 1)
    table = alter(filled(), SetOption("bucket", "4"))
    assert [len(done.partitions) for done in to(table, 4)] == [1, 1]


def test_one_partition_is_rewritten_and_the_other_goes_on_where_it_was() -> None:
    table = alter(filled(), SetOption("bucket", "4"))
    wanted = rows(table)
    to(table, 4, partition_filter=partition_filter(table, [parse_partition_spec(table, "p=1")]))
    assert places(table) == {(0, 2), (5, 4)}
    assert rows(table) == wanted
    assert verify(table) == []
    put(table, [{"p": 1, "id": 1, "v": "new"}])
    with pytest.raises(SchemaConflictError, match="`ingestd rescale "):
        put(table, [{"p": 0, "id": 1, "v": "new"}])
    (rest,) = to(table, 4)
    assert len(rest.partitions) == 1
    put(table, [{"p": 0, "id": 1, "v": "new"}])
    assert verify(table) == []


def test_what_is_written_meanwhile_refuses_the_rescale_and_is_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = alter(filled(), SetOption("bucket", "4"))
    files = set(table.io.files)  # type: ignore[attr-defined]
    before, written = subject.rewritten, []

    def and_somebody_compacts(*arguments: Any) -> Any:
        yield from before(*arguments)
        if not written:
            written.append(compact_table(table, now_ms=NOW_MS, full=True).status)

    monkeypatch.setattr(subject, "rewritten", and_somebody_compacts)
    wanted = rows(table)
    with pytest.raises(CommitConflictError, match="of what was rewritten"):
        to(table, 4)
    assert rows(table) == wanted
    assert not any("bucket-3/" in path for path in set(table.io.files) - files)  # type: ignore[attr-defined]
    to(table, 4)
    assert rows(table) == wanted


def test_postponed_tables_are_rescaled_once_no_row_waits() -> None:
    table = native_table("/w", COLUMNS[1:], keys=["id"], options={"bucket": "-2"},
                         io=MemoryFileIO())  # fmt: skip
    put(table, [{"id": n, "v": "a"} for n in range(50)])
    with pytest.raises(ConfigError, match="ingestd compact"):
        plan_rescale(table, 3)
    move_postponed(table, "u", state=load_state(table), now_ms=NOW_MS)
    wanted = rows(table)
    to(table, 3)
    assert places(table) == {(5, 3)}
    assert rows(table) == wanted
    put(table, [{"id": n, "v": "b"} for n in range(50)])
    move_postponed(table, "u", state=load_state(table), now_ms=NOW_MS)
    assert {row["v"] for row in read_table(table).to_pylist()} == {"b"}
    assert verify(table) == []


@pytest.mark.parametrize("keys", [["id"], []])
def test_tables_without_a_number_of_buckets_are_refused(keys: list[str]) -> None:
    table = native_table("/w", COLUMNS[1:], keys=keys, io=MemoryFileIO())
    with pytest.raises(ConfigError, match=r"db\.t has 'bucket' = '-1'"):
        refuse_rescale(table, 2)
    with pytest.raises(ConfigError, match="0 is no number of buckets"):
        refuse_rescale(filled(), 0)
