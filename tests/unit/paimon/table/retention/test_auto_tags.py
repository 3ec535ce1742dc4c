from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.table.commit.table_commit import commit
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import read_snapshot
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.metadata.time_travel import tag_names, tagged_snapshot
from ingestd.paimon.table.retention.auto_tags import make_auto_tags, tags_to_expire
from ingestd.paimon.table.retention.tags import create_tag
from ingestd.paimon.table.write.commit_message import ManifestCommittable
from tests.support.faulty_file_io import FaultyFileIO
from tests.support.native_tables import native_table

HOURLY: Mapping[str, str] = {
    "tag.automatic-creation": "process-time",
    "tag.creation-period": "hourly",
    "sink.process-time-zone": "UTC",
}
NOW = int(datetime(2024, 3, 2, 12, tzinfo=UTC).timestamp() * 1000)


@pytest.fixture
def table() -> FileStoreTable:
    made = native_table("/w", [("id", "INT")], keys=["id"], io=MemoryFileIO())
    for number, (hour, minute) in enumerate([(1, 0), (1, 30), (2, 10), (5, 0), (5, 20)], 1):
        time = int(datetime(2024, 3, 2, hour, minute, tzinfo=UTC).timestamp() * 1000)
        empty = ManifestCommittable(number, ())
        commit(made, "u", empty, state=load_state(made), now_ms=time, allow_empty=True)
    return made


def tags(table: FileStoreTable) -> dict[str, int]:
    return {n: tagged_snapshot(table, n).id for n in tag_names(table.io, table.paths)}


def test_the_first_snapshot_of_a_period_is_tagged_with_the_one_before(
    table: FileStoreTable,
) -> None:
    make_auto_tags(table, HOURLY, NOW)
    assert tags(table) == {"2024-03-02 00": 1, "2024-03-02 01": 3, "2024-03-02 04": 4}
    assert make_auto_tags(table, HOURLY, NOW).created == ()


def test_the_snapshots_of_a_period_are_not_read_until_it_is_over(table: FileStoreTable) -> None:
    make_auto_tags(table, HOURLY, NOW)
    watched = FaultyFileIO(table.io)
    assert make_auto_tags(replace(table, io=watched), HOURLY, NOW).created == ()
    assert watched.operations("read_bytes", "/snapshot-") == [table.paths.snapshot(5)]


def test_missing_periods_are_made_up_for_one_a_snapshot(table: FileStoreTable) -> None:
    make_auto_tags(table, {**HOURLY, "tag.automatic-completion": "true"}, NOW)
    assert tags(table) == {
        "2024-03-02 00": 1, "2024-03-02 01": 3, "2024-03-02 02": 4, "2024-03-02 03": 5,
    }  # fmt: skip


def test_the_oldest_go_when_there_are_too_many(table: FileStoreTable) -> None:
    create_tag(table, "mine", read_snapshot(table.io, table.paths, 1), now_ms=NOW)
    made = make_auto_tags(table, {**HOURLY, "tag.num-retained-max": "2"}, NOW)
    assert made.deleted == ("2024-03-02 00",)
    assert list(tags(table)) == ["2024-03-02 01", "2024-03-02 04", "mine"]


def test_a_plan_changes_nothing(table: FileStoreTable) -> None:
    plan = make_auto_tags(table, {**HOURLY, "tag.num-retained-max": "2"}, NOW, dry_run=True)
    assert [one.name for one in plan.created][-1] == "2024-03-02 04"
    assert plan.deleted == ("2024-03-02 00",)
    assert tags(table) == {}


def test_a_name_that_is_taken_stays(table: FileStoreTable) -> None:
    create_tag(table, "2024-03-02 00", read_snapshot(table.io, table.paths, 2), now_ms=NOW)
    make_auto_tags(table, HOURLY, NOW)
    assert tags(table) == {"2024-03-02 00": 2, "2024-03-02 01": 3, "2024-03-02 04": 4}


def test_tags_expire_by_the_time_that_the_table_gives_them(table: FileStoreTable) -> None:
    make_auto_tags(table, {**HOURLY, "tag.default-time-retained": "1 h"}, NOW)
    assert tags_to_expire(table, {}, NOW) == []
    later = NOW + 3_600_001
    assert len(tags_to_expire(table, {}, later)) == 3
    assert tags_to_expire(table, {"tag.time-expire-enabled": "false"}, later) == []
