"""A pipeline writes a branch: its records are those of the branch, also after a fast-forward.

The tables have no key, so that a record that is read again without need is there twice.
"""

import shutil
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import pytest

from ingestd.errors import ConfigError, SchemaConflictError, StorageError
from ingestd.ingest.recovery.set_progress import at_origin, begin
from ingestd.paimon.catalog.base import TableNotFoundError
from ingestd.paimon.table.compact.table_compact import compact_table
from ingestd.paimon.table.metadata.snapshot_manager import (
    latest_snapshot,
    read_snapshot,
    snapshot_ids,
)
from ingestd.paimon.table.retention.branches import create_branch, drop_branch, fast_forward
from ingestd.paimon.table.retention.expire_plan import expire_settings
from ingestd.paimon.table.retention.expire_snapshots import expire_snapshots
from ingestd.paimon.table.retention.orphans import find_orphans, remove_orphans
from ingestd.paimon.table.retention.rollback import plan_rollback, rollback
from ingestd.paimon.table.retention.tags import create_tag, delete_tags
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.stopping_io import StoppingIO
from tests.support.truth_rig import Topic, Truth

pytestmark = pytest.mark.chaos
ORDERS, USERS = "shop.orders", "shop.users"
BRANCH = "orders$branch_fix"


@pytest.fixture
def truth(tmp_path: Path) -> Truth:
    """A pipeline that has read ten orders and ten users, in batches of four records."""
    found = Truth(tmp_path, mapping={}, options={"bucket": "-1", "snapshot.num-retained.min": "1"})
    found.kafka.add_topics(ORDERS, USERS, numbers=())
    goes_on(found, 0)
    found.live()
    return found


def goes_on(truth: Truth, first: int) -> None:
    """Ten more of each."""
    for topic in (ORDERS, USERS):
        truth.kafka.produce(topic, *range(first, first + 10))


def branched(truth: Truth, snapshot_id: int | None = None) -> Truth:
    """Create the branch, at the newest snapshot or an older one; return its pipeline."""
    table = truth.table("orders")
    newest = latest_snapshot(table.io, table.paths)
    assert newest is not None
    at = read_snapshot(table.io, table.paths, snapshot_id or newest.id)
    create_tag(table, "fix", at, now_ms=truth.now_ms())
    create_branch(table, "fix", "fix")
    return replace(truth, mapping={**truth.mapping, "orders": BRANCH})


def test_rows_go_to_the_branch_and_back_to_the_table_after_a_fast_forward(truth: Truth) -> None:
    on_branch = branched(truth)
    goes_on(truth, 10)
    on_branch.live()
    on_branch.live()
    assert truth.ids(BRANCH) == truth.ids("users") == list(range(20))
    assert truth.ids("orders") == list(range(10))
    fast_forward(truth.table("orders"), "fix")
    goes_on(truth, 20)
    truth.live()
    assert truth.ids("orders") == truth.ids("users") == list(range(30))
    assert truth.ids(BRANCH) == list(range(20))
    assert truth.dead_letters() == []
    assert verify(truth.table("orders")) == verify(truth.table(BRANCH)) == []


def test_a_branch_is_published_again_and_again_and_the_table_continues_where_it_was(
    truth: Truth,
) -> None:
    on_branch = branched(truth)
    for first in (10, 20, 30):
        goes_on(truth, first)
        on_branch.live()
        assert truth.ids("orders") == list(range(first))
        fast_forward(truth.table("orders"), "fix")
        on_branch.live()
        assert truth.ids("orders") == truth.ids(BRANCH) == list(range(first + 10))
    goes_on(truth, 40)
    on_branch.live(1)
    on_branch.live()
    # Not forwarded: the table gets these rows from the log.
    truth.live()
    assert truth.ids("orders") == truth.ids(BRANCH) == truth.ids("users") == list(range(50))


