import pytest
from prometheus_client import REGISTRY

from ingestd.daemon.http_server import page
from ingestd.daemon.status import Status
from ingestd.daemon.watchdog import MISSING_SECONDS, PER_SOURCE_SECONDS, STUCK_SECONDS
from ingestd.errors import SourceError
from ingestd.ingest.batch_events import BatchSummary, OpenedTable, TableCommit
from ingestd.ingest.values.batch_times import BatchTimes
from ingestd.ingest.values.counts import Counts
from ingestd.kafka.offset_ranges import OffsetRange, SourcePartition
from ingestd.paimon.spec.data_types import DataField, parse_type
from ingestd.paimon.spec.table_schema import TableSchema
from tests.support.clock import Clock


@pytest.fixture
def status(clock: Clock) -> Status:
    return Status("shop", "1.0", ["a", "b"], clock, clock)


def finished(batch_id: int = 1, until: int = 10) -> BatchSummary:
    commit = TableCommit("db.t", "committed", 4, 1, 0.1)
    return BatchSummary(str(batch_id), {"a": {"topic": {0: until}}}, (commit,), Counts())


def test_it_is_live_as_long_as_the_loop_ticks(status: Status, clock: Clock) -> None:
    clock.now += STUCK_SECONDS - 1
    assert status.is_live
    status.beat()
    clock.now += STUCK_SECONDS - 1
    assert status.is_live
    clock.now += 1
    assert not status.is_live


def test_sources_that_a_reload_adds_may_all_be_slow(clock: Clock) -> None:
    status = Status("shop", "1.0", ["a"], clock, clock)
    status.enter("running")
    status.follow(["a", "b", "c"])
    clock.now += STUCK_SECONDS + 2 * PER_SOURCE_SECONDS
    status.beat()
    assert status.is_live
    clock.now += 1
    assert not status.is_live


def test_a_batch_that_never_ends_makes_it_dead(clock: Clock) -> None:
    status = Status("shop", "1.0", [], clock, clock, batch_timeout=60)
    status.batch_started("1", [])
    clock.now += 61
    status.beat()
    assert not status.is_live
    status.batch_finished(finished(1))
    assert status.is_live


def test_a_query_that_never_goes_round_makes_it_dead_though_its_loop_ticks(clock: Clock) -> None:
    status = Status("shop", "1.0", ["a"], clock, clock, batch_timeout=60)
    status.source_answered("a", {})
    status.enter("running")
    for _ in range(2):
        assert status.is_live
        assert status.not_ready is not None
        clock.now += 31
        status.beat()
    assert not status.is_live
    assert status.document()["batch"]["seconds_since_poll"] == 62
    status.query_idled()
    assert status.is_live
    assert status.not_ready is None


def test_a_query_that_took_long_to_start_has_its_time_to_plan_the_first_batch(
    clock: Clock,
) -> None:
    status = Status("shop", "1.0", [], clock, clock, batch_timeout=60)
    status.enter("starting")
    clock.now += 70
    status.enter("running")
    assert status.is_live
    clock.now += 61
    status.beat()
    assert not status.is_live


def test_a_batch_under_way_or_put_off_is_no_missing_round(clock: Clock) -> None:
    status = Status("shop", "1.0", [], clock, clock, batch_timeout=600)
    status.enter("running")
    status.batch_started("1", [])
    clock.now += STUCK_SECONDS + 100
    status.beat()
    assert status.is_live
    status.batch_finished(finished(1))
    status.delayed(delayed=True)
    clock.now += STUCK_SECONDS + 100
    status.beat()
    assert status.is_live


def test_a_query_that_rests_while_a_batch_runs_is_reported_by_an_older_look(clock: Clock) -> None:
    status = Status("shop", "1.0", [], clock, clock)
    status.enter("running")
    status.batch_started("1", [])
    clock.now += 5
    status.query_idled()
    assert status.document()["batch"]["seconds_since_poll"] == 5


def test_a_failed_query_does_not_make_it_dead(status: Status) -> None:
    status.failed(SourceError("no broker"))
    status.enter("backoff")
    assert status.is_live
    assert status.not_ready is not None


