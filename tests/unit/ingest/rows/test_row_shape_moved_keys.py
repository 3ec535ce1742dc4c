"""An update that changes what a key is computed from takes the row from its old place."""

import pytest

from ingestd.ingest.computed.computed_columns import parse_computed
from ingestd.ingest.settings.context import TableSettings
from ingestd.ingest.settings.shape_settings import ShapeSettings
from tests.support.ingest_rig import DEAD_LETTERS, Rig
from tests.support.json_changes import DELETE, UPDATE_AFTER, UPDATE_BEFORE, Change, record

pytestmark = pytest.mark.usefixtures("json_changes")

MONTHLY = TableSettings(
    primary_keys=("month", "id"),
    partition_keys=("month",),
    options={"bucket": "1"},
    shape=ShapeSettings((parse_computed("month", "truncate(day, 7)"),)),
)


def update(identity: int, old: str | None, new: str | None, n: int) -> bytes:
    return record(
        Change({"id": identity, "day": old, "n": 0}, UPDATE_BEFORE),
        Change({"id": identity, "day": new, "n": n}, UPDATE_AFTER),
    )


def monthly() -> Rig:
    rig = Rig(settings={"orders": MONTHLY})
    for identity in (1, 2, 3):
        rig.produce(record(Change({"id": identity, "day": "2025-06-01", "n": 0})))
    rig.run()
    return rig


def test_row_moves_to_its_new_partition_and_stays_where_nothing_changed() -> None:
    rig = monthly()
    rig.produce(update(1, "2025-06-01", "2025-07-01", 5), update(2, "2025-06-01", "2025-06-09", 6))
    result = rig.run()
    assert rig.rows("orders", "month", "id", "n") == [
        {"month": "2025-06", "id": 2, "n": 6},
        {"month": "2025-06", "id": 3, "n": 0},
        {"month": "2025-07", "id": 1, "n": 5},
    ]
    assert result.counts.rows["lake.orders", DELETE] == 1


def test_delete_finds_its_row_by_the_row_that_was_there() -> None:
    rig = monthly()
    rig.produce(record(Change({"id": 3, "day": "2025-06-01"}, DELETE)))
    rig.run()
    assert [row["id"] for row in rig.rows("orders")] == [1, 2]


def test_delete_that_does_not_say_what_was_there_is_a_dead_letter() -> None:
    rig = monthly()
    rig.produce(record(Change({"id": 3}, DELETE)))
    rig.run()
    assert len(rig.rows("orders")) == 3
    (dead_letter,) = rig.rows(DEAD_LETTERS.partition(".")[2])
    assert (dead_letter["stage"], dead_letter["reason"]) == ("key", "null-key")
