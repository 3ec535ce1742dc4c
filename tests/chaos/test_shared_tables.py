"""Tables that other programs or other pipelines write, too: crashes and rollbacks."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from ingestd.crash_points import CrashPoint, watch
from ingestd.errors import CommitConflictError, ConfigError, ProgressLostError
from ingestd.ingest.recovery.set_progress import at_claims, at_origin, begin
from ingestd.ingest.tables.claims import read_claims
from ingestd.paimon.catalog.base import Identifier
from ingestd.paimon.library.row_writer import RowWriter
from ingestd.paimon.spec.data_types import DataField, DataType
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.paimon.table.commit.table_commit import commit
from ingestd.paimon.table.metadata.snapshot_manager import read_snapshot
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.retention.rollback import plan_rollback, rollback
from ingestd.paimon.table.write.commit_message import ManifestCommittable
from tests.chaos.test_truth import without_record
from tests.support.driver_lives import DiedError
from tests.support.truth_rig import Kafka, Topic, Truth

pytestmark = pytest.mark.chaos
OTHERS_ROW = 1000


def pipeline(root: Path, name: str, *numbers: int) -> Truth:
    """A pipeline with a topic of its own, whose rows go to the table of orders."""
    kafka = Kafka({f"{name}.orders": Topic(f"topic of {name}")})
    kafka.produce(f"{name}.orders", *numbers)
    return Truth(root, kafka, name=name, mapping={f"{name}.orders": "orders"})


def table_of_another_program(truth: Truth) -> None:
    """Create the table of orders with one row, as a program does that keeps no records."""
    fields = (DataField(0, "id", DataType("BIGINT")), DataField(1, "at", DataType("BIGINT")))
    schema = TableSchema(0, fields, 1, (), (), {"bucket": "-1"}, "", 1)
    truth.catalog.create_database("lake")
    truth.catalog.create_table(Identifier("lake", "orders"), schema)
    table = truth.table("orders")
    state = load_state(table)
    rows = pa.table({"id": pa.array([OTHERS_ROW], pa.int64()), "at": pa.array([0], pa.int64())})
    messages = RowWriter(table, state, "other", fresh=False).write(rows)
    commit(table, "other", ManifestCommittable(1, tuple(messages)), state=state, now_ms=1)


def live_until(truth: Truth, point: CrashPoint, times: int) -> None:
    """Run until a step is passed for the n-th time, at which the process ends."""
    passed = []

    def die(reached: CrashPoint) -> None:
        passed.extend([reached] * (reached is point))
        if len(passed) >= times:
            raise DiedError

    watch(die)
    try:
        with pytest.raises(DiedError):
            truth.live()
    finally:
        watch(None)


@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize(
    "point", [CrashPoint.SCHEMA_PUBLISHED, CrashPoint.SNAPSHOT_READY, CrashPoint.SNAPSHOT_PUBLISHED]
)
def test_a_crash_before_the_first_commit_to_a_table_of_another_program_is_no_lost_record(
    tmp_path: Path, point: CrashPoint, times: int
) -> None:
    truth = pipeline(tmp_path, "one", *range(5))
    table_of_another_program(truth)
    if (point, times) == (CrashPoint.SCHEMA_PUBLISHED, 3):
        truth.live()
    else:
        live_until(truth, point, times)
    truth.live()
    assert truth.ids("orders") == [*range(5), OTHERS_ROW]


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("file", ["kept", "lost"])
def test_a_pipeline_gets_all_of_its_rows_again_after_a_rollback_below_the_first_of_them(
    tmp_path: Path, file: str, first: int
) -> None:
    one, other = pipeline(tmp_path, "one", *range(5)), pipeline(tmp_path, "other", *range(10, 15))
    other.kafka.produce("other.orders", -1)
    for truth in (one, other):
        truth.live()
    for name in ("orders", one.dead_letter_table):
        table = one.table(name)
        rollback(table, plan_rollback(table, read_snapshot(table.io, table.paths, 1)))
    if file == "lost":
        (one.root / "warehouse" / ".ingestd" / "other" / "progress.json").unlink()
    other.kafka.produce("other.orders", *range(15, 20))
    for truth in (one, other, one) if first == 0 else (other, one, other):
        truth.live()
    assert one.ids("orders") == [*range(5), *range(10, 20)]
    assert len(one.dead_letters()) == 1


def test_a_record_of_another_pipeline_says_nothing_of_one_that_was_removed(tmp_path: Path) -> None:
    """Another program expires the records of both, and the operator gives one of them a record."""
    one, other = pipeline(tmp_path, "one", *range(5)), pipeline(tmp_path, "other", *range(10, 15))
    for truth in (one, other):
        truth.live()
    given = read_claims(other.io, other.settings.warehouse, other.name)
    without_record(one, keep_old=False)
    at = at_claims("lake.orders", given)
    begin(other.settings, other.catalog, other.io, "lake.orders", at, other.now_ms)
    other.live()
    for _ in range(2):
        with pytest.raises(ProgressLostError, match="Pipeline other writes it, too"):
            one.live()
    assert one.ids("orders") == [*range(5), *range(10, 15)]
    with pytest.raises(ConfigError, match="rows of all pipelines: use --at origin for each"):
        begin(
            one.settings, one.catalog, one.io, "lake.orders", at_origin("lake.orders"), one.now_ms
        )
    one.truncate("orders")
    for truth in (one, other):
        at = at_origin("lake.orders")
        begin(truth.settings, truth.catalog, truth.io, "lake.orders", at, truth.now_ms)
    for truth in (one, other):
        truth.live()
    assert one.ids("orders") == [*range(5), *range(10, 15)]


def test_a_record_under_an_old_name_is_not_the_record_of_another_pipeline(tmp_path: Path) -> None:
    """The table is rolled back to it after the old name has been removed from the settings."""
    truth = pipeline(tmp_path, "one", *range(5))
    truth.live()
    renamed = replace(truth, name="new", formerly=("one",))
    renamed.kafka.produce("one.orders", *range(5, 10))
    renamed.live()
    table = truth.table("orders")
    rollback(table, plan_rollback(table, read_snapshot(table.io, table.paths, 1)))
    with pytest.raises(ProgressLostError, match=r"lake\.orders"):
        replace(renamed, formerly=()).live()
    renamed.live()
    assert truth.ids("orders") == list(range(10))


def test_a_pipeline_goes_on_in_a_table_of_which_another_one_made_the_first_snapshot(
    tmp_path: Path,
) -> None:
    """Both ended after they had marked the empty table, before their first commit to it."""
    one, other = pipeline(tmp_path, "one", *range(5)), pipeline(tmp_path, "other", *range(10, 15))
    for truth in (other, one):
        live_until(truth, CrashPoint.SNAPSHOT_READY, 2)
    for truth in (other, one):
        truth.live()
    assert one.ids("orders") == [*range(5), *range(10, 15)]


@pytest.mark.parametrize("file", ["kept", "lost"])
def test_a_dead_letter_is_written_again_after_a_rollback_to_the_first_snapshot_of_another_pipeline(
    tmp_path: Path, file: str
) -> None:
    one, other = pipeline(tmp_path, "one", *range(5)), pipeline(tmp_path, "other", -1, 10, 11)
    live_until(other, CrashPoint.SNAPSHOT_READY, 1)
    for truth in (one, other):
        truth.live()
    table = one.table(one.dead_letter_table)
    rollback(table, plan_rollback(table, read_snapshot(table.io, table.paths, 1)))
    if file == "lost":
        (one.root / "warehouse" / ".ingestd" / "other" / "progress.json").unlink()
    other.live()
    assert len(one.dead_letters()) == 1
    assert one.ids("orders") == [*range(5), 10, 11]


def test_a_table_with_a_record_and_without_a_mark_is_read_on_where_it_was(tmp_path: Path) -> None:
    """The process ended between the two, and its next one has committed dead letters only."""
    truth = pipeline(tmp_path, "one", -1, *range(5))
    table_of_another_program(truth)
    live_until(truth, CrashPoint.SNAPSHOT_PUBLISHED, 2)
    one_by_one = replace(truth, batch_rows=1)
    with pytest.raises(CommitConflictError, match="opened again"):
        one_by_one.live()
    one_by_one.live()
    assert truth.ids("orders") == [*range(5), OTHERS_ROW]
    assert len(truth.dead_letters()) == 1
