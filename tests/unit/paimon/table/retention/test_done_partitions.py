"""Success files of partitions, by the clock and by watermarks, once and again."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType

import pytest

from ingestd.errors import FormatError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.snapshot import BATCH_COMMIT_IDENTIFIER
from ingestd.paimon.table.commit.table_commit import commit
from ingestd.paimon.table.compact.table_compact import compact_table
from ingestd.paimon.table.metadata.file_store_scan import live_files
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.retention.branches import create_branch
from ingestd.paimon.table.retention.done_partitions import mark_done_partitions
from ingestd.paimon.table.write.commit_message import ManifestCommittable
from tests.support.native_tables import native_table, put

HOUR = 3_600_000
DAYS = {"partition.idle-time-to-done": "1 h", "partition.time-interval": "1 d"}
WATERMARK = {**DAYS, "partition.mark-done-action.mode": "watermark"}
MARKS = ["/w/db.db/t/dt=2024-01-01/_SUCCESS", "/w/db.db/t/dt=2024-01-02/_SUCCESS"]


def new(
    keys: tuple[str, ...] = (), options: Mapping[str, str] = MappingProxyType({})
) -> FileStoreTable:
    table = native_table(
        "/w", [("id", "INT"), ("dt", "STRING")], partitions=["dt"], io=MemoryFileIO(),
        keys=keys, options=options,
    )  # fmt: skip
    put(table, [{"id": 1, "dt": "2024-01-01"}, {"id": 2, "dt": "2024-01-02"}])
    put(table, [{"id": 3, "dt": "some day"}])
    return table


def newest(table: FileStoreTable) -> int:
    files = live_files(table, latest_snapshot(table.io, table.paths))
    return max(entry.file.creation_time_ms or 0 for entry in files)


def set_watermark(table: FileStoreTable, watermark: int) -> None:
    committable = replace(ManifestCommittable(BATCH_COMMIT_IDENTIFIER, ()), watermark=watermark)
    commit(table, "w", committable, state=load_state(table), now_ms=1, allow_empty=True)


def test_partitions_are_marked_after_an_idle_time_once_and_again() -> None:
    table = new()
    files = live_files(table, latest_snapshot(table.io, table.paths))
    written = min(entry.file.creation_time_ms or 0 for entry in files)
    assert mark_done_partitions(table, DAYS, written + HOUR) == ()
    now = newest(table) + HOUR + 1
    assert not table.io.exists(MARKS[0])
    assert mark_done_partitions(table, DAYS, now) == tuple(MARKS)
    assert mark_done_partitions(table, DAYS, now + HOUR) == ()
    assert json.loads(table.io.read_bytes(MARKS[0])) == {
        "creationTime": now, "modificationTime": now,
    }  # fmt: skip
    # Late rows, as seen from a mark of before them.
    early = {"creationTime": 5, "modificationTime": written - 1}
    table.io.overwrite(MARKS[0], json.dumps(early).encode())
    assert mark_done_partitions(table, DAYS, now) == (MARKS[0],)
    assert json.loads(table.io.read_bytes(MARKS[0])) == {"creationTime": 5, "modificationTime": now}


def test_a_partition_whose_time_goes_on_is_not_done() -> None:
    table = new()
    far = {**DAYS, "partition.time-interval": "36500 d"}
    assert mark_done_partitions(table, far, newest(table) + 2 * HOUR) == ()


@pytest.mark.parametrize(
    "options", [{}, {"partition.idle-time-to-done": "1 h"}, {"partition.time-interval": "1 d"}]
)
def test_without_both_times_nothing_is_marked(options: dict[str, str]) -> None:
    table = new()
    assert mark_done_partitions(table, options, newest(table) + 100 * HOUR) == ()


def test_a_watermark_beyond_the_end_and_the_idle_time_marks() -> None:
    table = new()
    end = int(datetime(2024, 1, 2, tzinfo=UTC).timestamp() * 1000)
    now = newest(table)
    assert mark_done_partitions(table, WATERMARK, now) == ()
    set_watermark(table, end + HOUR)
    assert mark_done_partitions(table, WATERMARK, now) == ()
    set_watermark(table, end + HOUR + 1)
    assert mark_done_partitions(table, WATERMARK, now) == (MARKS[0],)
    assert mark_done_partitions(table, WATERMARK, now) == ()


def test_rows_that_wait_for_a_compaction_keep_their_partition_open() -> None:
    table = new(("id", "dt"), {"bucket": "1", "deletion-vectors.enabled": "true"})
    now = newest(table) + 2 * HOUR
    assert mark_done_partitions(table, DAYS, now) == ()
    compact_table(table, now_ms=now, full=True)
    assert mark_done_partitions(table, DAYS, now + 2 * HOUR) == tuple(MARKS)


def test_rows_that_readers_merge_keep_no_partition_open() -> None:
    vectors = {"deletion-vectors.enabled": "true", "deletion-vectors.merge-on-read": "true"}
    table = new(("id", "dt"), {"bucket": "1", **vectors})
    assert mark_done_partitions(table, DAYS, newest(table) + 2 * HOUR) == tuple(MARKS)


def test_partitions_of_a_branch_are_not_marked_in_the_directories_of_the_table() -> None:
    branch = create_branch(new(), "fix")
    put(branch, [{"id": 1, "dt": "2024-01-01"}])
    assert mark_done_partitions(branch, DAYS, newest(branch) + 2 * HOUR) == ()


def test_a_damaged_mark_is_named() -> None:
    table = new()
    table.io.overwrite(MARKS[1], b"done")
    with pytest.raises(FormatError, match=r"dt=2024-01-02/_SUCCESS is not a success file.*delete"):
        mark_done_partitions(table, DAYS, newest(table) + 2 * HOUR)


def test_a_catalog_that_lists_no_partitions_is_named_and_success_files_are_written(
    caplog: pytest.LogCaptureFixture,
) -> None:
    table = new()
    both = {**DAYS, "partition.mark-done-action": "done-partition,success-file"}
    assert mark_done_partitions(table, both, newest(table) + 2 * HOUR) == tuple(MARKS)
    (record,) = [r for r in caplog.records if r.message == "partitions_not_marked"]
    assert "needs the metastore 'hive'" in record.__dict__["ctx"]["reason"]
    only = {**DAYS, "partition.mark-done-action": "done-partition"}
    table.io.delete_quietly(MARKS[0])
    assert mark_done_partitions(table, only, newest(table) + 2 * HOUR) == ()
    assert not table.io.exists(MARKS[0])
