"""Topics that are lost, and losses as findings of the audit and as dead letters."""

import pytest

from ingestd.ingest.dead_letters.dead_letter import dead_letter_rows
from ingestd.ingest.recovery.audit import loss_findings
from ingestd.ingest.recovery.logs import LogPartition, Logs
from ingestd.ingest.recovery.losses import (
    TO_BE,
    Coverage,
    Loss,
    lost_records,
    lost_topics,
    lowered_origins,
)
from ingestd.ingest.tables.log_positions import Position, TopicName


def loss(reason: str) -> Loss:
    name = TopicName("shop.orders", "src")
    return Loss(name, LogPartition("id", 3), 5, 9, "lake.orders", reason, Position(9))


@pytest.mark.parametrize(
    ("reason", "severity"),
    [("offset-gap", "error"), ("log-truncated", "error"), ("rerouted", "warning")],
)
def test_lost_records_are_errors_and_a_changed_routing_is_a_warning(
    reason: str, severity: str
) -> None:
    (finding,) = loss_findings([loss(reason)], "lake.dead_letters", None)
    assert (finding.severity, finding.code) == (severity, reason)


def test_a_dead_letter_of_a_loss_has_coordinates_and_no_timestamp() -> None:
    (row,) = dead_letter_rows("job", "src", [loss("offset-gap").dead_letter()]).to_pylist()
    assert (row["topic"], row["partition"], row["offset"]) == ("shop.orders", 3, 5)
    assert (row["timestamp"], row["key"], row["value"]) == (None, None, None)


@pytest.mark.parametrize(
    ("fed", "covers", "accepted", "tables"),
    [
        ({"old"}, 9, set(), ["t"]),
        (set(), 5, set(), ["t"]),
        (set(), 9, set(), [TO_BE]),
        ({"old"}, 9, {"old"}, []),
    ],
)
def test_a_deleted_topic_is_lost_for_tables_with_its_rows_or_else_for_new_ones(
    fed: set[str], covers: int, accepted: set[str], tables: list[str]
) -> None:
    finished = {"old": {0: Position(9)}}
    covered = Coverage({"t": {"old": {0: Position(covers)}}}, finished, {})
    topics = {"old": TopicName("shop.orders", "src")}
    of_tables: dict[str, set[str]] = {"t": accepted, TO_BE: set()}
    lost = lost_topics(covered, {"t": fed}, topics, Logs(), {topics["old"]: "src"}, of_tables)
    assert [one.table for one in lost] == tables


def test_a_deleted_topic_is_lost_for_tables_that_lack_what_another_one_has() -> None:
    """A batch died between two tables: it is not finished, and one of them covers it."""
    held = {"first": {"old": {0: Position(9)}}, "second": {"old": {0: Position(5)}}}
    covered = Coverage(held, {"old": {0: Position(5)}}, {})
    topics = {"old": TopicName("shop.orders", "src")}
    keys: dict[str, set[str]] = {"first": {"old"}, "second": set()}
    accepted: dict[str, set[str]] = {"first": set(), "second": set(), TO_BE: set()}
    lost = lost_topics(covered, keys, topics, Logs(), {topics["old"]: "src"}, accepted)
    assert [(one.table, one.start) for one in lost] == [("first", 9), ("second", 5)]


def test_each_partition_of_a_deleted_topic_is_lost_for_someone() -> None:
    held = {"letters": {"old": {0: Position(5), 1: Position(9)}}}
    finished = {"old": {0: Position(9), 1: Position(9)}}
    covered = Coverage(held, finished, {})
    topics = {"old": TopicName("shop.orders", "src")}
    nothing: dict[str, set[str]] = {"letters": set(), TO_BE: set()}
    lost = lost_topics(covered, nothing, topics, Logs(), {topics["old"]: "src"}, nothing)
    assert [(one.log[1], one.table, one.start) for one in lost] == [
        (0, "letters", 5),
        (1, TO_BE, 9),
    ]


def test_records_are_counted_as_lost_once_for_each_log() -> None:
    lost = [
        Loss(
            TopicName("shop.orders", "src"),
            LogPartition("id", log),
            start,
            end,
            table,
            reason,
            Position(end),
        )
        for log, start, end, table, reason in (
            (0, 5, 9, "lake.a", "offset-gap"),
            (0, 7, 9, "lake.b", "offset-gap"),
            (1, 0, 3, "lake.a", "unreadable"),
            (2, 0, 9, "lake.a", "rerouted"),
        )
    ]
    assert lost_records(lost) == {("src", "shop.orders"): 7}


def test_a_log_that_was_cut_is_read_from_below_its_origin() -> None:
    origin = {"id": {3: 20, 4: 20}, "other": {0: 7}}
    ended = Loss(
        TopicName("gone", "src"), LogPartition("other", 0), 7, -1, "t", "topic-deleted", Position(3)
    )
    assert lowered_origins(origin, [loss("log-truncated"), ended]) == {
        "id": {3: 9, 4: 20},
        "other": {0: 7},
    }
    assert lowered_origins({"id": {3: 5}}, [loss("offset-gap")]) == {"id": {3: 5}}
