"""The table is the truth: what becomes of a pipeline when its past is taken from it, or changed.

Whatever happens has one result that is written down: every record counts once, or an error or a
log line says what is not there. Nothing is silent.
"""

import shutil
from collections.abc import Callable
from dataclasses import replace
from dataclasses import replace as replace_snapshot
from pathlib import Path

import pytest

from ingestd.errors import (
    CommitConflictError,
    ConfigError,
    FencedError,
    ProgressLostError,
    SchemaConflictError,
)
from ingestd.ingest.recovery.set_progress import at_claims, begin
from ingestd.ingest.settings.context import TableSettings
from ingestd.ingest.tables.claims import read_claims
from ingestd.ingest.tables.log_positions import Vector
from ingestd.ingest.tables.table_registry import TableRegistry
from ingestd.paimon.catalog.base import Identifier
from ingestd.paimon.spec.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind, encode_snapshot
from ingestd.paimon.table.compact.table_compact import compact_table
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot, read_snapshot
from ingestd.paimon.table.retention.rollback import plan_rollback, rollback
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.truth_rig import Kafka, Log, Topic, Truth

pytestmark = pytest.mark.chaos
ORDERS, USERS = "shop.orders", "shop.users"
DAY_MS = 86_400_000
Vectors = Callable[[TableRegistry], Vector]


@pytest.fixture
def truth(tmp_path: Path) -> Truth:
    """A pipeline that has read ten orders and ten users, in batches of four records."""
    found = Truth(tmp_path)
    found.kafka.add_topics(ORDERS, USERS)
    found.live()
    return found


def goes_on(truth: Truth, first: int = 10) -> None:
    """Ten more of each."""
    for topic in (ORDERS, USERS):
        truth.kafka.produce(topic, *range(first, first + 10))


def everything_once(truth: Truth, count: int = 20) -> bool:
    return truth.ids("orders") == truth.ids("users") == list(range(count))


def claims(truth: Truth) -> Path:
    """The claims file."""
    return truth.root / "warehouse" / ".ingestd" / "truth" / "progress.json"


def test_without_its_claims_file_a_pipeline_reads_more_and_loses_nothing(truth: Truth) -> None:
    shutil.rmtree(claims(truth).parent)
    goes_on(truth)
    truth.live()
    assert everything_once(truth)


def test_no_flipped_bit_of_the_claims_file_is_believed(truth: Truth) -> None:
    whole = claims(truth).read_bytes()
    for at in range(0, len(whole), 7):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << (at % 8)
        claims(truth).write_bytes(bytes(damaged))
        truth.live()
    goes_on(truth)
    truth.live()
    assert everything_once(truth)


@pytest.mark.parametrize("cut", [0, 1, 40, -1])
def test_a_claims_file_that_was_cut_is_not_believed(truth: Truth, cut: int) -> None:
    claims(truth).write_bytes(claims(truth).read_bytes()[:cut])
    goes_on(truth)
    truth.live()
    assert everything_once(truth)


def test_an_older_claims_file_costs_nothing(truth: Truth) -> None:
    older = claims(truth).read_bytes()
    goes_on(truth)
    truth.live()
    claims(truth).write_bytes(older)
    goes_on(truth, 20)
    replace(truth, batch_rows=7).live()
    assert everything_once(truth, 30)


def roll_back(truth: Truth, name: str = "orders", snapshot: int = 1) -> None:
    table = truth.table(name)
    rollback(table, plan_rollback(table, read_snapshot(table.io, table.paths, snapshot)))


def test_a_table_that_was_rolled_back_gets_again_what_it_lost(truth: Truth) -> None:
    roll_back(truth)
    assert truth.ids("orders") != list(range(10))
    goes_on(truth)
    truth.live()
    assert everything_once(truth)


@pytest.mark.parametrize("batches", [1, 2, 3])
def test_a_rolled_back_table_of_which_a_part_was_read_again_gets_the_rest(
    truth: Truth, batches: int
) -> None:
    roll_back(truth)
    truth.live(batches)
    roll_back(truth, "users")
    truth.live(batches)
    goes_on(truth)
    truth.live()
    assert everything_once(truth)


def test_a_table_that_is_rolled_back_meanwhile_stops_the_batch_and_heals(truth: Truth) -> None:
    goes_on(truth)
    running = replace(truth, between=lambda: roll_back(truth))
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
    truth.live()
    assert everything_once(truth, 30)
    assert verify(truth.table("orders")) == []


