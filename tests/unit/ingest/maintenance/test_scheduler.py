import logging
from dataclasses import replace

import pytest

from ingestd.ingest.maintenance.scheduler import Job, MaintenancePace, MaintenanceScheduler
from ingestd.ingest.maintenance.table_maintenance import CompactionOutcome, TableGrowth
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.paimon.table.compact.sorted_runs import SortedRuns

PLACE = (b"", 0)


def schema(**options: str) -> TableSchema:
    given = {name.replace("__", ".").replace("_", "-"): one for name, one in options.items()}
    return new_schema([("k", parse_type("INT"))], ["k"], [], {"bucket": "1", **given}, 0)


PLAIN = schema()


def append(
    choice: MaintenanceScheduler, name: str, snapshot: int, files: int, now: float = 0.0
) -> None:
    choice.committed(name, TableGrowth(PLAIN, snapshot, {PLACE: files}), now)


@pytest.fixture
def choice() -> MaintenanceScheduler:
    return MaintenanceScheduler(MaintenancePace(expiry_interval=60.0))


def test_what_has_waited_longest_comes_first_and_only_once(choice: MaintenanceScheduler) -> None:
    append(choice, "db.late", 1, 5, now=2.0)
    append(choice, "db.early", 1, 5, now=1.0)
    assert choice.take(3.0) == Job("compact", "db.early")
    assert choice.take(3.0) == Job("compact", "db.late")
    assert choice.take(3.0) is None


def test_what_is_above_the_stop_trigger_comes_before_all_others(
    choice: MaintenanceScheduler,
) -> None:
    append(choice, "db.full", 1, 5, now=0.0)
    job = choice.take(0.0)
    assert job is not None
    choice.compacted(job.table, SortedRuns(1), CompactionOutcome(changed=True), 0.0)
    append(choice, "db.early", 1, 5, now=1.0)
    append(choice, "db.full", 2, 9, now=2.0)
    assert list(choice.over_stop()) == ["db.full"]
    assert choice.take(3.0) == Job("compact", "db.full", urgent=True)
    choice.compacted(job.table, SortedRuns(2), CompactionOutcome(changed=True), 3.0)
    assert list(choice.over_stop()) == []


def test_first_looks_wait_for_work_that_is_due(choice: MaintenanceScheduler) -> None:
    choice.opened("db.old", PLAIN, 0.0)
    append(choice, "db.new", 1, 5, now=6.0)
    assert choice.take(6.0) == Job("compact", "db.new")
    assert choice.take(6.0) == Job("compact", "db.old")


def test_during_a_backlog_only_pressing_compactions_run(
    choice: MaintenanceScheduler,
) -> None:
    choice.opened("db.old", PLAIN, 0.0)
    append(choice, "db.due", 1, 5, now=0.0)
    assert choice.take(1.0, "pressing") is None
    append(choice, "db.full", 1, 7, now=1.0)
    assert choice.take(1.0, "pressing") == Job("compact", "db.full", urgent=True)
    assert choice.take(1.0, "pressing") is None
    assert choice.take(60.0, "pressing") == Job("compact", "db.due")
    assert choice.take(60.0, "pressing") == Job("compact", "db.old")


def test_only_what_ingest_waits_for_is_urgent_while_the_stream_keeps_up(
    choice: MaintenanceScheduler,
) -> None:
    append(choice, "db.near", 1, 8)
    assert choice.take(0.0) == Job("compact", "db.near")
    append(choice, "db.over", 1, 9)
    assert choice.take(0.0) == Job("compact", "db.over", urgent=True)


def test_a_table_rests_between_compactions_unless_somebody_waits(
    choice: MaintenanceScheduler,
) -> None:
    append(choice, "db.a", 1, 5)
    assert choice.take(0.0) == Job("compact", "db.a")
    choice.compacted("db.a", SortedRuns(1), CompactionOutcome(changed=True), 10.0)
    append(choice, "db.a", 2, 5, now=10.0)
    assert choice.take(11.9) is None
    assert choice.triggered(11.9) == ["db.a"]
    assert choice.take(11.9, "all") == Job("compact", "db.a")
    choice.compacted("db.a", SortedRuns(2), CompactionOutcome(changed=True), 20.0)
    append(choice, "db.a", 3, 5, now=20.0)
    assert choice.take(22.0) == Job("compact", "db.a")
    choice.compacted("db.a", SortedRuns(3), CompactionOutcome(changed=True), 30.0)
    append(choice, "db.a", 4, 8, now=30.0)
    assert choice.take(30.0) == Job("compact", "db.a", urgent=True)