def test_it_is_ready_when_it_runs_and_all_sources_have_answered(status: Status) -> None:
    status.source_answered("a", {})
    status.source_answered("b", {})
    assert status.not_ready is not None
    status.enter("running")
    assert status.not_ready is not None
    status.query_idled()
    assert status.not_ready is None


def test_it_is_not_ready_before_every_source_has_answered(status: Status) -> None:
    status.enter("running")
    status.query_idled()
    status.source_answered("a", {})
    assert status.not_ready is not None
    status.source_went_silent("b", "nobody there")
    assert status.not_ready is not None


def test_a_finished_batch_is_as_good_as_an_answer(status: Status) -> None:
    status.enter("running")
    status.batch_finished(finished())
    assert status.not_ready is None
    status.enter("draining")
    assert status.not_ready is not None


def test_a_restart_has_to_prove_itself_again(status: Status) -> None:
    status.enter("running")
    status.batch_finished(finished())
    status.enter("starting")
    status.enter("running")
    assert status.not_ready is not None


def test_lag_is_the_end_less_what_is_in_the_tables(status: Status) -> None:
    status.batch_started("1", [OffsetRange("a", "topic", 0, 4, 10)])
    status.source_answered("a", {"topic": {0: 25, 1: 3}})
    topics = status.document()["sources"]["a"]["topics"]
    assert topics["topic"]["0"] == {"position": 4, "end": 25, "lag": 21}
    assert topics["topic"]["1"] == {"position": None, "end": 3, "lag": None}
    status.batch_finished(finished(until=10))
    assert status.document()["sources"]["a"]["topics"]["topic"]["0"]["lag"] == 15


def test_topics_that_are_gone_are_forgotten(status: Status) -> None:
    status.source_answered("a", {"old": {0: 5}, "topic": {0: 1}})
    status.source_answered("a", {"topic": {0: 2}})
    assert list(status.document()["sources"]["a"]["topics"]) == ["topic"]


def test_one_source_does_not_make_another_forget(status: Status) -> None:
    status.source_answered("a", {"one": {0: 5}})
    status.source_answered("b", {"two": {0: 5}})
    assert list(status.document()["sources"]["a"]["topics"]) == ["one"]


def test_silence_is_news_once(status: Status) -> None:
    assert status.source_went_silent("a", "nobody there")
    assert not status.source_went_silent("a", "nobody there yet")
    assert status.document()["sources"]["a"]["error"] == "nobody there yet"
    status.source_answered("a", {})
    assert status.document()["sources"]["a"]["error"] is None
    assert status.source_went_silent("a", "again")


def test_the_document_shows_tables_batches_and_the_last_error(status: Status, clock: Clock) -> None:
    status.enter("running")
    status.batch_started("7", [])
    document = status.document()
    assert document["state"] == "running"
    under_way = {"running": "7", "seconds": 0, "phases": {}, "finished": None}
    assert document["batch"] == {**under_way, "seconds_since_poll": 0}
    assert document["last_error"] is None
    status.batch_finished(finished(7))
    status.failed(SourceError("no broker"))
    status.restarting(SourceError("no broker"))
    document = status.document()
    assert document["tables"]["db.t"]["snapshot_id"] == 4
    assert document["tables"]["db.t"]["committed_at"] == "2023-11-14T22:13:20Z"
    nothing = {"running": None, "seconds": None, "phases": None}
    assert document["batch"] == {**nothing, "finished": "7", "seconds_since_poll": 0}
    assert document["last_error"]["type"] == "SourceError"
    assert document["restarts"] == 1


def test_the_batch_under_way_is_reported_by_phase(status: Status, clock: Clock) -> None:
    status.batch_started("7", [])
    status.phase("decode", 0.5)
    status.phase("decode", 0.25)
    status.phase("write", 1.0)
    clock.now += 2
    batch = status.document()["batch"]
    assert (batch["seconds"], batch["phases"]) == (2, {"decode": 0.75, "write": 1.0})


def test_tables_sum_what_was_written_since_the_start(status: Status) -> None:
    counts = Counts()
    counts.rows["db.t", 0] = 3
    counts.rows["db.t", 3] = 2
    counts.files["db.t"] = 1
    commit = TableCommit("db.t", "committed", 4, 1, 0.1)
    for batch_id in (1, 2):
        status.batch_finished(BatchSummary(str(batch_id), {}, (commit,), counts))
    table = status.document()["tables"]["db.t"]
    assert (table["rows"], table["files"]) == (10, 2)


