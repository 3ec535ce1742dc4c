"""Maintenance as the daemon runs it: with children that do what a test tells them to."""

import threading
import time
from collections.abc import Callable

import pytest
from prometheus_client import REGISTRY

from ingestd.daemon.maintenance import Maintenance, MaintenanceSettings
from ingestd.daemon.maintenance_process import Opening
from ingestd.errors import RetryableError
from ingestd.ingest.batch_events import TableCommit
from ingestd.ingest.maintenance.jobs import CompactionDone, Done, Expired, NotDone
from ingestd.ingest.maintenance.scheduler import Job
from ingestd.ingest.maintenance.table_maintenance import TableGrowth
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.paimon.table.compact.sorted_runs import SortedRuns

OPENING = Opening("p", "filesystem", "/nowhere", {})
PLACE = (b"", 0)
NEVER = threading.Event()


class Child:
    """Answers jobs as told; with `gate`, only when it is open."""

    def __init__(self, answers: list[Done | Exception] | None = None) -> None:
        self.answers = answers or []
        self.jobs: list[Job] = []
        self.gate = threading.Event()
        self.gate.set()
        self.closed = False

    def __call__(self, _: Opening) -> "Child":
        return self

    def do(self, job: Job, stopping: threading.Event, grace: float) -> Done | None:
        self.jobs.append(job)
        while not self.gate.wait(0.01):
            if stopping.is_set():
                return None
        answer = self.answers.pop(0) if self.answers else done(job)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        self.closed = True


def done(job: Job) -> Done:
    if job.kind == "expire":
        return Expired(job, 0.1)
    return CompactionDone(job, "compacted", 99, 0.1, SortedRuns(98, 1), files_before=5)


def schema(**options: str) -> TableSchema:
    given = {name.replace("__", ".").replace("_", "-"): one for name, one in options.items()}
    columns = [("k", parse_type("INT")), ("v", parse_type("STRING"))]
    return new_schema(columns, ["k"], [], {"bucket": "1", **given}, 0)


def commit(table: str, snapshot: int, one: TableSchema, files: int = 1) -> TableCommit:
    growth = TableGrowth(one, snapshot, {PLACE: files})
    return TableCommit(table, "committed", snapshot, 1, 0.1, growth)