def test_a_dead_letter_table_that_was_rolled_back_gets_again_what_the_others_rejected(
    tmp_path: Path,
) -> None:
    keyed = {"orders": TableSettings(("id",), (), {"bucket": "1"}, {})}
    truth = Truth(tmp_path, tables=keyed)
    truth.kafka.add_topics(ORDERS, USERS, numbers=(0, 1))
    truth.live()
    log = truth.kafka.topics[ORDERS].logs[0]
    log.records += [(2, 0), (None, 0), (3, 0), ("no number", 0)]  # type: ignore[list-item]
    truth.kafka.produce(USERS, 2, 3)
    truth.live()
    dead_letters = truth.dead_letters()
    assert len(dead_letters) == 2
    roll_back(truth, "ingestd_dead_letters")
    assert truth.dead_letters() == []
    goes_on(truth, 4)
    truth.live()
    assert truth.dead_letters() == dead_letters
    assert everything_once(truth, 14)


def test_what_a_copy_lacks_of_its_own_is_named_by_verify(truth: Truth) -> None:
    lost = next(truth.folder("orders").glob("bucket-*/data-*"))
    lost.unlink()
    goes_on(truth)
    truth.live()
    assert any(lost.name in str(one) for one in verify(truth.table("orders")))


def drop(truth: Truth) -> None:
    shutil.rmtree(truth.folder("orders"))


def _make_anew(truth: Truth) -> None:
    schema = truth.table("orders").schema
    drop(truth)
    truth.catalog.create_table(Identifier("lake", "orders"), schema)


def test_a_table_that_was_dropped_and_whose_backup_is_put_back_gets_what_it_lacks(
    truth: Truth,
) -> None:
    shutil.copytree(truth.folder("orders"), truth.root / "copy")
    goes_on(truth)
    truth.live()
    drop(truth)
    goes_on(truth, 20)
    truth.live()
    assert truth.ids("orders") == list(range(20, 30))
    drop(truth)
    shutil.move(truth.root / "copy", truth.folder("orders"))
    truth.live()
    assert everything_once(truth, 30)


@pytest.mark.parametrize("how", [drop, _make_anew])
def test_a_table_that_was_dropped_begins_again_with_what_comes_and_is_reported_once(
    truth: Truth, how: Callable[[Truth], None]
) -> None:
    how(truth)
    goes_on(truth)
    truth.live()
    (dead_letter,) = truth.dead_letters()
    assert "the table was dropped" in dead_letter
    assert f'"{ORDERS}/0": 10' in dead_letter
    assert truth.ids("orders") == list(range(10, 20))
    assert truth.ids("users") == list(range(20))
    truth.live()
    assert len(truth.dead_letters()) == 1, "once, not for ever"
    drop(truth)
    truth.live()
    truth.live()
    assert len(truth.dead_letters()) == 2, "the second time is another loss"
    assert truth.reported == ["table-dropped"] * 2


@pytest.mark.parametrize("key", ["a younger one", "the younger one"])
def test_a_dropped_table_is_reported_with_the_offsets_of_the_topic_that_exists(
    truth: Truth, key: str
) -> None:
    """Its name is that of a topic before it, whose key sorts before or after its own."""
    truth.kafka.topics[ORDERS] = Topic(key)
    truth.kafka.produce(ORDERS, *range(10, 13))
    again = replace(truth, policy="earliest")
    again.live()
    drop(again)
    again.live()
    (dead_letter,) = [text for text in again.dead_letters() if "the table was dropped" in text]
    assert f'"{ORDERS}/0": 3' in dead_letter


def test_a_table_that_is_dropped_meanwhile_stops_the_batch_and_begins_again(truth: Truth) -> None:
    goes_on(truth)
    with pytest.raises(CommitConflictError, match=r"lake\.orders was rolled back below"):
        replace(truth, between=lambda: drop(truth)).live()
    truth.live()
    assert len(truth.dead_letters()) == 1
    assert truth.ids("orders") == list(range(10, 20))
    assert truth.ids("users") == list(range(20))


@pytest.mark.parametrize("file", ["kept", "lost"])
@pytest.mark.parametrize("what", ["idle partition", "added partition", "second topic"])
def test_a_rolled_back_table_gets_what_came_by_partitions_that_it_had_never_seen(
    tmp_path: Path, what: str, file: str
) -> None:
    truth = Truth(tmp_path)
    partitions = 2 if what == "idle partition" else 1
    truth.kafka.topics[ORDERS] = Topic("one", [Log() for _ in range(partitions)])
    truth.kafka.produce(ORDERS, *range(5))
    truth.live()
    if what == "second topic":
        truth.kafka.topics["copy.orders"] = Topic("two")
        truth.kafka.produce("copy.orders", *range(5, 10))
    else:
        if what == "added partition":
            truth.kafka.topics[ORDERS].logs.append(Log())
        truth.kafka.produce(ORDERS, *range(5, 10), partition=1)
    truth.live()
    assert truth.ids("orders") == list(range(10))
    roll_back(truth)
    if file == "lost":
        claims(truth).unlink()
    truth.live()
    assert truth.ids("orders") == list(range(10))


