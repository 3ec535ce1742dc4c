"""A pipeline that writes a branch of its table in some catalog, until the branch is published."""

from collections.abc import Callable
from dataclasses import replace

from ingestd.paimon.catalog.base import Identifier
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.schema_change import AddColumn
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.retention.branches import create_branch, drop_branch, fast_forward
from ingestd.paimon.table.retention.tags import create_tag
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.truth_rig import Topic, Truth

BRANCH = "orders$branch_fix"


def publish_a_branch(pipeline: Truth, java_ids: Callable[[str], list[int]]) -> None:
    """Let rows go to the table, to a branch of it with another schema, and to the table again.

    `java_ids` are the ids that Java reads in a table or a branch, in any order.
    """

    def both(name: str) -> list[int]:
        assert verify(pipeline.table(name)) == []
        ids = pipeline.ids(name)
        assert sorted(java_ids(name)) == ids
        return ids

    kafka = pipeline.kafka
    kafka.topics["shop.orders"] = Topic("one")
    kafka.produce("shop.orders", *range(6))
    pipeline.live()
    table = pipeline.table("orders")
    snapshot = latest_snapshot(table.io, table.paths)
    assert snapshot is not None
    create_tag(table, "fix", snapshot, now_ms=pipeline.now_ms())
    create_branch(table, "fix", "fix")
    on_branch = replace(pipeline, mapping=dict.fromkeys(pipeline.mapping, BRANCH))
    kafka.produce("shop.orders", *range(6, 12))
    on_branch.live()
    added = [AddColumn("w", parse_type("INT"))]
    branch = Identifier(pipeline.database, BRANCH)
    pipeline.catalog.alter_table(branch, added, pipeline.now_ms())
    kafka.produce("shop.orders", *range(12, 15))
    on_branch.live()
    assert (both(BRANCH), both("orders")) == (list(range(15)), list(range(6)))
    columns = {name: pipeline.table(name).schema.field_names for name in (BRANCH, "orders")}
    assert columns == {BRANCH: ("id", "at", "w"), "orders": ("id", "at")}
    fast_forward(pipeline.table("orders"), "fix")
    kafka.produce("shop.orders", *range(15, 18))
    pipeline.live()
    assert (both("orders"), both(BRANCH)) == (list(range(18)), list(range(15)))
    assert pipeline.table("orders").schema.field_names == ("id", "at", "w")
    drop_branch(pipeline.table("orders"), "fix")
    assert not pipeline.catalog.table_exists(branch)
