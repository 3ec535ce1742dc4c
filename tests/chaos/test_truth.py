"""The table is the truth: what becomes of a pipeline when its past is taken from it, or changed.

Whatever happens has one result that is written down: every record counts once, or an error or a
log line says what is not there. Nothing is silent.
"""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ingestd.errors import CommitConflictError, FencedError, OffsetLostError
from ingestd.kafka.properties import OutOfRangePolicy
from ingestd.paimon.catalog.base import Identifier
from ingestd.paimon.table.metadata.snapshot_manager import read_snapshot
from ingestd.paimon.table.retention.rollback import plan_rollback, rollback
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.truth_rig import Topic, Truth

pytestmark = pytest.mark.chaos
ORDERS, USERS = "shop.orders", "shop.users"
DAY_MS = 86_400_000


@pytest.fixture
def truth(tmp_path: Path) -> Truth:
    """A pipeline that has read ten orders and ten users, in batches of four records."""
    found = Truth(tmp_path)
    for topic in (ORDERS, USERS):
        found.kafka.topics[topic] = Topic(f"id of {topic}")
        found.kafka.produce(topic, *range(10))
    found.live()
    return found


def goes_on(truth: Truth, first: int = 10) -> None:
    """Ten more of each."""
    for topic in (ORDERS, USERS):
        truth.kafka.produce(topic, *range(first, first + 10))


def everything_once(truth: Truth, count: int = 20) -> bool:
    return truth.ids("orders") == truth.ids("users") == list(range(count))


def test_lost_checkpoints_cost_nothing(truth: Truth) -> None:
    shutil.rmtree(truth.root / "checkpoint")
    goes_on(truth)
    assert truth.live().reason == "new"
    assert everything_once(truth)
    shutil.rmtree(truth.root / "checkpoint")
    shutil.rmtree(truth.root / "warehouse" / ".ingestd" / "truth")
    goes_on(truth, 20)
    truth.live()
    assert everything_once(truth, 30)


@pytest.mark.parametrize("file", ["offsets/{last}", "offsets/{before}", "commits/{last}"])
@pytest.mark.parametrize("damage", ["emptied", "cut", "zeroed", "gone"])
def test_a_damaged_checkpoint_costs_nothing(truth: Truth, file: str, damage: str) -> None:
    folder = truth.root / "checkpoint" / "gen-0"
    last = max(int(one.name) for one in (folder / "offsets").iterdir())
    path = folder / file.format(last=last, before=last - 1)
    content = path.read_bytes()
    damages = {"emptied": b"", "cut": content[:-5], "zeroed": b"\0" * len(content)}
    path.unlink() if damage == "gone" else path.write_bytes(damages[damage])
    goes_on(truth)
    chosen = truth.live()
    harmless = damage == "gone" and file.startswith("commits")
    assert chosen.path.endswith("gen-0" if harmless else "gen-1"), chosen
    assert everything_once(truth)


def test_an_older_checkpoint_costs_nothing(truth: Truth) -> None:
    shutil.copytree(truth.root / "checkpoint", truth.root / "older")
    goes_on(truth)
    truth.live()
    shutil.rmtree(truth.root / "checkpoint")
    shutil.move(truth.root / "older", truth.root / "checkpoint")
    goes_on(truth, 20)
    assert replace(truth, batch_rows=7).live().reason == "continued"
    assert everything_once(truth, 30)


def _roll_back(truth: Truth) -> None:
    table = truth.table("orders")
    rollback(table, plan_rollback(table, read_snapshot(table.io, table.paths, 1)))


def test_a_table_that_was_rolled_back_gets_again_what_it_lost(truth: Truth) -> None:
    _roll_back(truth)
    assert truth.ids("orders") != list(range(10))
    goes_on(truth)
    assert truth.live().reason == f"{truth.root}/checkpoint/gen-0 is ahead of the tables"
    assert everything_once(truth)


def test_a_table_that_is_rolled_back_meanwhile_stops_the_batch_and_heals(truth: Truth) -> None:
    goes_on(truth)
    running = replace(truth, between=lambda: _roll_back(truth))
    with pytest.raises(CommitConflictError, match=r"lake\.orders was rolled back below snapshot"):
        running.live()
    truth.live()
    assert everything_once(truth)


def test_a_table_that_was_restored_from_a_copy_gets_again_what_it_lacks(truth: Truth) -> None:
    shutil.copytree(truth.folder("orders"), truth.root / "copy")
    goes_on(truth)
    truth.live()
    shutil.rmtree(truth.folder("orders"))
    shutil.move(truth.root / "copy", truth.folder("orders"))
    goes_on(truth, 20)
    assert truth.live().path.endswith("gen-1")
    assert everything_once(truth, 30)
    assert verify(truth.table("orders")) == []


def test_what_a_copy_lacks_of_its_own_is_named_by_verify(truth: Truth) -> None:
    lost = next(truth.folder("orders").glob("bucket-*/data-*"))
    lost.unlink()
    goes_on(truth)
    truth.live()
    assert any(lost.name in str(one) for one in verify(truth.table("orders")))


def _drop(truth: Truth) -> None:
    shutil.rmtree(truth.folder("orders"))


def _make_anew(truth: Truth) -> None:
    schema = truth.table("orders").schema
    _drop(truth)
    truth.catalog.create_table(Identifier("lake", "orders"), schema)


