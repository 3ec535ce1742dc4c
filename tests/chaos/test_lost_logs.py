"""What becomes of a pipeline when the logs that it reads are not what they were.

Topics are deleted and created again, partitions come, retention and new leaders take records away.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from ingestd.errors import LogChangedError, OffsetLostError
from ingestd.ingest.schemas.column_history import (
    COLUMN_HISTORY_OPTION,
    ProvenChange,
    StatementOrigin,
    column_history_text,
)
from ingestd.kafka.properties import OutOfRangePolicy
from ingestd.paimon.catalog.base import Identifier
from ingestd.paimon.spec.schema_change import DropColumn, SetOption
from ingestd.paimon.table.read.table_read import read_table
from tests.chaos.test_truth import ORDERS, USERS, claims, drop, everything_once, goes_on, roll_back
from tests.chaos.test_truth import truth as truth
from tests.support.truth_rig import Log, Topic, Truth

pytestmark = pytest.mark.chaos


def _log(*numbers: int) -> Log:
    return Log([(number, 0) for number in numbers])


@pytest.mark.parametrize("records", [3, 10, 30])
def test_a_topic_that_was_created_again_is_not_read_on_whatever_its_offsets(
    truth: Truth, records: int
) -> None:
    truth.kafka.topics[ORDERS] = Topic("another", [_log(*range(100, 100 + records))])
    for _ in range(2):
        with pytest.raises(OffsetLostError, match=rf"created again: {ORDERS}/0 .*lake\.orders"):
            truth.live()
    assert everything_once(truth, 10)
    drop(truth)
    truth.live()
    assert truth.ids("orders") == list(range(100, 100 + records)), "the error's own advice works"
    assert truth.ids("users") == list(range(10))


@pytest.mark.parametrize("policy", ["earliest", "latest"])
def test_a_topic_that_was_created_again_is_accepted_once_by_a_policy(
    truth: Truth, policy: OutOfRangePolicy
) -> None:
    truth.kafka.topics[ORDERS] = Topic("another", [_log(*range(100, 105))])
    accepting = replace(truth, policy=policy)
    accepting.live()
    truth.kafka.produce(ORDERS, 105)
    truth.live()
    new = range(100, 106) if policy == "earliest" else range(105, 106)
    assert truth.ids("orders") == [*range(10), *new]
    (dead_letter,) = truth.dead_letters()
    assert f"created again: {ORDERS}/0 of source src, offsets 10 to its unknown end" in dead_letter


@pytest.mark.parametrize("what", ["topic", "log"])
def test_records_at_the_offsets_of_a_log_that_ended_are_newer_than_its_statements(
    truth: Truth, what: str
) -> None:
    """The column `at` was dropped by a record at offset 9, and is in the source again."""
    statement = StatementOrigin(500, ORDERS, 0, 9)
    text = column_history_text([ProvenChange(0, "at", "", statement)])
    changes = [DropColumn("at"), SetOption(COLUMN_HISTORY_OPTION, text)]
    truth.catalog.alter_table(Identifier("lake", "orders"), changes, 0)
    first = 0 if what == "topic" else 5
    new = Log([*_log(*range(first)).records, (100, 1), (101, 1), (102, 1)], epoch=1)
    truth.kafka.topics[ORDERS] = Topic("another" if what == "topic" else f"id of {ORDERS}", [new])
    replace(truth, policy="earliest").live()
    rows = read_table(truth.table("orders")).to_pylist()
    found = {row["id"]: row["at"] for row in rows if row["id"] >= 100}
    assert found == {100: first, 101: first + 1, 102: first + 2}


def test_a_topic_that_is_created_again_between_reading_and_commit_leaves_nothing(
    truth: Truth,
) -> None:
    goes_on(truth)

    def again() -> None:
        truth.kafka.topics[ORDERS] = Topic("another", [_log(*range(100, 140))])

    with pytest.raises(LogChangedError, match=rf"topic {ORDERS} was deleted and created again"):
        replace(truth, between=again).live()
    assert everything_once(truth, 10)


def test_a_topic_that_was_deleted_stops_the_pipeline_until_it_is_accepted(truth: Truth) -> None:
    del truth.kafka.topics[ORDERS]
    for _ in range(2):
        with pytest.raises(OffsetLostError, match=rf"the topic was deleted: {ORDERS}/0"):
            truth.live()
    truth.kafka.produce(USERS, *range(10, 20))
    replace(truth, policy="earliest").live()
    assert truth.ids("users") == list(range(20)), "the loss was accepted"
    truth.kafka.topics[ORDERS] = Topic("another", [_log(*range(100, 140))])
    truth.live()
    assert truth.ids("orders") == [*range(10), *range(100, 140)]


def test_a_topic_with_fewer_partitions_is_noticed_and_accepted_without_topic_ids(
    truth: Truth,
) -> None:
    """Its key is the same, and so are the records of the partition that is left."""
    truth.kafka.topics[ORDERS].logs.append(_log(10, 11))
    truth.live()
    del truth.kafka.topics[ORDERS].logs[1]
    for _ in range(2):
        with pytest.raises(OffsetLostError, match=rf"{ORDERS}/1 of source src, offsets 0 to 2"):
            truth.live()
    replace(truth, policy="earliest").live()
    dead_letters = truth.dead_letters()
    assert [f"{ORDERS}/1" in one for one in dead_letters] == [True, True], "one for each table"
    truth.kafka.produce(ORDERS, 12)
    truth.live()
    truth.kafka.topics[ORDERS].logs.append(_log(13))
    truth.live()
    assert truth.ids("orders") == list(range(14))
    assert truth.dead_letters() == dead_letters


@pytest.mark.parametrize("file", ["kept", "lost"])
def test_partitions_that_are_added_are_read_from_their_beginning(truth: Truth, file: str) -> None:
    if file == "lost":
        claims(truth).unlink()
    truth.kafka.topics[ORDERS].logs += [Log(), Log()]
    truth.kafka.produce(ORDERS, *range(10, 15), partition=2)
    truth.kafka.produce(ORDERS, *range(15, 20), partition=1)
    truth.kafka.produce(USERS, *range(10, 20))
    truth.live()
    assert everything_once(truth)


@pytest.mark.parametrize("file", ["kept", "lost"])
@pytest.mark.parametrize("policy", ["fail", "earliest", "latest"])
def test_retention_that_overtakes_the_reader_is_an_error_or_a_dead_letter(
    truth: Truth, policy: OutOfRangePolicy, file: str
) -> None:
    if file == "lost":
        claims(truth).unlink()
    goes_on(truth)
    truth.kafka.topics[ORDERS].logs[0].first = 14
    for _ in range(2):
        with pytest.raises(OffsetLostError, match=rf"{ORDERS}/0 .* offsets \d+ to 14, table"):
            truth.live()
    if policy == "fail":
        assert truth.ids("orders") == list(range(10))
        return
    replace(truth, policy=policy).live()
    kept = range(14, 20) if policy == "earliest" else range(0)
    assert truth.ids("orders") == [*range(10), *kept]
    assert truth.ids("users") == list(range(20))
    dead_letters = [
        dead_letter for dead_letter in truth.dead_letters() if "table lake.orders" in dead_letter
    ]
    until = 14 if policy == "earliest" else 20
    assert [
        f"{ORDERS}/0 of source src, offsets 10 to {until}, table" in o for o in dead_letters
    ] == [True], "what `latest` leaves out is named, too"
    before = truth.dead_letters()
    truth.live()
    assert truth.dead_letters() == before, "once, not for ever"


def test_what_only_a_rolled_back_table_has_lost_is_named_for_it(truth: Truth) -> None:
    roll_back(truth)
    held = len(truth.ids("orders"))
    truth.kafka.topics[ORDERS].logs[0].first = 8
    replace(truth, policy="earliest").live()
    (dead_letter,) = truth.dead_letters()
    assert f"offsets {held} to 8, table lake.orders" in dead_letter
    assert truth.ids("orders") == [*range(held), 8, 9]


def test_records_of_a_new_topic_that_was_set_aside_are_named_if_they_expire(truth: Truth) -> None:
    late = truth.kafka.topics["shop.late"] = Topic("late", [_log(*range(-200, 0))])
    replace(truth, batch_rows=500).live(1)
    late.logs[0].first = 150
    with pytest.raises(OffsetLostError, match=r"shop\.late/0 of source src, offsets 0 to 150"):
        truth.live()


def test_records_of_a_cut_log_from_below_the_start_of_its_source_are_read(truth: Truth) -> None:
    """Also by a table that is rolled back to before the source was added."""
    extra = "shop.extra"
    log = _log(*range(100, 110))
    truth.kafka.topics[extra] = Topic("third", [log])
    truth = replace(
        truth,
        second_source="late",
        second_topics=(extra,),
        startup="latest-offset",
        policy="earliest",
        mapping={extra: "users", USERS: "users"},
    )
    truth.live()
    truth.kafka.produce(extra, 110, 111)
    truth.live()
    assert truth.ids("users") == [*range(10), 110, 111]
    log.records, log.epoch = log.records[:5], 1
    truth.kafka.produce(extra, *range(200, 220))
    truth.live()
    roll_back(truth, "users")
    truth.live()
    assert truth.ids("users") == [*range(10), *range(200, 220)]


@pytest.mark.parametrize("grown", [0, 2, 30])
@pytest.mark.parametrize("policy", ["fail", "earliest"])
def test_a_log_whose_end_went_back_is_noticed_at_every_start_however_far_it_grew(
    truth: Truth, grown: int, policy: OutOfRangePolicy
) -> None:
    log = truth.kafka.topics[ORDERS].logs[0]
    log.records, log.epoch = log.records[:6], 1
    truth.kafka.produce(ORDERS, *range(100, 100 + grown))
    for _ in range(2):
        with pytest.raises(
            OffsetLostError, match=rf"lost or replaced since: {ORDERS}/0 .* 6 to 10"
        ):
            truth.live()
    if policy == "earliest":
        replace(truth, policy=policy).live()
        assert truth.ids("orders") == [*range(10), *range(100, 100 + grown)]
        assert any(
            "offsets 6 to 10, table lake.orders" in dead_letter
            for dead_letter in truth.dead_letters()
        )
        truth.kafka.produce(ORDERS, 500)
        truth.live()
        assert truth.ids("orders")[-1] == 500


def test_a_log_that_is_replaced_while_the_daemon_runs_ends_the_query(truth: Truth) -> None:
    goes_on(truth)
    log = truth.kafka.topics[ORDERS].logs[0]

    def replace_log() -> None:
        if log.epoch == 0:
            log.records, log.epoch = log.records[:9], 1
            truth.kafka.produce(ORDERS, *range(100, 140))

    with pytest.raises(LogChangedError, match="other records from 9 on"):
        replace(truth, between=replace_log).live()
    with pytest.raises(OffsetLostError, match="9 to"):
        truth.live()


def test_a_log_that_is_replaced_while_a_table_is_read_again_ends_the_query(truth: Truth) -> None:
    """The reader is below what the new leader lacks, and the other table above it."""
    roll_back(truth, "users")
    log = truth.kafka.topics[ORDERS].logs[0]

    def replace_log() -> None:
        if log.epoch == 0:
            log.records, log.epoch = log.records[:7], 1
            truth.kafka.produce(ORDERS, *range(100, 110))

    with pytest.raises(LogChangedError, match="other records from 7 on"):
        replace(truth, between=replace_log).live()
    with pytest.raises(OffsetLostError, match=r"7 to 10, table lake\.orders"):
        truth.live()
    replace(truth, policy="earliest").live()
    assert truth.ids("orders") == [*range(10), *range(100, 110)]
    assert truth.ids("users") == list(range(10))


def test_a_dropped_table_is_reported_with_the_offsets_of_the_topic_that_exists(
    truth: Truth,
) -> None:
    truth.kafka.topics[ORDERS] = Topic("a newer one", [_log(*range(100, 103))])
    replace(truth, policy="earliest").live()
    drop(truth)
    truth.live()
    (dead_letter,) = [
        dead_letter
        for dead_letter in truth.dead_letters()
        if "the table was dropped" in dead_letter
    ]
    assert f'"{ORDERS}/0": 3' in dead_letter


def test_a_change_of_leaders_alone_is_no_loss(truth: Truth) -> None:
    truth.kafka.topics[ORDERS].logs[0].epoch = 5
    goes_on(truth)
    truth.live()
    assert everything_once(truth)


@pytest.mark.parametrize("file", ["kept", "lost"])
def test_latest_is_decided_once(tmp_path: Path, file: str) -> None:
    truth = Truth(tmp_path, startup="latest-offset")
    truth.kafka.topics[ORDERS] = Topic("one")
    truth.kafka.produce(ORDERS, *range(40))
    truth.live()
    truth.kafka.produce(ORDERS, *range(40, 47))
    if file == "lost":
        claims(truth).unlink()
    truth.live()
    assert truth.ids("orders") == list(range(40, 47))
    truth.kafka.topics[USERS] = Topic("two")
    truth.kafka.produce(USERS, *range(5))
    truth.live()
    assert truth.ids("users") == list(range(5)), "what appears later is read from its beginning"


@pytest.mark.parametrize("policy", ["fail", "earliest"])
def test_a_restored_broker_that_counts_epochs_again_is_found_by_the_last_record(
    truth: Truth, policy: OutOfRangePolicy
) -> None:
    log = truth.kafka.topics[ORDERS].logs[0]
    log.records = [(number + 500, epoch) for number, epoch in log.records]
    truth.kafka.produce(ORDERS, *range(10, 20))
    for _ in range(2):
        with pytest.raises(OffsetLostError, match=rf"has been replaced in the log: {ORDERS}/0"):
            truth.live()
    if policy == "earliest":
        replace(truth, policy=policy).live()
        truth.live()
        assert truth.ids("orders") == list(range(20))


def test_an_accepted_end_of_a_topic_is_named_again_for_a_table_that_was_rolled_back(
    truth: Truth,
) -> None:
    truth.kafka.topics[ORDERS] = Topic("another", [_log(*range(100, 103))])
    accepting = replace(truth, policy="earliest")
    accepting.live()
    roll_back(truth)
    with pytest.raises(OffsetLostError, match=r"created again.*lake\.orders"):
        truth.live()
    accepting.live()
    assert (
        len([dead_letter for dead_letter in truth.dead_letters() if "created again" in dead_letter])
        == 2
    )
    truth.live()
    held = [id_ for id_ in truth.ids("orders") if id_ < 100]
    assert truth.ids("orders") == [*held, 100, 101, 102]
