import re
from pathlib import Path

import pytest

from ingestd.cdc.format_guess import Guess
from ingestd.daemon.console.health import Condition, Level, conditions
from ingestd.daemon.status import Status
from ingestd.errors import SourceError
from ingestd.ingest.batch_events import BatchSummary
from ingestd.ingest.settings.wrong_format import SetAside
from ingestd.ingest.values.counts import Counts, RejectedSample
from ingestd.kafka.offset_ranges import OffsetRange

RUNBOOK = Path(__file__).resolve().parents[4] / "docs/alerts.md"


@pytest.fixture
def status() -> Status:
    status = Status("shop", "1", ["s"], lambda: 1_700_000_000.0, lambda: 5.0)
    status.enter("running")
    return status


def caught_up(status: Status, end: int = 5) -> None:
    status.batch_started("1", [OffsetRange("s", "orders", 0, 0, 5)])
    status.batch_finished(BatchSummary("1", {"s": {"orders": {0: 5}}}, (), Counts()))
    status.source_answered("s", {"orders": {0: end}})


def found(status: Status) -> list[Condition]:
    shown = conditions(status.document())
    headings = set(re.findall("^#+ (.*)$", RUNBOOK.read_text(encoding="utf-8"), re.MULTILINE))
    assert {condition.runbook for condition in shown} - {None} <= headings
    return shown


def test_nothing_is_said_to_be_read_before_it_is_known(status: Status) -> None:
    (only,) = found(status)
    assert only.level is Level.WAIT
    assert "not known yet" in only.text


def test_what_is_behind_is_said(status: Status) -> None:
    caught_up(status)
    assert [one.text for one in found(status)] == ["All records of the topics are in the tables."]
    bad = RejectedSample("s", "orders", 0, 4, "cast", "no_number", "column total: 'x'")
    ranges = [OffsetRange("s", "orders", 0, 0, 5)]
    status.batch_started("2", ranges)
    status.batch_finished(BatchSummary("2", {"s": {"orders": {0: 5}}}, (), Counts(), (bad,)))
    (only,) = found(status)
    assert only.text == "All records of the topics are in the tables or are dead letters."
    caught_up(status, 1005)
    (only,) = found(status)
    assert only == Condition(Level.GOOD, "Reading: 1,000 records are not in the tables yet.")


def test_an_outage_of_the_brokers_is_no_waiting(status: Status) -> None:
    status.enter("starting")
    status.source_went_silent("s", "kafka:9092 did not report topics: refused")
    (only,) = found(status)
    assert only.level is Level.BAD
    assert "kafka:9092 did not report topics: refused" in only.text
    caught_up(status)
    status.source_went_silent("s", "kafka:9092 did not report topics: refused")
    assert [one.level for one in found(status)] == [Level.BAD]


def test_a_query_that_ended_is_said_with_its_error(status: Status) -> None:
    caught_up(status)
    status.failed(SourceError("no broker"))
    for state in ("backoff", "failed"):
        status.enter(state)
        assert [one.level for one in found(status)] == [Level.BAD]
        assert "SourceError: no broker" in found(status)[0].text


def test_unreadable_partitions_of_a_topic_are_said_with_the_reason_of_each(status: Status) -> None:
    caught_up(status)
    for partition in (0, 2):
        unread = OffsetRange("s", "orders", partition, 3, 9)
        status.set_aside.add_partition(unread, f"offset 3 of partition {partition}")
    [condition] = found(status)
    assert condition.runbook == "IngestdPartitionUnreadable"
    assert "partitions 0, 2" in condition.text
    assert "offset 3 of partition 0\noffset 3 of partition 2" in condition.text


def test_a_topic_set_aside_is_said_first(status: Status) -> None:
    caught_up(status)
    status.show_maintenance(lambda: {"throttled_by": "sorted-runs"})
    aside = SetAside("s", "orders", 9, 9, Guess("canal-json", 9, 9), {0: 3})
    status.set_aside.add(aside, "looks like canal-json")
    first, second = found(status)
    assert (first.level, second.level) == (Level.BAD, Level.WAIT)
    assert "looks like canal-json" in first.text
    assert first.runbook == "IngestdTopicSetAside"
    assert "sorted-runs" in second.text
