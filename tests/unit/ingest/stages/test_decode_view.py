"""What two batches must have in common for one's stage 1 to be the other's."""

from dataclasses import fields, replace
from typing import Any

import pytest

from ingestd.ingest.settings.context import BatchContext, QualifiedSourceTable, TableContext
from ingestd.ingest.stages.decode_view import decode_view
from ingestd.ingest.values.source_points import SourcePoint
from ingestd.kafka.offset_ranges import OffsetRange
from tests.support.ingest_rig import DEAD_LETTERS, Rig
from tests.support.json_changes import Change, record

ORDERS = "lake.orders"
RANGES = [OffsetRange("src", "orders", 0, 10, 20), OffsetRange("src", "orders", 1, 5, 9)]

pytestmark = pytest.mark.usefixtures("json_changes")


@pytest.fixture
def context() -> BatchContext:
    """That of a table with a snapshot."""
    rig = Rig()
    rig.produce(record(Change({"id": 1})))
    rig.run()
    return rig.context()


def with_orders(context: BatchContext, **changes: Any) -> BatchContext:
    """The same with another state of the table."""
    orders = replace(context.tables[ORDERS], **changes)
    return replace(context, tables={**context.tables, ORDERS: orders})


def held(offset: int, partition: int = 0, topic: str = "orders") -> dict[str, Any]:
    """Offsets that a table has."""
    return {"covered": {"src": {topic: {partition: offset}}}}


def same_view(one: BatchContext, other: BatchContext) -> bool:
    """Whether stage 1 would do the same."""
    return decode_view(one, RANGES) == decode_view(other, RANGES)


def test_what_a_commit_moves_makes_no_difference(context: BatchContext) -> None:
    landed = with_orders(
        context,
        index_entries=Rig().context().tables[DEAD_LETTERS].index_entries,
        sequence_base=context.tables[ORDERS].sequence_base + 100,
        snapshot_id=7,
        reached=SourcePoint(99),
        **held(10),
    )
    assert landed != context
    assert same_view(context, landed)


@pytest.mark.parametrize(("what", "same"), [(held(10), True), (held(11), False)])
def test_offsets_that_a_table_holds_count_within_the_ranges(
    context: BatchContext, what: dict[str, Any], same: bool
) -> None:
    assert same_view(context, with_orders(context, **what)) is same


@pytest.mark.parametrize("where", [{"partition": 2}, {"topic": "customers"}])
def test_offsets_of_what_is_not_read_do_not_count(
    context: BatchContext, where: dict[str, Any]
) -> None:
    assert same_view(context, with_orders(context, **held(1000, **where)))


OF_THE_WRITE_STAGE = {"write_buffer_size", "index_cache_bytes"}
OF_THE_STATE = {"index_entries", "sequence_base", "reached", "snapshot_id"}


class _Other:
    """A value that equals no other."""


@pytest.mark.parametrize("name", [field.name for field in fields(BatchContext)])
def test_every_other_part_of_a_context_counts(context: BatchContext, name: str) -> None:
    if name == "tables":
        return  # distinguished above and below
    other = replace(context, **{name: _Other()})
    assert same_view(context, other) is (name in OF_THE_WRITE_STAGE)


@pytest.mark.parametrize("name", [field.name for field in fields(TableContext)])
def test_every_other_part_of_a_table_counts(context: BatchContext, name: str) -> None:
    if name == "covered":
        return
    assert same_view(context, with_orders(context, **{name: _Other()})) is (name in OF_THE_STATE)


def test_a_table_more_and_another_schema_count(context: BatchContext) -> None:
    tables = {**context.tables, "lake.more": context.tables[ORDERS]}
    assert not same_view(context, replace(context, tables=tables))
    table = context.tables[ORDERS].table
    wider = table.with_schema(replace(table.schema, id=table.schema.id + 1))
    assert not same_view(context, with_orders(context, table=wider))
    again = table.with_schema(replace(table.schema))
    assert same_view(context, with_orders(context, table=again))
    assert not same_view(
        context,
        with_orders(context, source_tables=frozenset({QualifiedSourceTable("s", None, None, "t")})),
    )