def test_samples_hold_the_lag_of_all_sources(status: Status) -> None:
    status.source_answered("a", {"topic": {0: 25, 1: 5}})
    status.sample()
    assert status.document()["recent"]["lags"] == []
    ranges = [OffsetRange("a", "topic", partition, 0, 5) for partition in (0, 1)]
    status.batch_started("1", ranges)
    status.sample()
    assert status.document()["recent"]["lags"] == []


def test_samples_are_ten_seconds_apart(status: Status, clock: Clock) -> None:
    ranges = [OffsetRange("a", "topic", 0, 0, 5)]
    status.batch_started("1", ranges)
    status.source_answered("a", {"topic": {0: 25}})
    for _ in range(3):
        status.sample()
        clock.now += 5
    assert [lag for _, lag in status.document()["recent"]["lags"]] == [25, 25]


def test_a_table_without_rows_since_the_start_has_no_lag_when_nothing_waits(status: Status) -> None:
    """Also of a source that has not answered yet the records may be the table's."""

    def lag() -> float | None:
        known: float | None = status.document()["tables"]["db.t"]["lag_seconds"]
        return known

    schema = TableSchema(0, (DataField(0, "id", parse_type("BIGINT")),), 0)
    status.tables_opened({"db.t": OpenedTable(schema)})
    assert lag() is None
    status.batch_finished(BatchSummary("1", {"a": {"topic": {0: 10}}}, (), Counts()))
    status.source_answered("a", {"topic": {0: 11}})
    assert lag() is None, "the record may be one of its"
    status.source_answered("a", {"topic": {0: 10}})
    assert lag() is None
    status.source_answered("b", {})
    assert lag() == 0
    status.source_went_silent("a", "no broker")
    assert lag() is None


def test_a_table_gets_staler_while_no_batch_ends(status: Status, clock: Clock) -> None:
    times = BatchTimes()
    times.note_event("db.t", int(clock.now * 1000) - 5000)
    times.note_reached(SourcePartition("a", "topic", 0), 9, int(clock.now * 1000) - 5000)
    topics = {"db.t": frozenset({("a", "topic")})}
    commit = TableCommit("db.t", "committed", 4, 1, 0.1)
    until = {"a": {"topic": {0: 10}}}
    status.source_answered("a", {"topic": {0: 25}})
    status.batch_finished(BatchSummary("1", until, (commit,), Counts(), times=times, topics=topics))

    def freshness() -> float | None:
        return REGISTRY.get_sample_value("ingestd_table_freshness_seconds", {"table": "db.t"})

    assert freshness() == 5
    clock.now += 30
    assert freshness() == 5
    assert status.document()["tables"]["db.t"]["lag_seconds"] == 35
    status.sample()
    assert freshness() == 35


def test_a_cluster_without_executors_for_a_minute_is_not_ready(clock: Clock) -> None:
    status = Status("shop", "1.0", ["a"], clock, clock)
    status.source_answered("a", {})
    status.enter("running")
    status.batch_finished(finished())
    assert status.executors_counted(2) is None
    assert status.executors_counted(0) is None
    clock.now += MISSING_SECONDS - 1
    assert status.executors_counted(0) is None
    assert status.not_ready is None
    clock.now += 1
    assert status.executors_counted(0) is True
    assert status.executors_counted(0) is None, "stated twice"
    why = b"not ready: no-executors: Spark has had no executor for 60 s or more\n"
    assert page("/readyz", status).body == why
    assert status.document()["executors"] == 0
    assert (status.document()["ready"], status.document()["not_ready"]) == (False, "no-executors")
    assert status.is_live, "a restart brings no executors"
    assert status.executors_counted(1) is False
    assert page("/readyz", status).code == 200
    assert status.document()["not_ready"] is None


def test_a_local_master_and_a_new_query_need_no_executors(clock: Clock) -> None:
    status = Status("shop", "1.0", [], clock, clock)
    for count in (None, 0):
        status.executors_counted(count)
        clock.now += MISSING_SECONDS + 1
        if count == 0:
            status.enter("starting")
        assert status.executors_counted(count) is None
