import json
import time
from pathlib import Path
from typing import Any

import pytest

from ingestd.ingest.maintenance.jobs import CompactionDone, Expired, NotDone, do_job
from ingestd.ingest.maintenance.scheduler import Job
from ingestd.paimon.catalog.filesystem import FilesystemCatalog
from ingestd.paimon.iceberg.iceberg_sync import update_iceberg
from ingestd.paimon.io.local import LocalFileIO
from ingestd.paimon.table.compact.compact_bucket import TreePlan
from ingestd.paimon.table.compact.table_compact import compact_table
from ingestd.paimon.table.metadata import file_store_scan
from ingestd.paimon.table.metadata.file_store_scan import ManifestCache
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.read.table_read import read_table
from tests.support.native_tables import NOW_MS, native_table, open_native, put

USER = "ingestd-p.compact"


@pytest.fixture
def catalog(tmp_path: Path) -> FilesystemCatalog:
    return FilesystemCatalog(str(tmp_path), LocalFileIO(sync=False))


def fill(folder: Path, commits: int, **options: str) -> None:
    table = native_table(folder, [("k", "INT")], keys=["k"], options={"bucket": "1", **options})
    for n in range(commits):
        put(table, [{"k": n}])


def clock() -> float:
    return NOW_MS / 1000


def test_what_the_triggers_ask_for_is_compacted(tmp_path: Path, catalog: FilesystemCatalog) -> None:
    fill(tmp_path, 6)
    done = do_job(catalog, Job("compact", "db.t"), USER, clock)
    assert isinstance(done, CompactionDone)
    figures = (done.status, done.snapshot_id, done.buckets, done.files_before, done.files_after)
    assert figures == ("compacted", 7, 1, 6, 1)
    assert done.bytes_read > done.bytes_written > 0
    again = do_job(catalog, Job("compact", "db.t"), USER, clock)
    assert isinstance(again, CompactionDone)
    assert (again.status, again.snapshot_id, again.sorted_runs.snapshot_id) == ("nothing", None, 7)


def test_a_compaction_and_new_tags_are_followed_by_iceberg_metadata(
    tmp_path: Path, catalog: FilesystemCatalog
) -> None:
    options = {
        "metadata.iceberg.storage": "table-location", "tag.automatic-creation": "process-time",
        "tag.creation-period": "daily", "sink.process-time-zone": "UTC",
    }  # fmt: skip
    fill(tmp_path, 1, **options)
    assert update_iceberg(open_native(tmp_path))
    document = tmp_path / "db.db/t/metadata/v2.metadata.json"
    done = do_job(catalog, Job("full", "db.t"), USER, clock)
    assert isinstance(done, CompactionDone)
    assert (done.snapshot_id, done.iceberg_failed) == (2, False)
    assert json.loads(document.read_bytes())["refs"] == {}
    expired = do_job(catalog, Job("expire", "db.t"), USER, clock)
    assert isinstance(expired, Expired)
    assert (expired.tags_created, expired.iceberg_failed) == (1, False)
    (tag,) = json.loads(document.read_bytes())["refs"].values()
    assert tag["type"] == "tag"
    hint = tmp_path / "db.db/t/metadata/version-hint.text"
    document.unlink()
    hint.unlink()
    hint.mkdir()
    failed = do_job(catalog, Job("full", "db.t"), USER, clock)
    assert isinstance(failed, CompactionDone)
    assert failed.iceberg_failed


def test_a_bucket_that_another_writer_compacted_meanwhile_remains_to_be_compacted(
    tmp_path: Path, catalog: FilesystemCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, 6)
    table, run = open_native(tmp_path), TreePlan.run

    def run_then_lose(plan: TreePlan) -> Any:
        monkeypatch.setattr(TreePlan, "run", run)
        done = run(plan)
        compact_table(table, now_ms=NOW_MS)
        return done

    monkeypatch.setattr(TreePlan, "run", run_then_lose)
    done = do_job(catalog, Job("full", "db.t"), USER, clock)
    assert isinstance(done, CompactionDone)
    assert (done.status, done.lost, done.left) == ("lost", 1, 1)


def test_a_full_compaction_needs_no_trigger(tmp_path: Path, catalog: FilesystemCatalog) -> None:
    fill(tmp_path, 2)
    nothing = do_job(catalog, Job("compact", "db.t"), USER, clock)
    full = do_job(catalog, Job("full", "db.t"), USER, clock)
    assert isinstance(nothing, CompactionDone)
    assert isinstance(full, CompactionDone)
    assert (nothing.status, full.status) == ("nothing", "compacted")
    assert (nothing.sorted_runs.level_0, full.sorted_runs.level_0) == (2, 0)


def test_rows_that_wait_get_a_bucket_before_the_compaction(
    tmp_path: Path, catalog: FilesystemCatalog
) -> None:
    fill(tmp_path, 6, bucket="-2")
    assert read_table(open_native(tmp_path)).num_rows == 0
    done = do_job(catalog, Job("compact", "db.t"), USER, clock)
    assert isinstance(done, CompactionDone)
    assert done.sorted_runs.snapshot_id == 7
    assert read_table(open_native(tmp_path)).num_rows == 6
    again = do_job(catalog, Job("compact", "db.t"), USER, clock)
    assert isinstance(again, CompactionDone)
    assert again.sorted_runs.snapshot_id == 7


def test_what_may_go_expires(tmp_path: Path, catalog: FilesystemCatalog) -> None:
    fill(tmp_path, 5, **{"snapshot.num-retained.max": "2", "snapshot.num-retained.min": "1"})
    before = time.monotonic()
    done = do_job(catalog, Job("expire", "db.t"), USER, clock)
    assert isinstance(done, Expired)
    assert 0 < done.seconds < time.monotonic() - before
    assert done.snapshots == 3
    assert done.files > 0


def test_a_clock_that_jumps_expires_nothing(
    tmp_path: Path, catalog: FilesystemCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(tmp_path, 3, **{"snapshot.num-retained.min": "1", "snapshot.time-retained": "100000 d"})
    right = time.time
    monkeypatch.setattr(time, "time", lambda: right() + 200_000 * 86_400)
    done = do_job(catalog, Job("expire", "db.t"), USER)
    assert isinstance(done, Expired)
    assert done.snapshots == 0


def test_an_error_is_an_answer(catalog: FilesystemCatalog) -> None:
    done = do_job(catalog, Job("compact", "db.t"), USER, clock)
    assert isinstance(done, NotDone)
    assert done.error == "TableNotFoundError"


def test_job_after_job_keeps_only_the_manifests_of_the_newest_snapshot(
    tmp_path: Path, catalog: FilesystemCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = ManifestCache(100_000)
    monkeypatch.setattr(file_store_scan, "MANIFEST_CACHE", kept)
    table = native_table(tmp_path, [("k", "INT")], keys=["k"], options={"bucket": "4"})
    most = 0
    for n in range(40):
        put(table, [{"k": k} for k in range(n, n + 20)])
        if n % 5 == 4:
            do_job(catalog, Job("compact", "db.t"), "maintenance")
            listed = load_state(table).manifests
            promised = sum(one.num_added_files + one.num_deleted_files for one in listed)
            assert kept.entries <= promised
            most = max(most, kept.entries)
    assert most > 0