@pytest.mark.parametrize("database", ["registry", "lake2"])
def test_another_warehouse_or_database_begins_at_the_beginning(truth: Truth, database: str) -> None:
    root = truth.root / "other" if database == "registry" else truth.root
    other = replace(truth, root=root, database=database)
    other.live()
    goes_on(truth)
    other.live()
    truth.live()
    assert everything_once(other)
    assert everything_once(truth)


def test_a_copied_warehouse_goes_on_by_itself(truth: Truth, tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    shutil.copytree(truth.root / "warehouse", tmp_path / "copy" / "warehouse")
    goes_on(truth)
    truth.live()
    copy = replace(truth, root=tmp_path / "copy")
    goes_on(truth, 20)
    copy.live()
    assert everything_once(copy, 30)
    assert everything_once(truth, 20)


def test_a_renamed_pipeline_is_noticed_before_anything_is_read(truth: Truth) -> None:
    renamed = replace(truth, name="other")
    goes_on(truth)
    with pytest.raises(SchemaConflictError, match=r"pipeline\.formerly: \[truth\]"):
        renamed.live()
    assert everything_once(truth, 10)
    known = replace(renamed, formerly=("truth",))
    known.live()
    assert everything_once(truth)
    goes_on(truth, 20)
    known.live()
    renamed.live()
    assert everything_once(truth, 30), "the new name has the records now"
    with pytest.raises(SchemaConflictError, match=r"pipeline\.formerly: \[other\]"):
        truth.live()


def test_two_pipelines_feed_one_table_from_different_topics(truth: Truth) -> None:
    other = replace(truth, name="other", kafka=Kafka({"copy.orders": Topic("a copy")}))
    for first in (10, 15):
        other.kafka.produce("copy.orders", *range(first, first + 5))
        other.live()
        truth.live()
    assert truth.ids("orders") == list(range(20))


def test_tables_that_lost_their_records_are_begun_one_after_the_other(truth: Truth) -> None:
    for name in ("orders", "users"):
        table = truth.table(name)
        newest = latest_snapshot(table.io, table.paths)
        assert newest is not None
        foreign = replace_snapshot(newest, id=newest.id + 1, commit_user="other", properties={})
        table.io.try_write_atomic(table.paths.snapshot(foreign.id), encode_snapshot(foreign))
        for number in range(1, foreign.id):
            table.io.delete_quietly(table.paths.snapshot(number))
    given = read_claims(truth.io, truth.settings.warehouse, truth.name)
    for name in ("lake.orders", "lake.users"):
        with pytest.raises(ProgressLostError, match=name):
            truth.live()
        at = at_claims(name, given)
        begin(truth.settings, truth.catalog, truth.io, name, at, truth.now_ms)
    goes_on(truth)
    truth.live()
    assert everything_once(truth)


def test_two_pipelines_that_begin_at_the_same_time_do_not_both_write_a_table(
    tmp_path: Path,
) -> None:
    """The other one begins and ends between the start of the first one and its commits."""
    truth = Truth(tmp_path, batch_rows=50)
    truth.kafka.topics[ORDERS] = Topic("one")
    truth.kafka.produce(ORDERS, *range(10))
    with pytest.raises(CommitConflictError, match="another pipeline writes the table"):
        replace(truth, between=replace(truth, name="other").live).live()
    for _ in range(2):
        with pytest.raises(SchemaConflictError, match="already gets the rows of topic"):
            truth.live()
    assert truth.ids("orders") == list(range(10))


def test_a_table_that_another_pipeline_created_meanwhile_is_judged_before_it_is_written(
    truth: Truth,
) -> None:
    drop(truth)
    registry = TableRegistry(truth.settings, truth.catalog, truth.io, truth.now_ms)
    registry.open()
    other = replace(truth, name="other", kafka=Kafka({"copy.orders": Topic("a copy")}))
    other.kafka.produce("copy.orders", 1)
    other.live()
    with pytest.raises(CommitConflictError, match="pipeline other has started to write it"):
        registry.adopt("lake.orders")
    again = TableRegistry(truth.settings, truth.catalog, truth.io, truth.now_ms)
    again.open()
    assert again.adopt("lake.orders") is not None


def test_a_renamed_source_goes_on(truth: Truth, caplog: pytest.LogCaptureFixture) -> None:
    renamed = replace(truth, source="renamed", merge_shards=True)
    goes_on(truth)
    renamed.live()
    assert everything_once(truth)
    assert "source_renamed" in caplog.text
    caplog.clear()
    renamed.live()
    assert "source_renamed" not in caplog.text


def test_a_renamed_source_goes_on_also_in_a_table_without_rows_for_a_while(truth: Truth) -> None:
    renamed = replace(truth, source="renamed")
    truth.kafka.produce(ORDERS, *range(10, 20))
    renamed.live()
    truth.kafka.produce(USERS, *range(10, 20))
    renamed.live()
    assert everything_once(truth)


def test_a_topic_that_two_sources_read_is_refused(truth: Truth) -> None:
    with pytest.raises(ConfigError, match=r"read by source .* and by source .*topic-exclude"):
        replace(truth, second_source="twin").live()


def without_record(truth: Truth, keep_old: bool) -> None:
    """A commit of another program on top of ours, and, at will, the expiry of all of ours."""
    table = truth.table("orders")
    newest = latest_snapshot(table.io, table.paths)
    assert newest is not None
    foreign = replace_snapshot(
        newest, id=newest.id + 1, commit_user="other", properties={}, commit_identifier=1
    )
    table.io.try_write_atomic(table.paths.snapshot(foreign.id), encode_snapshot(foreign))
    table.io.overwrite(table.paths.latest_hint, str(foreign.id).encode())
    if not keep_old:
        for number in range(1, foreign.id):
            table.io.delete_quietly(table.paths.snapshot(number))


def test_a_commit_of_another_program_on_top_changes_nothing(truth: Truth) -> None:
    without_record(truth, keep_old=True)
    claims(truth).unlink()
    goes_on(truth)
    truth.live()
    assert everything_once(truth)


@pytest.mark.parametrize("file", ["kept", "lost"])
def test_a_table_whose_records_are_all_gone_is_loud_at_every_start(truth: Truth, file: str) -> None:
    without_record(truth, keep_old=False)
    if file == "lost":
        claims(truth).unlink()
    for _ in range(2):
        with pytest.raises(ProgressLostError, match=r"lake\.orders: none of its .*ingestd begin"):
            truth.live()


@pytest.mark.parametrize("snapshot", [1, 2])
def test_what_java_rolls_back_as_the_latest_snapshot_counts_as_rolled_back(
    truth: Truth, snapshot: int
) -> None:
    """Java commits the older content, with its properties, as a new snapshot of its own."""
    table = truth.table("orders")
    older = read_snapshot(table.io, table.paths, snapshot)
    newest = latest_snapshot(table.io, table.paths)
    assert newest is not None
    again = replace_snapshot(
        older,
        id=newest.id + 1,
        commit_user="java",
        commit_identifier=BATCH_COMMIT_IDENTIFIER,
        commit_kind=CommitKind.OVERWRITE,
    )
    table.io.try_write_atomic(table.paths.snapshot(again.id), encode_snapshot(again))
    table.io.overwrite(table.paths.latest_hint, str(again.id).encode())
    assert len(truth.ids("orders")) < 10
    truth.live()
    assert everything_once(truth, 10)


@pytest.mark.parametrize("skew", [-DAY_MS, -3_600_000, 3_600_000, 365 * DAY_MS])
def test_a_clock_that_is_wrong_changes_nothing(truth: Truth, skew: int) -> None:
    """Snapshots tell the time they are given; who leads and what is there does not ask."""
    right = truth.now_ms
    for number, clock in enumerate((lambda: right() + skew, right, lambda: right() - skew)):
        goes_on(truth, 10 + 10 * number)
        replace(truth, now_ms=clock, holder=f"node {number}").live()
    assert everything_once(truth, 40)
    assert verify(truth.table("orders")) == []


def test_of_two_daemons_the_later_one_goes_on_and_the_other_is_notified(truth: Truth) -> None:
    """The first one sleeps between reading and commit, as one that gets SIGSTOP there."""
    goes_on(truth)
    other = replace(truth, holder="b", batch_rows=7)
    with pytest.raises(FencedError, match=r"pipeline truth: another daemon .*\(b\)"):
        replace(truth, between=other.live).live()
    with pytest.raises(FencedError, match=r"taken over \(b\)"):
        truth.live()  # as a restart of its query does
    assert everything_once(truth)
    goes_on(truth, 20)
    other.live()
    assert everything_once(truth, 30)


def test_what_a_changed_routing_leaves_out_is_named(truth: Truth) -> None:
    """A batch died between two tables; its other half then goes to the table that has its own."""
    goes_on(truth)
    claims(truth).unlink()
    with pytest.raises(CommitConflictError):
        replace(truth, between=lambda: roll_back(truth, "users"), batch_rows=50).live()
    assert truth.ids("orders") == list(range(20))
    rerouted = replace(truth, merge_shards=True)
    rerouted.live()
    dead_letters = truth.dead_letters()
    assert any(
        "the routing changed" in dead_letter and "table lake.orders" in dead_letter
        for dead_letter in dead_letters
    )
    rerouted.live()
    assert truth.dead_letters() == dead_letters


def test_a_table_that_a_changed_routing_leaves_out_is_named(
    truth: Truth, caplog: pytest.LogCaptureFixture
) -> None:
    truth.live()
    assert "gets no more rows" not in caplog.text
    replace(truth, mapping={ORDERS: "other"}).live()
    problems = [str(record.__dict__["ctx"]) for record in caplog.records if "ctx" in vars(record)]
    (problem,) = [problem for problem in problems if "gets no more rows" in problem]
    assert "table lake.orders gets no more rows of src" in problem
    assert "sends to lake.other" in problem


def test_a_changed_ordering_of_one_table_does_not_stop_the_start_of_the_others(
    truth: Truth,
) -> None:
    goes_on(truth)
    by_position = TableSettings((), (), {}, {}, ordering="source-position")
    replace(truth, tables={"orders": by_position}).live()
    assert truth.ids("users") == list(range(20))
    assert truth.ids("orders") == list(range(10))
    dead_letters = truth.dead_letters()
    assert len(dead_letters) == 10
    assert all("ordering 'source-position' needs" in message for message in dead_letters)


def _overwrite(truth: Truth) -> int:
    """As another program does; the id of the snapshot."""
    table = truth.table("orders")
    newest = latest_snapshot(table.io, table.paths)
    assert newest is not None
    foreign = replace_snapshot(
        newest,
        id=newest.id + 1,
        commit_user="spark",
        properties={},
        commit_identifier=BATCH_COMMIT_IDENTIFIER,
        commit_kind=CommitKind.OVERWRITE,
    )
    table.io.try_write_atomic(table.paths.snapshot(foreign.id), encode_snapshot(foreign))
    table.io.overwrite(table.paths.latest_hint, str(foreign.id).encode())
    return foreign.id


def test_overwrites_by_another_program_are_all_named_also_below_commits_of_ours(
    truth: Truth,
) -> None:
    first, second = _overwrite(truth), _overwrite(truth)
    compact_table(truth.table("orders"), now_ms=1, full=True)
    third = _overwrite(truth)
    truth.live()
    truth.live()
    (dead_letter,) = [
        dead_letter for dead_letter in truth.dead_letters() if "overwritten" in dead_letter
    ]
    assert f"in snapshot {first}, {second}, {third}: " in dead_letter


def test_a_pipeline_that_was_renamed_before_it_had_a_row_is_noticed(tmp_path: Path) -> None:
    truth = Truth(tmp_path, startup="latest-offset")
    truth.kafka.topics[ORDERS] = Topic("one")
    truth.live()
    truth.kafka.produce(ORDERS, *range(5))
    with pytest.raises(SchemaConflictError, match=r"pipeline\.formerly: \[truth\]"):
        replace(truth, name="other").live()
    replace(truth, name="other", formerly=("truth",)).live()
    assert truth.ids("orders") == list(range(5))


def test_a_renamed_source_whose_topics_were_all_created_again_is_the_same_source(
    tmp_path: Path,
) -> None:
    truth = Truth(tmp_path, startup="latest-offset")
    truth.kafka.topics[ORDERS] = Topic("one")
    truth.live()
    truth.kafka.topics[ORDERS] = Topic("two")
    truth.kafka.produce(ORDERS, *range(5))
    replace(truth, source="renamed").live()
    assert truth.ids("orders") == list(range(5))


def test_a_pipeline_that_gets_its_old_name_back_does_not_believe_its_old_records(
    truth: Truth,
) -> None:
    other = replace(truth, name="other", formerly=("truth",))
    goes_on(truth)
    other.live()
    goes_on(truth, 20)
    back = replace(truth, formerly=("other",))
    claims(truth).unlink()
    back.live()
    assert everything_once(truth, 30)
