"""Which files a snapshot has, and which manifests are opened to know it."""

from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.binary_row import serialize_row
from ingestd.paimon.spec.data_file import SimpleStats
from ingestd.paimon.spec.manifest import FileKind, ManifestFileMeta
from ingestd.paimon.table.metadata.file_store_scan import (
    PartitionBounds,
    changelog_entries,
    delta_entries,
    live_entries,
    live_files,
    snapshot_manifests,
)
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import read_snapshot
from ingestd.paimon.table.write.commit_message import CommitMessage
from tests.support.faulty_file_io import FaultyFileIO
from tests.support.metadata_tables import (
    INT,
    append,
    data_file,
    message,
    metadata_table,
    newest,
)
from tests.support.native_tables import native_table


def partition(value: int | None) -> bytes:
    return serialize_row([INT], [value])


def partitioned(io: FaultyFileIO) -> FileStoreTable:
    """Three commits: partitions 1 and 2, partition 5 in bucket 1, and the null partition."""
    table = metadata_table(io, partition_keys=("p",))
    first = [message("a", partition=partition(1)), message("b", partition=partition(2))]
    append(table, "user", 1, *first)
    append(table, "user", 2, message("c", partition=partition(5), bucket=1))
    append(table, "user", 3, message("d", partition=partition(None)))
    io.calls.clear()
    return table


def names(entries: list) -> list[str]:
    return [entry.file.file_name for entry in entries]


def opened(io: FaultyFileIO) -> int:
    return len([path for path in io.operations("read_bytes") if "/manifest-list" not in path
                and "/manifest/" in path])  # fmt: skip


def test_a_table_without_a_snapshot_has_no_files() -> None:
    assert live_files(metadata_table(), None) == []


def test_files_are_those_of_the_snapshot_asked_for() -> None:
    table = metadata_table()
    for n in (1, 2, 3):
        append(table, "user", n, message(f"f{n}"))
    second = read_snapshot(table.io, table.paths, 2)
    assert names(live_files(table, second)) == ["f1", "f2"]
    assert names(delta_entries(table, second)) == ["f2"]


def test_a_set_of_partitions_opens_only_manifests_that_may_hold_them() -> None:
    io = FaultyFileIO(MemoryFileIO())
    table = partitioned(io)
    wanted = {partition(5), partition(7)}
    assert names(live_files(table, newest(table), partition_filter=wanted)) == ["c"]
    assert opened(io) == 2  # of partition 5, and of the null partition, which has no bounds


def test_the_bounds_of_java_do_not_hide_the_partition_of_nan() -> None:
    columns = [("p", "DOUBLE"), ("v", "INT")]
    table = native_table("/w", columns, partitions=["p"], io=MemoryFileIO())
    low, high, other = (
        serialize_row(table.partition_types, [value]) for value in (1.5, float("nan"), 0.5)
    )
    manifest = ManifestFileMeta("manifest-0", 1, 1, 0, SimpleStats(low, high, (0,)), 0)
    assert PartitionBounds(table, [high]).may_be_in(manifest)
    assert PartitionBounds(table, [low]).may_be_in(manifest)
    assert not PartitionBounds(table, [other]).may_be_in(manifest)


def test_a_predicate_sees_the_values_of_the_partition() -> None:
    table = partitioned(FaultyFileIO(MemoryFileIO()))
    found = live_files(
        table, newest(table), partition_filter=lambda values: values[0] is None or values[0] == 2
    )
    assert names(found) == ["b", "d"]


def test_buckets_are_filtered_and_manifests_without_them_stay_closed() -> None:
    io = FaultyFileIO(MemoryFileIO())
    table = partitioned(io)
    manifests = snapshot_manifests(table, newest(table))
    assert names(live_entries(table, manifests, buckets={1})) == ["c"]
    assert opened(io) == 1


def test_a_file_deleted_later_is_not_live_but_in_the_delta() -> None:
    table = metadata_table()
    append(table, "user", 1, message("a", "b"))
    compaction = CommitMessage(
        message().partition, 0, 2,
        compact_before=(data_file("a"),), compact_after=(data_file("a", level=5),),
    )  # fmt: skip
    append(table, "user", 2, compaction)
    live = live_files(table, newest(table))
    assert sorted((e.file.file_name, e.file.level) for e in live) == [("a", 5), ("b", 0)]
    kinds = [(e.kind, e.file.level) for e in delta_entries(table, newest(table))]
    assert kinds == [(FileKind.DELETE, 0), (FileKind.ADD, 5)]


def test_changelog_files_are_apart_from_data_files() -> None:
    table = metadata_table()
    append(
        table, "user", 1,
        CommitMessage(message().partition, 0, 2, (data_file("d"),), (data_file("c"),)),
    )  # fmt: skip
    assert names(changelog_entries(table, newest(table))) == ["c"]
    assert names(delta_entries(table, newest(table))) == ["d"]
    append(table, "user", 2, message("e"))
    assert changelog_entries(table, newest(table)) == []