def eventually(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture
def child() -> Child:
    return Child()


def running(child: Child, settings: MaintenanceSettings | None = None) -> Maintenance:
    maintenance = Maintenance(settings or MaintenanceSettings(expires=False), OPENING, child)
    maintenance.start()
    return maintenance


def test_a_table_is_compacted_once_its_trigger_is_reached(child: Child) -> None:
    maintenance, one = running(child), schema()
    maintenance.committed([commit("db.a", 1, one, files=3)])
    maintenance.committed([commit("db.a", 2, one, files=2)])
    eventually(lambda: child.jobs == [Job("compact", "db.a")])
    eventually(lambda: bool(maintenance.document()["compactions"]))
    maintenance.stop()
    assert child.closed
    line = maintenance.document()["compactions"][0]
    assert (line["table"], line["result"], line["files_before"]) == ("db.a", "compacted", 5)
    assert maintenance.document()["tables"]["db.a"] == {"level_0": 1, "sorted_runs": 0}


def test_with_the_mode_off_nothing_runs_and_nobody_waits(child: Child) -> None:
    maintenance = running(child, MaintenanceSettings(mode="off", expires=False))
    maintenance.committed([commit("db.a", 1, schema(), files=100)])
    maintenance.between_batches(NEVER)
    maintenance.stop()
    assert child.jobs == []


def test_write_only_tables_are_left_to_somebody_else(child: Child) -> None:
    maintenance = running(child, MaintenanceSettings(expiry_interval=0.001))
    maintenance.committed([commit("db.a", 1, schema(write_only="true"), files=100)])
    maintenance.committed([commit("db.b", 1, schema(), files=100)])
    eventually(lambda: Job("expire", "db.b") in child.jobs)
    maintenance.stop()
    assert {job.table for job in child.jobs} == {"db.b"}


def test_ingest_waits_while_a_bucket_is_above_the_stop_trigger(child: Child) -> None:
    before = REGISTRY.get_sample_value("ingestd_throttled_seconds_total", {"cause": "sorted-runs"})
    maintenance, one = running(child), schema()
    maintenance.committed([commit("db.a", 1, one, files=5)])
    eventually(lambda: maintenance.document()["tables"]["db.a"]["level_0"] == 1)
    child.gate.clear()
    maintenance.committed([commit("db.a", 99, one, files=9)])
    waiting = threading.Thread(target=maintenance.between_batches, args=(NEVER,))
    waiting.start()
    eventually(lambda: maintenance.document()["throttled_by"] == "sorted-runs")
    assert maintenance.document()["over_stop_trigger"] == ["db.a"]
    child.answers.append(
        CompactionDone(Job("compact", "db.a"), "compacted", 101, 0.1, SortedRuns(100))
    )
    child.gate.set()
    waiting.join(120)
    assert not waiting.is_alive()
    maintenance.stop()
    told = maintenance.document()
    assert (told["throttled_by"], told["over_stop_trigger"]) == (None, [])
    after = REGISTRY.get_sample_value("ingestd_throttled_seconds_total", {"cause": "sorted-runs"})
    assert (after or 0) > (before or 0)


def test_the_wait_is_bounded_and_ends_when_the_query_stops(child: Child) -> None:
    settings = MaintenanceSettings(expires=False, max_throttle=0.05)
    maintenance, one = running(child, settings), schema()
    maintenance.committed([commit("db.a", 1, one, files=5)])
    eventually(lambda: maintenance.document()["tables"]["db.a"]["level_0"] == 1)
    child.gate.clear()
    maintenance.committed([commit("db.a", 99, one, files=9)])
    maintenance.between_batches(NEVER)
    assert maintenance.document()["over_stop_trigger"] == ["db.a"]
    stopped = threading.Event()
    stopped.set()
    patient = Maintenance(MaintenanceSettings(max_throttle=1e6), OPENING, child)
    patient.between_batches(stopped)
    maintenance.stop()


def test_inline_a_batch_waits_for_what_it_has_triggered(child: Child) -> None:
    maintenance = running(
        child, MaintenanceSettings(mode="inline", expires=False, inline_budget=1e6)
    )
    maintenance.committed([commit("db.a", 1, schema(), files=5)])
    maintenance.between_batches(NEVER)
    assert child.jobs == [Job("compact", "db.a")]
    assert maintenance.document()["compactions"]
    maintenance.stop()


def test_a_process_that_dies_is_started_again_and_the_job_is_done_later(child: Child) -> None:
    child.answers = [RetryableError("it died")]
    maintenance = running(child)
    maintenance.committed([commit("db.a", 1, schema(), files=5)])
    eventually(lambda: len(child.jobs) == 2)
    maintenance.finish(NEVER)
    maintenance.stop()
    results = [compaction["result"] for compaction in maintenance.document()["compactions"]]
    assert results == ["compacted", "failed"]


def test_a_compaction_that_fails_is_reported_and_other_tables_go_on(child: Child) -> None:
    child.answers = [NotDone(Job("compact", "db.a"), "FormatError", "file x is damaged")]
    maintenance, one = running(child), schema()
    maintenance.committed([commit("db.a", 1, one, files=5), commit("db.b", 1, one, files=5)])
    eventually(lambda: Job("compact", "db.b") in child.jobs)
    maintenance.stop()
    failed = maintenance.document()["compactions"][-1]
    assert (failed["result"], failed["message"]) == ("failed", "file x is damaged")


def test_stopping_gives_up_the_job_under_way(child: Child) -> None:
    child.gate.clear()
    maintenance = running(child)
    maintenance.committed([commit("db.a", 1, schema(), files=5)])
    eventually(lambda: bool(child.jobs))
    maintenance.stop()
    assert child.closed


def test_until_the_latest_what_is_due_is_done_before_the_end(child: Child) -> None:
    maintenance = running(child)
    maintenance.committed([commit("db.a", 1, schema(), files=5)])
    maintenance.committed([commit("db.b", 1, schema(), files=1)])
    maintenance.finish(NEVER)
    assert child.jobs == [Job("compact", "db.a")]
    maintenance.stop()


def test_a_stream_with_a_lasting_backlog_is_compacted_and_never_stuck(child: Child) -> None:
    maintenance, one = (
        running(child, MaintenanceSettings(expires=False, max_throttle=1e6)),
        schema(),
    )
    maintenance.opened({})
    fullest = 0
    for snapshot in range(1, 41):
        maintenance.batch_started()
        child.answers = [
            CompactionDone(Job("compact", "db.a"), "compacted", 99, 0.1, SortedRuns(snapshot))
        ]
        maintenance.committed([commit("db.a", snapshot, one)], cut=True)
        fullest = max(fullest, maintenance.document()["tables"]["db.a"]["sorted_runs"])
        maintenance.between_batches(NEVER)
        assert maintenance.document()["over_stop_trigger"] == []
    maintenance.stop()
    assert 7 <= fullest <= 9
    assert 2 <= len(child.jobs) <= 40 // 6
    assert all(job.urgent for job in child.jobs)


def test_compactions_that_a_backlog_delayed_run_after_it(child: Child) -> None:
    maintenance, one = running(child), schema()
    for snapshot in range(1, 7):
        maintenance.batch_started()
        maintenance.committed([commit("db.a", snapshot, one)], cut=True)
    maintenance.between_batches(NEVER)
    assert child.jobs == []
    maintenance.batch_started()
    maintenance.committed([], cut=False)
    eventually(lambda: child.jobs == [Job("compact", "db.a")])
    maintenance.stop()


def test_what_was_put_off_is_done_when_the_run_has_died(child: Child) -> None:
    maintenance, one = running(child), schema()
    for snapshot in range(1, 7):
        maintenance.batch_started()
        maintenance.committed([commit("db.a", snapshot, one)], cut=True)
    maintenance.batch_started()
    maintenance.between_batches(NEVER)
    assert child.jobs == []
    maintenance.run_died()
    eventually(lambda: child.jobs == [Job("compact", "db.a")])
    maintenance.stop()


def test_what_was_put_off_is_done_before_the_end(child: Child) -> None:
    maintenance, one = running(child), schema()
    maintenance.committed([commit("db.a", 1, one, files=5)], cut=True)
    maintenance.finish(NEVER)
    assert child.jobs == [Job("compact", "db.a")]
    maintenance.stop()


def test_inline_nothing_is_put_off(child: Child) -> None:
    maintenance = running(
        child, MaintenanceSettings(mode="inline", expires=False, inline_budget=1e6)
    )
    maintenance.committed([commit("db.a", 1, schema(), files=5)], cut=True)
    maintenance.between_batches(NEVER)
    assert child.jobs == [Job("compact", "db.a")]
    maintenance.stop()


def test_expiry_comes_at_its_interval(child: Child) -> None:
    maintenance = running(child, MaintenanceSettings(mode="off", expiry_interval=0.01))
    maintenance.opened({"db.a": schema()})
    eventually(lambda: len(child.jobs) >= 2)
    maintenance.stop()
    assert set(child.jobs) == {Job("expire", "db.a")}
