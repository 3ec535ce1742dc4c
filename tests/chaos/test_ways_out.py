"""The ways out that errors of recovery name, followed to the letter: after them all goes on."""

from dataclasses import replace
from pathlib import Path

import pytest

from ingestd.errors import ConfigError, OffsetLostError, ProgressLostError
from ingestd.ingest.recovery.set_progress import at_claims, at_now, at_origin, begin
from ingestd.ingest.tables.claims import read_claims
from ingestd.ingest.tables.managed_table import open_table
from ingestd.ingest.tables.table_registry import TableRegistry
from ingestd.kafka.offset_ranges import OffsetRange
from ingestd.paimon.io.file_io import LocalFileIO
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot, read_snapshot
from ingestd.paimon.table.retention.rollback import plan_rollback, rollback
from tests.chaos.test_truth import (
    ORDERS,
    USERS,
    Vectors,
    claims,
    everything_once,
    goes_on,
    without_record,
)
from tests.support.truth_rig import Topic, Truth

pytestmark = pytest.mark.chaos
TABLE = "lake.orders"


@pytest.fixture
def truth(tmp_path: Path) -> Truth:
    """A pipeline whose records in the table of orders were expired by another program."""
    found = Truth(tmp_path)
    found.kafka.add_topics(ORDERS, USERS)
    found.live()
    without_record(found, keep_old=False)
    with pytest.raises(ProgressLostError, match=rf"ingestd begin -c CONFIG {TABLE} --at claims"):
        found.live()
    return found


def decide(truth: Truth, vector: Vectors) -> list[tuple[str, int, int]]:
    io = LocalFileIO(sync=False)
    starts = begin(truth.settings, truth.catalog, io, TABLE, vector, truth.now_ms)
    return sorted((name.topic, partition, offset) for name, partition, offset in starts)


def test_a_table_goes_on_by_what_the_claims_file_has_of_it(truth: Truth) -> None:
    warehouse = truth.settings.warehouse
    found = read_claims(LocalFileIO(sync=False), warehouse, truth.name)
    assert decide(truth, at_claims(TABLE, found)) == [(ORDERS, 0, 10), (USERS, 0, 10)]
    goes_on(truth)
    truth.live()
    truth.live()
    assert everything_once(truth)


def test_without_a_word_in_the_claims_file_nothing_is_guessed(truth: Truth) -> None:
    claims(truth).unlink()
    with pytest.raises(ConfigError, match=r"has no entry for table .* --at origin .* --at now"):
        decide(truth, at_claims(TABLE, None))
    with pytest.raises(ProgressLostError):
        truth.live()


def test_claims_do_not_speak_of_a_table_that_was_rolled_back(tmp_path: Path) -> None:
    truth = Truth(tmp_path)
    truth.kafka.topics[ORDERS] = Topic("one")
    for first in (0, 5):
        truth.kafka.produce(ORDERS, *range(first, first + 5))
        truth.live()
    table = truth.table("orders")
    target = read_snapshot(table.io, table.paths, 1)
    rollback(table, plan_rollback(table, target))
    without_record(truth, keep_old=False)
    with pytest.raises(ProgressLostError, match="If nothing rolled back, restored"):
        truth.live()
    found = read_claims(truth.io, truth.settings.warehouse, truth.name)
    with pytest.raises(ConfigError, match=r"lake\.orders was rolled back .* has snapshot 2"):
        decide(truth, at_claims(TABLE, found))
    truth.truncate("orders")
    assert decide(truth, at_origin(TABLE)) == [(ORDERS, 0, 0)]
    truth.live()
    assert truth.ids("orders") == list(range(10))


def test_an_emptied_table_reads_everything_again(truth: Truth) -> None:
    with pytest.raises(ConfigError, match=r"10 rows, which would be duplicated; .*truncate"):
        decide(truth, at_origin(TABLE))
    truth.truncate("orders")
    assert decide(truth, at_origin(TABLE)) == [(ORDERS, 0, 0), (USERS, 0, 0)]
    goes_on(truth)
    truth.live()
    assert everything_once(truth)


