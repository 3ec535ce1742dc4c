import logging
from dataclasses import replace

import pytest
from prometheus_client import REGISTRY

from ingestd.daemon.maintenance import MaintenanceRecord
from ingestd.ingest.maintenance.jobs import CompactionDone, Expired, NotDone
from ingestd.ingest.maintenance.scheduler import Job, RunCounts
from ingestd.paimon.table.compact.sorted_runs import SortedRuns

COMPACT, EXPIRE = Job("compact", "db.rec"), Job("expire", "db.rec")
NOTHING = CompactionDone(COMPACT, "nothing", None, 0.1, SortedRuns(1))
DONE = CompactionDone(COMPACT, "compacted", 7, 0.5, SortedRuns(6), 2, 1, 9, 2, 900, 300, 12)


def value(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, {"table": "db.rec", **labels}) or 0.0


@pytest.fixture
def record() -> MaintenanceRecord:
    return MaintenanceRecord("background", clock=lambda: 123.0)


def test_a_compaction_is_counted_logged_and_kept(
    record: MaintenanceRecord, caplog: pytest.LogCaptureFixture
) -> None:
    names = {
        "ingestd_compaction_input_bytes_total": 900,
        "ingestd_compaction_output_bytes_total": 300,
        "ingestd_compaction_seconds_count": 1,
    }
    before = {name: value(name) for name in names}
    counted = value("ingestd_compactions_total", result="compacted")
    with caplog.at_level(logging.INFO):
        record.done(DONE)
    assert {name: value(name) - before[name] for name in names} == names
    assert value("ingestd_compactions_total", result="compacted") == counted + 1
    assert [record.getMessage() for record in caplog.records] == ["table_compacted"]
    line = record.document({}, [])["compactions"][0]
    assert (line["at"], line["snapshot_id"], line["lost_buckets"]) == (123.0, 7, 1)


def test_where_nothing_was_to_do_only_the_count_says_so(
    record: MaintenanceRecord, caplog: pytest.LogCaptureFixture
) -> None:
    counted = value("ingestd_compactions_total", result="nothing")
    with caplog.at_level(logging.INFO):
        record.done(NOTHING)
        record.done(Expired(EXPIRE, 0.1))
    assert value("ingestd_compactions_total", result="nothing") == counted + 1
    assert caplog.records == []
    told = record.document({}, [])
    assert (told["compactions"], told["expiries"]) == ([], [])


def test_expiry_is_counted_by_snapshots_and_files(record: MaintenanceRecord) -> None:
    snapshots = value("ingestd_snapshots_expired_total")
    files = value("ingestd_files_expired_total")
    record.done(Expired(EXPIRE, 0.1, snapshots=3, files=20))
    assert value("ingestd_snapshots_expired_total") == snapshots + 3
    assert value("ingestd_files_expired_total") == files + 20
    assert record.document({}, [])["expiries"][0]["snapshots"] == 3


def test_iceberg_metadata_that_failed_after_a_job_is_counted(record: MaintenanceRecord) -> None:
    failures = value("ingestd_iceberg_failures_total")
    record.done(replace(NOTHING, iceberg_failed=True))
    record.done(Expired(EXPIRE, 0.1, iceberg_failed=True))
    record.done(Expired(EXPIRE, 0.1))
    assert value("ingestd_iceberg_failures_total") == failures + 2


def test_what_fails_is_reported_with_its_reason(
    record: MaintenanceRecord, caplog: pytest.LogCaptureFixture
) -> None:
    failed = value("ingestd_compactions_total", result="failed")
    expiry = value("ingestd_expiry_failures_total")
    record.done(NotDone(COMPACT, "FormatError", "file x is damaged"))
    record.done(NotDone(EXPIRE, "StorageError", "no answer"))
    assert value("ingestd_compactions_total", result="failed") == failed + 1
    assert value("ingestd_expiry_failures_total") == expiry + 1
    shown = record.document({}, [])
    assert shown["compactions"][0]["message"] == "file x is damaged"
    assert shown["expiries"] == [{"at": 123.0, "table": EXPIRE.table, "message": "no answer"}]
    assert [record.getMessage() for record in caplog.records] == ["maintenance_failed"] * 2


def test_tables_and_waits_are_in_the_document(record: MaintenanceRecord) -> None:
    record.throttled("sorted-runs", ["db.rec"])
    told = record.document({"db.rec": RunCounts(4, 9), "db.new": RunCounts()}, ["db.rec"])
    assert told["throttled_by"] == "sorted-runs"
    assert told["tables"]["db.rec"] == {"level_0": 4, "sorted_runs": 9}
    record.released("sorted-runs", 1.5)
    after = record.document({}, [])
    assert (after["throttled_by"], after["throttled_seconds"]) == (None, 1.5)


def test_gauges_wait_until_the_sorted_runs_are_known(record: MaintenanceRecord) -> None:
    record.sorted_runs("db.unknown", RunCounts())
    assert REGISTRY.get_sample_value("ingestd_sorted_runs", {"table": "db.unknown"}) is None
    record.sorted_runs("db.rec", RunCounts(4, 9))
    assert (value("ingestd_level0_files"), value("ingestd_sorted_runs")) == (4, 9)
