"""Which key index a batch gets: of its own snapshot, whatever became of the batches before."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from ingestd.errors import CommitConflictError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.table.commit.overwrite import truncate_table
from ingestd.paimon.table.commit.table_commit import commit
from ingestd.paimon.table.cross_partition import assigner as cross_partition
from ingestd.paimon.table.cross_partition import index_cache as cross_partition_keep
from ingestd.paimon.table.cross_partition.index_cache import IndexCache
from ingestd.paimon.table.metadata.file_store_scan import live_entries
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.write.commit_message import CommitMessage, ManifestCommittable
from tests.support.moving_keys import Batch, load_buckets
from tests.support.native_tables import NOW_MS, native_table

LARGE = 1 << 30


def _table(warehouse: str) -> FileStoreTable:
    columns = [("id", "INT"), ("day", "STRING")]
    return native_table(warehouse, columns, keys=["id"], partitions=["day"], io=MemoryFileIO())


@pytest.fixture
def table() -> FileStoreTable:
    return _table("/w")


class Reads:
    """How often an index was read from the table, whole or a snapshot of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.whole = self.steps = 0
        load, step = cross_partition_keep.load_index, cross_partition_keep.advanced_index

        def counted_load(*arguments: Any) -> Any:
            self.whole += 1
            return load(*arguments)

        def counted_step(*arguments: Any) -> Any:
            self.steps += 1
            return step(*arguments)

        monkeypatch.setattr(cross_partition_keep, "load_index", counted_load)
        monkeypatch.setattr(cross_partition_keep, "advanced_index", counted_step)

    @property
    def both(self) -> tuple[int, int]:
        return self.whole, self.steps


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> IndexCache:
    own = IndexCache(LARGE)
    monkeypatch.setattr(cross_partition, "INDEX_CACHE", own)
    return own


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch, kept: IndexCache) -> Iterator[Reads]:
    yield Reads(monkeypatch)


def _day(table: FileStoreTable, day: str, *keys: int) -> Batch:
    return Batch(table).write([{"id": key, "day": day} for key in keys])


def _days(table: FileStoreTable) -> dict[int, list[str]]:
    return {key: [day for day, _ in found] for key, found in load_buckets(table).items()}


def test_batch_after_batch_nothing_is_read(table: FileStoreTable, reads: Reads) -> None:
    for n in range(20):
        _day(table, f"d{n}", 1, 2, n + 3).commit()
    assert _days(table) == {1: ["d19"], 2: ["d19"], **{n + 3: [f"d{n}"] for n in range(20)}}
    assert reads.both == (0, 0)


def test_tables_have_indexes_of_their_own(table: FileStoreTable, reads: Reads) -> None:
    other = _table("/other")
    for day in "ab":
        for one in (table, other):
            _day(one, day, 1).commit()
    assert reads.both == (0, 0)


def test_a_batch_that_failed_leaves_no_trace(table: FileStoreTable, reads: Reads) -> None:
    _day(table, "a", 1, 2).commit()
    _day(table, "b", 1)
    _day(table, "c", 1, 9)
    _day(table, "b", 2).commit()
    assert _days(table) == {1: ["a"], 2: ["b"]}
    _day(table, "c", 1, 2).commit()
    assert _days(table) == {1: ["c"], 2: ["c"]}
    assert reads.both == (0, 0)


@pytest.mark.parametrize("landed", [0, 1])
def test_of_several_tries_the_one_that_landed_counts(
    table: FileStoreTable, reads: Reads, landed: int
) -> None:
    _day(table, "a", 1).commit()
    tries = [_day(table, "b", 1), _day(table, "c", 1)]
    tries[landed].commit()
    _day(table, "d", 1).commit()
    assert _days(table) == {1: ["d"]}
    assert reads.both == (0, 0)


def test_what_another_process_committed_is_read_and_no_more(
    table: FileStoreTable, reads: Reads, kept: IndexCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    _day(table, "a", 1, 2).commit()
    monkeypatch.setattr(cross_partition, "INDEX_CACHE", IndexCache(LARGE))
    _day(table, "b", 1, 3).commit("other")
    monkeypatch.setattr(cross_partition, "INDEX_CACHE", kept)
    assert reads.both == (1, 0)
    _day(table, "c", 1, 2, 3).commit()
    assert _days(table) == {1: ["c"], 2: ["c"], 3: ["c"]}
    assert reads.both == (1, 1)


def test_rows_placed_before_another_writer_moved_keys_do_not_land(table: FileStoreTable) -> None:
    _day(table, "a", 1).commit()
    late = _day(table, "b", 1)
    _day(table, "c", 1).commit("other")
    with pytest.raises(CommitConflictError, match="moved between partitions"):
        late.commit()
    assert _days(table) == {1: ["c"]}


def test_a_compaction_moves_no_key(table: FileStoreTable, reads: Reads) -> None:
    _day(table, "a", 1).commit()
    waiting = _day(table, "b", 1)
    state = load_state(table)
    (entry,) = live_entries(table, state.manifests)
    upgrade = CommitMessage(
        entry.partition,
        entry.bucket,
        -1,
        compact_before=(entry.file,),
        compact_after=(replace(entry.file, level=5),),
    )
    commit(table, "compactor", ManifestCommittable(1, (upgrade,)), state=state, now_ms=NOW_MS)
    waiting.commit()
    _day(table, "c", 1).commit()
    assert _days(table) == {1: ["c"]}
    assert reads.both == (0, 0)


def test_an_emptied_table_has_no_keys(table: FileStoreTable, reads: Reads) -> None:
    _day(table, "a", 1).commit()
    truncate_table(table, now_ms=NOW_MS)
    assert Batch(table).assign([{"id": 1, "day": "b"}]).rows.num_rows == 1
    assert reads.both == (1, 0)


def test_a_table_that_was_rolled_back_is_read_anew(table: FileStoreTable, reads: Reads) -> None:
    _day(table, "a", 1).commit()
    _day(table, "b", 1).commit()
    _day(table, "c", 1).commit()
    for name in ("snapshot-2", "snapshot-3", "LATEST"):
        table.io.delete_quietly(f"{table.paths.snapshot_dir}/{name}")
    _day(table, "d", 1).commit("other")
    assert reads.both == (1, 0)
    _day(table, "e", 1).commit()
    assert _days(table) == {1: ["e"]}


def test_indexes_above_the_limit_are_not_kept(
    table: FileStoreTable, reads: Reads, kept: IndexCache
) -> None:
    kept.limit(30)
    for n in range(3):
        _day(table, f"d{n}", 1, 2, n + 3).commit()
    assert _days(table) == {1: ["d2"], 2: ["d2"], 3: ["d0"], 4: ["d1"], 5: ["d2"]}
    assert kept.nbytes <= 30
    assert reads.whole > 0


def test_a_lower_limit_gives_up_what_is_above_it(
    table: FileStoreTable, reads: Reads, kept: IndexCache
) -> None:
    _day(table, "a", *range(10)).commit()
    _day(table, "b", 0).commit()
    assert kept.nbytes == 200
    kept.limit(199)
    assert kept.nbytes == 0
    _day(table, "c", 0).commit()
    assert _days(table)[0] == ["c"]
    assert reads.whole == 1
