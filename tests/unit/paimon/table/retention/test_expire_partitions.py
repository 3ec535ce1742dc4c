from dataclasses import replace

import pytest

from ingestd.errors import ConfigError, UnsupportedError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.honoured_options import PARTITION_EXPIRATION
from ingestd.paimon.table.metadata.file_store_scan import live_files
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot, snapshot_ids
from ingestd.paimon.table.retention.expire_partitions import expire_partitions
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.faulty_file_io import FaultyFileIO, ValidationIssue
from tests.support.native_tables import native_table, put
from tests.support.stored_rows import stored_rows

DAY = 86_400_000
NOW = 1_706_745_600_000
"""2024-02-01."""
MONTH = {"partition.expiration-time": "30 d"}


@pytest.fixture
def table() -> FileStoreTable:
    columns = [("id", "INT"), ("dt", "STRING")]
    made = native_table("/w", columns, keys=["id", "dt"], partitions=["dt"], io=MemoryFileIO())
    days = ["2023-12-01", "2023-12-31", "2024-01-15", "no date", None]
    put(made, [{"id": n, "dt": day} for n, day in enumerate(days) if day])
    return made


def days(table: FileStoreTable) -> list[str]:
    assert verify(table) == []
    return sorted(row["dt"] for row in stored_rows(table))


def test_partitions_of_long_ago_go_in_one_snapshot(table: FileStoreTable) -> None:
    expired = expire_partitions(table, MONTH, NOW)
    assert (len(expired.partitions), expired.snapshots) == (2, (2,))
    assert days(table) == ["2024-01-15", "no date"]
    assert expire_partitions(table, MONTH, NOW).partitions == ()


def test_a_plan_changes_nothing(table: FileStoreTable) -> None:
    expired = expire_partitions(table, MONTH, NOW, dry_run=True)
    assert (len(expired.partitions), expired.snapshots) == (2, ())
    assert len(days(table)) == 4


def test_without_the_option_nothing_goes(table: FileStoreTable) -> None:
    assert expire_partitions(table, {}, NOW).partitions == ()
    assert len(days(table)) == 4


def test_the_first_by_name_go_when_too_many_have_expired(table: FileStoreTable) -> None:
    expire_partitions(table, {**MONTH, "partition.expiration-max-num": "1"}, NOW)
    assert days(table) == ["2023-12-31", "2024-01-15", "no date"]


def test_many_go_in_several_snapshots(table: FileStoreTable) -> None:
    expired = expire_partitions(table, {**MONTH, "partition.expiration-batch-size": "1"}, NOW)
    assert expired.snapshots == (2, 3)
    assert snapshot_ids(table.io, table.paths) == [1, 2, 3]


def test_partitions_that_nobody_changes_go(table: FileStoreTable) -> None:
    updates = {**MONTH, "partition.expiration-strategy": "update-time"}
    age = PARTITION_EXPIRATION.of(MONTH) or 0
    live = live_files(table, latest_snapshot(table.io, table.paths))
    made = sorted(entry.file.creation_time_ms or 0 for entry in live)
    assert expire_partitions(table, updates, made[0] + age).partitions == ()
    assert len(expire_partitions(table, updates, made[-1] + age + 1).partitions) == 4
    assert days(table) == []


@pytest.mark.parametrize(("strategy", "left"), [("update-time", 4), ("values-time", 3)])
def test_a_partition_that_is_changed_meanwhile_has_not_expired_by_its_changes(
    table: FileStoreTable, strategy: str, left: int
) -> None:
    options = {"partition.expiration-time": "1 d", "partition.expiration-strategy": strategy}
    late = ValidationIssue(
        "write_new", action=lambda: put(table, [{"id": 7, "dt": "2023-12-01"}], now_ms=NOW)
    )
    busy = replace(table, io=FaultyFileIO(table.io, [late]))
    expired = expire_partitions(busy, {**options, "partition.expiration-max-num": "1"}, 2 * NOW)
    assert len(expired.partitions) == len(expired.snapshots) == 4 - left
    assert len(set(days(table))) == left


def test_options_that_cannot_be_followed_are_named(table: FileStoreTable) -> None:
    with pytest.raises(UnsupportedError, match="expiration-strategy' = 'size'"):
        expire_partitions(table, {**MONTH, "partition.expiration-strategy": "size"}, NOW)
    with pytest.raises(ConfigError, match="expiration-time"):
        expire_partitions(table, {"partition.expiration-time": "0 ms"}, NOW)
