"""Rows on their way into another number of buckets: where they go, what a failure leaves."""

import numpy as np
import pytest

from ingestd.errors import FormatError, StorageError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.bucket import fixed_buckets
from ingestd.paimon.table.compact.compact_bucket import CompactBucket
from ingestd.paimon.table.metadata.file_store_scan import live_files
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.rewrite import rescale
from ingestd.paimon.table.rewrite.rescale import Rewrite, rewritten
from tests.support.faulty_file_io import FaultyFileIO, ValidationIssue
from tests.support.native_tables import native_table, put


def filled(buckets: int) -> FileStoreTable:
    options = {"bucket": str(buckets), "target-file-size": "4kb"}
    columns = [("id", "INT"), ("v", "STRING")]
    table = native_table("/w", columns, keys=["id"], options=options, io=MemoryFileIO())
    for turn in range(2):
        put(table, [{"id": n, "v": f"{turn}"} for n in range(turn * 100, 400)])
    return table


def old_buckets(table: FileStoreTable) -> list[CompactBucket]:
    entries = live_files(table, latest_snapshot(table.io, table.paths))
    return [
        CompactBucket(table, entries[0].partition, number, table.options.bucket,
                      tuple(e.file for e in entries if e.bucket == number))
        for number in sorted({entry.bucket for entry in entries})
    ]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), [(2, 6), (6, 2), (4, 6), (3, 5), (2, 2)])
def test_a_row_goes_where_its_remainder_may_be(before: int, after: int) -> None:
    hashes = np.random.default_rng(1).integers(-(2**31), 2**31, 1000, dtype=np.int32)
    table = native_table("/w", [("id", "INT")], keys=["id"], io=MemoryFileIO())
    rewrite = Rewrite(table, b"", before, after)
    pairs = zip(fixed_buckets(hashes, before), fixed_buckets(hashes, after), strict=True)
    assert all(rewrite.may_move(int(old), int(new)) for old, new in pairs)


@pytest.mark.parametrize("writers", [1, rescale.OPEN_WRITERS])
@pytest.mark.parametrize(("before", "after"), [(2, 4), (4, 2), (3, 5)])
def test_every_bucket_becomes_one_sorted_run_on_the_top_level(
    before: int, after: int, writers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rescale, "OPEN_WRITERS", writers)
    table = filled(before)
    old = old_buckets(table)
    messages = list(rewritten(Rewrite(table, old[0].partition, before, after), old))
    assert [message.bucket for message in messages] == sorted(
        range(after), key=lambda n: (n % np.gcd(before, after), n)
    )
    assert {message.total_buckets for message in messages} == {after}
    assert {file.level for message in messages for file in message.new_files} == {5}
    assert sum(file.row_count for message in messages for file in message.new_files) == 400


def test_a_row_in_the_wrong_bucket_is_no_row_to_lose() -> None:
    table = filled(2)
    one, two = old_buckets(table)
    swapped = CompactBucket(table, one.partition, 1, 2, one.files)
    for file in one.files:
        data = table.io.read_bytes(one.target(0).file(file.file_name).path)
        table.io.write_new(swapped.target(0).file(file.file_name).path, data)
    before = set(table.io.files)  # type: ignore[attr-defined]
    with pytest.raises(FormatError, match="bucket 1 has rows of another one"):
        list(rewritten(Rewrite(table, one.partition, 2, 4), [swapped, two]))
    assert set(table.io.files) == before  # type: ignore[attr-defined]


def test_nothing_is_left_of_a_bucket_that_cannot_be_written() -> None:
    table = filled(4)
    before = set(table.io.files)  # type: ignore[attr-defined]
    old = old_buckets(table)
    io = FaultyFileIO(table.io, [ValidationIssue("open_output", "bucket-0/", first=5)])
    broken = FileStoreTable(table.path, table.schema, io, table.name)
    moved = [CompactBucket(broken, b.partition, b.bucket, 4, b.files) for b in old]
    with pytest.raises(StorageError, match="injected"):
        list(rewritten(Rewrite(broken, old[0].partition, 4, 1), moved))
    assert set(table.io.files) == before  # type: ignore[attr-defined]