def test_a_table_takes_what_comes_from_now_on(truth: Truth) -> None:
    goes_on(truth)
    cluster = {"src": truth.kafka}
    assert decide(truth, at_now(cluster)) == [  # type: ignore[arg-type]
        (ORDERS, 0, 20),
        (USERS, 0, 20),
    ]
    goes_on(truth, 20)
    truth.live()
    assert truth.ids("orders") == [*range(10), *range(20, 30)]
    assert truth.ids("users") == list(range(30))


def test_a_table_that_does_not_exist_is_refused(truth: Truth) -> None:
    with pytest.raises(ConfigError, match=r"lake\.other does not exist"):
        begin(
            truth.settings,
            truth.catalog,
            LocalFileIO(sync=False),
            "lake.other",
            at_origin("lake.other"),
            truth.now_ms,
        )


def test_records_of_idle_tables_are_kept_before_others_can_expire_them(tmp_path: Path) -> None:
    hour = 3_600_000
    truth = Truth(tmp_path, now_ms=lambda: 1_700_000_000_000)
    truth.kafka.add_topics(ORDERS, USERS)
    registry = truth.live()
    assert registry.refresh_records() == []
    without_record(truth, keep_old=True)
    assert truth.live().refresh_records() == [TABLE], "another writer's snapshot is on top"
    table = truth.table("orders")
    newest = latest_snapshot(table.io, table.paths)
    assert newest is not None
    for number in range(1, newest.id):
        table.io.delete_quietly(table.paths.snapshot(number))
    later = replace(truth, now_ms=lambda: 1_700_000_000_000 + 7 * hour)
    assert set(later.live().refresh_records()) == {
        TABLE,
        "lake.users",
        "lake.ingestd_dead_letters",
    }
    claims(truth).unlink()
    goes_on(truth)
    later.live()
    assert everything_once(truth)


def test_a_record_says_nothing_of_what_it_was_not_made_for(truth: Truth) -> None:
    """`begin` does not move other tables, nor those that are yet to come."""
    decide(truth, at_now({"src": truth.kafka}))  # type: ignore[arg-type]
    claims(truth).unlink()
    registry = TableRegistry(truth.settings, truth.catalog, LocalFileIO(sync=False), truth.now_ms)
    registry.open()
    assert registry.progress.end[f"id of {USERS}"][0].offset <= 10
    assert open_table("lake.users", truth.table("users"), (truth.name,)).covered
    registry.keys = {("src", USERS): f"id of {USERS}"}
    context = registry.context(1, {}, [OffsetRange("src", USERS, 0, 0, 5)])
    assert "lake.users" in context.tables


def test_an_accepted_end_of_a_topic_is_named_again_for_a_table_that_begins_before_it(
    tmp_path: Path,
) -> None:
    truth = Truth(tmp_path, policy="earliest")
    truth.kafka.add_topics(ORDERS, USERS)
    truth.live()
    truth.kafka.topics.pop(ORDERS)
    truth.live()
    named = [dead_letter for dead_letter in truth.dead_letters() if ORDERS in dead_letter]
    truth.live()
    assert [
        dead_letter for dead_letter in truth.dead_letters() if ORDERS in dead_letter
    ] == named, "accepted once"
    truth.truncate("orders")
    decide(truth, at_origin(TABLE))
    with pytest.raises(OffsetLostError, match=rf"{ORDERS}/0 .*0 to .*table lake\.orders"):
        replace(truth, policy="fail").live()
    truth.live()
    again = [
        dead_letter
        for dead_letter in truth.dead_letters()
        if f"{ORDERS}/0" in dead_letter and "offsets 0 to" in dead_letter
    ]
    assert len(again) == 1
    truth.live()
    assert len(truth.dead_letters()) == len(named) + 1