def test_a_table_whose_news_wait_for_compactions_does_not_rest(
    choice: MaintenanceScheduler,
) -> None:
    vectors = schema(deletion_vectors__enabled="true")
    choice.committed("db.a", TableGrowth(vectors, 1, {PLACE: 1}), 0.0)
    assert choice.take(0.0) == Job("compact", "db.a")
    choice.compacted("db.a", SortedRuns(1), CompactionOutcome(changed=True), 1.0)
    choice.committed("db.a", TableGrowth(vectors, 2, {PLACE: 1}), 1.0)
    assert choice.take(1.0) == Job("compact", "db.a")


def test_a_table_that_is_opened_again_goes_on_as_it_was(choice: MaintenanceScheduler) -> None:
    append(choice, "db.a", 1, 5)
    choice.opened("db.a", PLAIN, 1.0)
    assert choice.take(1.0) == Job("compact", "db.a")


def test_expiry_waits_for_compactions_but_not_for_ever(choice: MaintenanceScheduler) -> None:
    choice.opened("db.quiet", PLAIN, 0.0)
    job = choice.take(5.0)
    assert job is not None
    choice.compacted(job.table, SortedRuns(1), CompactionOutcome(changed=False), 5.0)
    append(choice, "db.busy", 1, 5, now=70.0)
    assert choice.take(70.0) == Job("compact", "db.busy")
    assert choice.take(70.0) == Job("expire", "db.quiet")
    choice.expired("db.quiet", 70.0)
    choice.compacted("db.busy", SortedRuns(1), CompactionOutcome(changed=True), 71.0)
    append(choice, "db.busy", 2, 5, now=300.0)
    assert choice.take(300.0) is not None
    late = choice.take(300.0)
    assert late is not None
    assert "expire" in {late.kind}


def test_a_table_has_one_job_at_a_time(choice: MaintenanceScheduler) -> None:
    append(choice, "db.a", 1, 5)
    job = choice.take(0.0)
    append(choice, "db.a", 2, 5)
    assert choice.take(1000.0) is None
    assert job is not None
    choice.failed(job.table, 1000.0)
    assert choice.take(1000.5) == Job("expire", "db.a")


def test_full_compactions_are_distinguished_from_others(choice: MaintenanceScheduler) -> None:
    full = schema(changelog_producer="full-compaction")
    choice.committed("db.a", TableGrowth(full, 1, {PLACE: 1}), 0.0)
    assert choice.take(0.0) == Job("full", "db.a")


def test_nothing_is_compacted_or_expired_that_should_not_be() -> None:
    idle = MaintenanceScheduler(MaintenancePace(compacts=False, expires=False))
    append(idle, "db.a", 1, 100)
    assert idle.take(1e6) is None
    assert idle.triggered(1e6) == []
    choice = MaintenanceScheduler(MaintenancePace())
    alone = schema(write_only="true")
    choice.committed("db.a", TableGrowth(alone, 1, {PLACE: 100}), 0.0)
    assert choice.take(1e6) is None
    assert choice.triggered(1e6) == []


def test_a_failing_table_is_not_waited_for(choice: MaintenanceScheduler) -> None:
    append(choice, "db.a", 1, 5)
    assert choice.triggered(0.0) == ["db.a"]
    job = choice.take(0.0)
    assert job is not None
    assert choice.triggered(0.0) == ["db.a"]
    choice.failed(job.table, 0.0)
    assert choice.triggered(0.0) == []


def test_options_that_cannot_be_understood_leave_the_table_alone(
    choice: MaintenanceScheduler, caplog: pytest.LogCaptureFixture
) -> None:
    broken = replace(PLAIN, options={"num-levels": "1"})
    with caplog.at_level(logging.WARNING):
        choice.opened("db.a", broken, 0.0)
        append(choice, "db.b", 1, 1)
        choice.committed("db.b", TableGrowth(broken, 2, {PLACE: 1}), 0.0)
    assert [record.getMessage() for record in caplog.records] == ["maintenance_refused"] * 2
    assert choice.take(1e6) is None
    assert choice.sorted_runs("db.b") == (None, None)


def test_a_table_that_is_gone_is_forgotten(choice: MaintenanceScheduler) -> None:
    append(choice, "db.a", 1, 5)
    choice.forget("db.a")
    assert choice.take(1e6) is None
    append(choice, "db.a", 2, 1)
    assert choice.take(1e6) is not None