def test_a_branch_that_begins_earlier_gets_what_it_lacks(truth: Truth) -> None:
    on_branch = branched(truth, 1)
    assert truth.ids(BRANCH) != truth.ids("orders")
    goes_on(truth, 10)
    on_branch.live()
    assert truth.ids(BRANCH) == truth.ids("users") == list(range(20))


def test_a_branch_to_which_the_routing_returns_gets_what_it_lacks(truth: Truth) -> None:
    on_branch = branched(truth)
    goes_on(truth, 10)
    on_branch.live()
    fast_forward(truth.table("orders"), "fix")
    goes_on(truth, 20)
    truth.live()
    goes_on(truth, 30)
    on_branch.live()
    assert truth.ids(BRANCH) == truth.ids("users") == list(range(40))
    assert truth.ids("orders") == list(range(30))


def test_a_table_to_which_the_routing_returns_gets_what_the_branch_got(truth: Truth) -> None:
    on_branch = branched(truth)
    goes_on(truth, 10)
    on_branch.live()
    on_branch.live()
    truth.live()
    assert truth.ids("orders") == truth.ids(BRANCH) == truth.ids("users") == list(range(20))


def test_a_table_that_was_rolled_back_since_keeps_no_snapshot_that_the_branch_does_not_continue(
    truth: Truth,
) -> None:
    on_branch = branched(truth)
    table = truth.table("orders")
    delete_tags(table, "fix")
    rollback(table, plan_rollback(table, read_snapshot(table.io, table.paths, 1)))
    truth.live()
    goes_on(truth, 10)
    on_branch.live()
    fast_forward(truth.table("orders"), "fix")
    assert snapshot_ids(table.io, table.paths)[0] > 1
    truth.live()
    assert truth.ids("orders") == truth.ids("users") == list(range(20))
    assert verify(truth.table("orders")) == []


def test_another_source_table_finds_a_forwarded_table_as_it_was(truth: Truth) -> None:
    on_branch = branched(truth)
    goes_on(truth, 10)
    on_branch.live()
    fast_forward(truth.table("orders"), "fix")
    goes_on(truth, 20)
    on_branch.live()
    # Nothing that the table has had is routed to it; then another topic is.
    mapping = {**truth.mapping, "orders": "elsewhere", "late": "orders"}
    truth.kafka.topics["shop.late"] = Topic("id of late")
    truth.kafka.produce("shop.late", 100, 101)
    moved = replace(truth, mapping=mapping)
    moved.live()
    assert truth.ids("orders") == [*range(20), 100, 101]


def test_an_empty_branch_begins_with_what_comes_or_with_everything(truth: Truth) -> None:
    create_branch(truth.table("orders"), "fix")
    on_branch = replace(truth, mapping={**truth.mapping, "orders": BRANCH})
    goes_on(truth, 10)
    on_branch.live()
    assert truth.ids(BRANCH) == list(range(10, 20))
    drop_branch(truth.table("orders"), "fix")
    create_branch(truth.table("orders"), "fix")
    name = f"lake.{BRANCH}"
    begin(on_branch.settings, truth.catalog, truth.io, name, at_origin(name), truth.now_ms)
    on_branch.live()
    assert truth.ids(BRANCH) == truth.ids("users") == list(range(20))


def test_a_branch_that_does_not_exist_is_refused_with_the_command_that_creates_it(
    truth: Truth,
) -> None:
    on_branch = replace(truth, mapping={**truth.mapping, "orders": BRANCH})
    with pytest.raises(
        TableNotFoundError, match=r"ingestd branch create WAREHOUSE lake\.orders fix"
    ):
        on_branch.live()
    branched(truth).live()


def test_one_pipeline_writes_one_branch_of_a_table(truth: Truth) -> None:
    branched(truth)
    both = {**truth.mapping, "orders": "orders", "users": BRANCH}
    with pytest.raises(ConfigError, match=r"branches of one table.*table-mapping"):
        replace(truth, mapping=both).live()


