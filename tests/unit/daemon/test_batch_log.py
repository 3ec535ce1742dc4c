import logging
from collections import Counter

import pytest
from prometheus_client import REGISTRY

from ingestd.cdc.format_guess import Guess
from ingestd.daemon.batch_log import BatchLog
from ingestd.daemon.status import Status
from ingestd.ingest.batch_events import BatchSummary, TableCommit
from ingestd.ingest.settings.wrong_format import SetAside
from ingestd.ingest.values.counts import Counts, RejectedSample
from ingestd.kafka.offset_ranges import SourcePartition
from ingestd.log import event_fields


def value(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


def summary() -> BatchSummary:
    counts = Counts(
        records=Counter({SourcePartition("s", "bl", 0): 3, SourcePartition("s", "bl", 1): 4}),
        bytes=Counter({SourcePartition("s", "bl", 0): 30, SourcePartition("s", "bl", 1): 40}),
        control=1,
        rejected=Counter({("decode", "bad-json"): 3}),
        dropped=Counter({("decode", "bad-json"): 1}),
        rows=Counter({("db.bl", 0): 3, ("db.bl", 3): 1}),
        skipped=Counter({("db.bl", "covered"): 5}),
        files=Counter({"db.bl": 2}),
        file_bytes=Counter({"db.bl": 1000}),
    )
    sample = RejectedSample("s", "bl", 1, 42, "decode", "bad-json", "no JSON at byte 3")
    commits = (
        TableCommit("db.bl", "committed", 9, 2, 0.5),
        TableCommit("db.old", "replayed", 3, 0, 0.1),
    )
    seconds = {"stages": 1.0, "commit": 0.5, "total": 1.75}
    return BatchSummary(
        "11", {"s": {"bl": {0: 3}}}, commits, counts, (sample,), seconds,
        iceberg_failures=("db.bl", "db.bl"),
    )  # fmt: skip


@pytest.fixture
def good_batches() -> list[int]:
    return []


@pytest.fixture
def listener(good_batches: list[int]) -> BatchLog:
    status = Status("p", "1", ["s"])
    return BatchLog(status, lambda: good_batches.append(1), clock=lambda: 123.0)


def test_a_batch_is_counted_once_it_has_landed(listener: BatchLog) -> None:
    names = [
        ("ingestd_source_records_total", {"source": "s", "topic": "bl"}, 7),
        ("ingestd_source_bytes_total", {"source": "s", "topic": "bl"}, 70),
        ("ingestd_rows_written_total", {"table": "db.bl", "kind": "+I"}, 3),
        ("ingestd_rows_written_total", {"table": "db.bl", "kind": "-D"}, 1),
        ("ingestd_dead_letters_total", {"stage": "decode", "reason": "bad-json"}, 2),
        ("ingestd_dropped_records_total", {"stage": "decode", "reason": "bad-json"}, 1),
        ("ingestd_skipped_rows_total", {"table": "db.bl", "reason": "covered"}, 5),
        ("ingestd_commits_total", {"table": "db.bl", "result": "committed"}, 1),
        ("ingestd_commits_total", {"table": "db.old", "result": "replayed"}, 1),
        ("ingestd_commit_attempts_total", {"table": "db.bl"}, 2),
        ("ingestd_iceberg_failures_total", {"table": "db.bl"}, 2),
        ("ingestd_iceberg_failures_total", {"table": "db.old"}, 0),
        ("ingestd_files_written_total", {"table": "db.bl"}, 2),
        ("ingestd_file_bytes_written_total", {"table": "db.bl"}, 1000),
        ("ingestd_phase_seconds_sum", {"phase": "stages"}, 1.0),
        ("ingestd_batch_seconds_sum", {}, 1.75),
    ]  # fmt: skip
    before = [value(name, **labels) for name, labels, _ in names]
    listener.batch_started("11", ())
    assert [value(name, **labels) for name, labels, _ in names] == before
    listener.batch_finished(summary())
    after = [value(name, **labels) for name, labels, _ in names]
    grown = [a - b for a, b in zip(after, before, strict=True)]
    assert grown == pytest.approx([more for *_, more in names])


def test_only_a_commit_of_now_moves_the_time_of_the_last_commit(listener: BatchLog) -> None:
    listener.batch_finished(summary())
    assert value("ingestd_last_commit_timestamp_seconds", table="db.bl") == 123.0
    assert value("ingestd_snapshot_id", table="db.bl") == 9
    assert value("ingestd_last_commit_timestamp_seconds", table="db.old") == 0.0


def test_a_batch_that_went_through_renews_the_budget(
    listener: BatchLog, good_batches: list[int]
) -> None:
    listener.batch_started("11", ())
    assert good_batches == []
    listener.batch_finished(summary())
    assert good_batches == [1]


def test_one_line_a_batch_and_one_for_each_rejected_record(
    listener: BatchLog, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        listener.batch_started("11", ())
        listener.batch_finished(summary())
    events = {record.getMessage(): event_fields(record) for record in caplog.records}
    assert set(events) == {"record_rejected", "batch_finished"}
    rejected = events["record_rejected"]
    assert (rejected["topic"], rejected["partition"], rejected["offset"]) == ("bl", 1, 42)
    assert rejected["reason"] == "bad-json"
    line = events["batch_finished"]
    assert (line["records"], line["rows"], line["rejected"]) == (7, 4, 3)
    assert line["snapshots"] == {"db.bl": 9, "db.old": 3}


def test_dead_letters_of_a_start_are_counted_as_those_of_records(listener: BatchLog) -> None:
    labels = {"stage": "fetch", "reason": "table-dropped"}
    letters = value("ingestd_dead_letters_total", **labels)
    rejected = value("ingestd_rejected_records_total")
    listener.losses_accepted(["offset-gap", "table-dropped", "table-dropped"])
    assert value("ingestd_dead_letters_total", **labels) == letters + 2
    assert value("ingestd_rejected_records_total") == rejected + 3


def test_an_empty_batch_is_no_news(listener: BatchLog, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        listener.batch_started("12", ())
        listener.batch_finished(BatchSummary("12", {}, (), Counts()))
    assert caplog.records == []


def test_a_topic_that_is_set_aside_is_shown_until_the_next_run() -> None:
    status = Status("bl", "1.0", ["s"])
    listener = BatchLog(status, lambda: None)
    one = SetAside("s", "bl", 100, 99, Guess("maxwell-json", 20, 20), {1: 7})
    listener.topic_set_aside(one, "it is of another format")
    assert value("ingestd_topic_set_aside", source="s", topic="bl") == 1
    assert status.document()["sources"]["s"]["set_aside"] == {
        "bl": {
            "unreadable": False,
            "looks_like": "maxwell-json",
            "offsets": {"1": 7},
            "message": "it is of another format",
        }
    }
    listener.tables_opened({})
    assert value("ingestd_topic_set_aside", source="s", topic="bl") == 0
    assert status.document()["sources"]["s"]["set_aside"] == {}