@pytest.mark.parametrize("how", [_drop, _make_anew])
def test_a_table_that_was_dropped_begins_again_with_what_comes_and_is_logged(
    truth: Truth, how: Callable[[Truth], None], caplog: pytest.LogCaptureFixture
) -> None:
    how(truth)
    goes_on(truth)
    truth.live()
    (line,) = [one for one in caplog.records if one.message == "table_begins_again"]
    assert line.ctx == {"table": "lake.orders"}  # type: ignore[attr-defined]
    assert truth.ids("orders") == list(range(10, 20))
    assert truth.ids("users") == list(range(20))
    caplog.clear()
    truth.live()
    assert "table_begins_again" not in caplog.text, "once, not for ever"


def test_a_table_that_is_dropped_meanwhile_stops_the_batch_and_begins_again(
    truth: Truth, caplog: pytest.LogCaptureFixture
) -> None:
    goes_on(truth)
    with pytest.raises(CommitConflictError, match=r"lake\.orders was rolled back below"):
        replace(truth, between=lambda: _drop(truth)).live()
    truth.live()
    assert "table_begins_again" in caplog.text
    assert truth.ids("orders") == list(range(10, 20))
    assert truth.ids("users") == list(range(20))


@pytest.mark.parametrize("records", [3, 10, 30])
@pytest.mark.parametrize("policy", ["fail", "earliest", "latest"])
def test_a_topic_that_was_made_anew_is_not_read_on_whatever_its_offsets(
    truth: Truth, records: int, policy: OutOfRangePolicy
) -> None:
    truth.kafka.topics[ORDERS] = Topic("another", [list(range(100, 100 + records))])
    for _ in range(2):
        with pytest.raises(OffsetLostError, match=rf"topic {ORDERS} .* was created anew"):
            replace(truth, policy=policy).live()
    assert everything_once(truth, 10)


def test_a_topic_that_is_made_anew_between_reading_and_commit_leaves_nothing(truth: Truth) -> None:
    goes_on(truth)

    def anew() -> None:
        truth.kafka.topics[ORDERS] = Topic("another", [list(range(100, 140))])

    with pytest.raises(OffsetLostError, match=rf"batch: topic {ORDERS} .*now another"):
        replace(truth, between=anew).live()
    assert everything_once(truth, 10)


def test_a_topic_that_was_deleted_stops_the_pipeline_and_is_remembered(truth: Truth) -> None:
    del truth.kafka.topics[ORDERS]
    with pytest.raises(OffsetLostError, match=rf"topic {ORDERS}.*exist no more"):
        truth.live()
    truth.kafka.produce(USERS, *range(10, 20))
    replace(truth, policy="earliest").live()
    assert truth.ids("users") == list(range(20)), "the loss was accepted"
    truth.kafka.topics[ORDERS] = Topic("another", [list(range(100, 140))])
    with pytest.raises(OffsetLostError, match="was created anew"):
        replace(truth, policy="earliest").live()


@pytest.mark.parametrize("checkpoint", ["kept", "lost"])
def test_partitions_that_are_added_are_read_from_their_beginning(
    truth: Truth, checkpoint: str
) -> None:
    if checkpoint == "lost":
        shutil.rmtree(truth.root / "checkpoint")
    truth.kafka.topics[ORDERS].logs += [[], []]
    truth.kafka.produce(ORDERS, *range(10, 15), partition=2)
    truth.kafka.produce(ORDERS, *range(15, 20), partition=1)
    truth.kafka.produce(USERS, *range(10, 20))
    truth.live()
    assert everything_once(truth)


@pytest.mark.parametrize("checkpoint", ["kept", "lost"])
@pytest.mark.parametrize("policy", ["fail", "earliest", "latest"])
def test_retention_that_overtakes_the_reader_is_an_error_or_a_dead_letter(
    truth: Truth, policy: OutOfRangePolicy, checkpoint: str
) -> None:
    if checkpoint == "lost":
        shutil.rmtree(truth.root / "checkpoint")
    goes_on(truth)
    truth.kafka.topics[ORDERS].first = 14
    with pytest.raises(OffsetLostError, match=f"{ORDERS}/0 goes on at 10, its log has 14 to 20"):
        truth.live()
    if policy == "fail":
        assert truth.ids("orders") == list(range(10))
        return
    replace(truth, policy=policy).live()
    kept = range(14, 20) if policy == "earliest" else range(0)
    assert truth.ids("orders") == [*range(10), *kept]
    assert truth.ids("users") == list(range(20))
    (letter,) = truth.letters()
    gap = "10 to 13 (4" if policy == "earliest" else "10 to 19 (10"
    assert letter.startswith(f"offsets {gap} at the most) were not in the log")


@pytest.mark.parametrize("skew", [-DAY_MS, -3_600_000, 3_600_000, 365 * DAY_MS])
def test_a_clock_that_is_wrong_changes_nothing(truth: Truth, skew: int) -> None:
    """Snapshots tell the time they are given; who leads and what is there does not ask."""
    right = truth.now_ms
    for number, clock in enumerate((lambda: right() + skew, right, lambda: right() - skew)):
        goes_on(truth, 10 + 10 * number)
        replace(truth, now_ms=clock, holder=f"node {number}").live()
    assert everything_once(truth, 40)
    assert verify(truth.table("orders")) == []


def test_of_two_daemons_the_later_one_goes_on_and_the_other_is_told(truth: Truth) -> None:
    """The first one sleeps between reading and commit, as one that gets SIGSTOP there."""
    goes_on(truth)
    other = replace(truth, holder="b", node="checkpoint-b", batch_rows=7)
    with pytest.raises(FencedError, match=r"pipeline truth: another daemon .*\(b\)"):
        replace(truth, between=other.live).live()
    with pytest.raises(FencedError, match=r"taken over \(b\)"):
        truth.live()  # as a restart of its query does
    assert everything_once(truth)
    goes_on(truth, 20)
    other.live()
    assert everything_once(truth, 30)