def test_another_pipeline_of_the_topic_is_refused_on_a_branch(truth: Truth) -> None:
    on_branch = branched(truth)
    with pytest.raises(SchemaConflictError, match=r"or to a branch of it"):
        replace(on_branch, name="other", dead_letter_table="other_letters").live()
    truth.live()


def test_a_pipeline_of_other_topics_and_that_of_the_table_both_go_on_after_a_fast_forward(
    truth: Truth,
) -> None:
    branched(truth)
    truth.kafka.topics["shop.backfill"] = Topic("id of backfill")
    truth.kafka.produce("shop.backfill", *range(100, 110))
    other = replace(
        truth, name="other", dead_letter_table="other_letters", pattern="shop.backfill",
        mapping={"backfill": BRANCH},
    )  # fmt: skip
    truth = replace(truth, pattern="shop.(orders|users)")
    other.live()
    goes_on(truth, 10)
    truth.live()
    assert truth.ids(BRANCH) == [*range(10), *range(100, 110)]
    fast_forward(truth.table("orders"), "fix")
    truth.kafka.produce("shop.backfill", 110)
    other.live()
    goes_on(truth, 20)
    truth.live()
    assert truth.ids("orders") == [*range(30), *range(100, 110)]
    assert truth.ids(BRANCH) == [*range(10), *range(100, 111)]


def test_expiry_and_orphans_of_table_and_branch_keep_the_files_of_each_other(truth: Truth) -> None:
    on_branch = branched(truth)
    for first in (10, 20):
        goes_on(truth, first)
        on_branch.live()
    truth.live()
    for name in ("orders", BRANCH):
        table = truth.table(name)
        compact_table(table, now_ms=truth.now_ms(), full=True)
        much_later = truth.now_ms() + 10**9
        assert expire_snapshots(table, expire_settings(table.schema.options), much_later).ids
        remove_orphans(table, find_orphans(table, much_later))
        assert verify(truth.table("orders")) == verify(truth.table(BRANCH)) == []
    goes_on(truth, 30)
    on_branch.live()
    fast_forward(truth.table("orders"), "fix")
    truth.live()
    assert truth.ids("orders") == list(range(40))
    assert verify(truth.table("orders")) == []


def _copy(truth: Truth, to: Path) -> Truth:
    shutil.copytree(truth.root, to)
    return replace(truth, root=to, kafka=deepcopy(truth.kafka))


def _unlike_a_table_of_java(truth: Truth) -> list[str]:
    """What is wrong with the snapshots of the table: only their newest may be missing."""
    table = truth.table("orders")
    ids = snapshot_ids(table.io, table.paths)
    return [str(one) for one in verify(table)] + [f"gap {ids}"] * (
        ids != list(range(1, len(ids) + 1))
    )


@pytest.mark.parametrize("first", [1, None], ids=["from the first snapshot", "from the newest"])
def test_an_interrupted_fast_forward_is_finished_by_the_next_whatever_ran_between(
    truth: Truth, tmp_path: Path, first: int | None
) -> None:
    on_branch = branched(truth, first)
    goes_on(truth, 10)
    on_branch.live()
    truth.live(0)
    whole = _copy(truth, tmp_path / "whole")
    fast_forward(whole.table("orders"), "fix")
    changes = 0
    for changes in range(60):
        at = _copy(truth, tmp_path / str(changes))
        table = at.table("orders")
        try:
            fast_forward(replace(table, io=StoppingIO(table.io, changes)), "fix")
        except StorageError:
            assert _unlike_a_table_of_java(at) == []
        else:
            break
        if changes % 6 == 0:
            at.live()
            replace(at, mapping=on_branch.mapping).live()
        fast_forward(at.table("orders"), "fix")
        assert at.ids("orders") == whole.ids("orders") == list(range(20))
        assert verify(at.table("orders")) == []
        if changes % 3 == 0:
            goes_on(at, 20)
            at.live()
            assert at.ids("orders") == at.ids("users") == list(range(30))
        shutil.rmtree(at.root)
    assert changes > 8
