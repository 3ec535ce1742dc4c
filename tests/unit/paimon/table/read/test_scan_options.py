import re
from dataclasses import replace

import pytest

from ingestd.errors import ConfigError, UnsupportedError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.read.scan_options import ScanTarget, scan_target
from tests.support.native_tables import native_table, put


@pytest.fixture(scope="module")
def table() -> FileStoreTable:
    """A table with three snapshots."""
    made = native_table("/w", [("v", "INT")], options={"bucket": "-1"}, io=MemoryFileIO())
    for number in range(3):
        put(made, [{"v": number}])
    return made


def target(table: FileStoreTable, **options: str) -> ScanTarget:
    given = {name.replace("__", ".").replace("_", "-"): value for name, value in options.items()}
    schema = replace(table.schema, options={**table.schema.options, **given})
    return scan_target(table.with_schema(schema))


def test_without_options_the_newest_snapshot_is_read(table: FileStoreTable) -> None:
    found = target(table)
    assert found.snapshot is not None
    assert (found.snapshot.id, found.between, found.is_time_travel) == (3, None, False)
    empty = native_table("/e", [("v", "INT")], io=MemoryFileIO())
    assert scan_target(empty) == ScanTarget()


def test_a_point_in_time_comes_with_its_columns(table: FileStoreTable) -> None:
    found = target(table, scan__snapshot_id="2")
    assert found.snapshot is not None
    assert (found.snapshot.id, found.is_time_travel) == (2, True)


def test_what_came_between_two_snapshots(table: FileStoreTable) -> None:
    assert target(table, incremental_between="1,3").between == (1, 3)
    for wrong in ("3,1", "1", "a,b", "1,4", "1,2,3", ""):
        with pytest.raises(ConfigError, match="two snapshot ids in order, from 0 to 3"):
            target(table, incremental_between=wrong)


@pytest.mark.parametrize(
    "options",
    [
        {"scan__file_creation_time_millis": "1"},
        {"scan__creation_time_millis": "1"},
        {"incremental_between_timestamp": "1,2"},
        {"incremental_to_auto_tag": "t"},
        {"scan__mode": "latest-delta"},
        {"incremental_between": "1,2", "incremental_between_scan_mode": "diff"},
    ],
)
def test_what_is_not_implemented_is_refused_by_name(
    table: FileStoreTable, options: dict[str, str]
) -> None:
    name, value = list(options.items())[-1]
    named = name.replace("__", ".").replace("_", "-")
    with pytest.raises(UnsupportedError, match=f"option '{named}' = '{value}' is not supported"):
        target(table, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"scan__mode": "latest-full", "scan__snapshot_id": "1"},
            "options scan.snapshot-id, but 'scan.mode' = 'latest-full' excludes these options",
        ),
        ({"scan__mode": "incremental"}, "options none, but 'scan.mode' = 'incremental' requires"),
        (
            {"scan__mode": "from-timestamp", "scan__tag_name": "t"},
            "'from-timestamp' requires exactly one of scan.timestamp, scan.timestamp-millis;",
        ),
        (
            {"scan__snapshot_id": "1", "incremental_between": "1,2"},
            "'from-snapshot' requires exactly one of scan.snapshot-id, scan.tag-name, "
            "scan.version, scan.watermark;",
        ),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    table: FileStoreTable, options: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        target(table, **options)
