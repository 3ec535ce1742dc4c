"""Inserts of key-changing updates are completed with the values of the right row."""

import pytest

from ingestd.ingest.settings.context import RoutingConfig, TableSettings
from tests.support.ingest_rig import Rig
from tests.support.json_changes import DELETE, UNAVAILABLE, Change, record

pytestmark = pytest.mark.usefixtures("json_changes")


@pytest.mark.parametrize("batches", [1, 2])
def test_values_are_those_of_the_same_source_table(batches: int) -> None:
    options = {"merge-engine": "partial-update", "ignore-delete": "true"}
    mapping = {"shop.orders": "orders", "shop.payments": "orders"}
    routing = RoutingConfig(table_mapping=mapping)
    rig = Rig(routing=routing, defaults=TableSettings(options=options))
    columns = {"orders": ("doc", "of the order"), "payments": ("note", "of the payment")}
    for position, (table, (column, text)) in enumerate(columns.items(), 1):
        rig.produce(record(Change({"id": 1, column: text}, table=table, position=position)))
    if batches > 1:
        rig.run()
    for position, (table, (column, _)) in enumerate(columns.items(), 10):
        rig.produce(record(Change({"id": 1}, DELETE, table, position=position)))
        moved = {"id": 2, column: UNAVAILABLE}
        rig.produce(record(Change(moved, table=table, position=position)))
    result = rig.run()
    assert rig.rows("orders") == [
        {"id": key, "doc": "of the order", "note": "of the payment"} for key in (1, 2)
    ]
    assert result.counts.unknown["lake.orders"] == 0
