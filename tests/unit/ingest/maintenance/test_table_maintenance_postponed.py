"""Tables whose rows wait for their bucket: every commit is work, and no writer waits for it."""

from ingestd.ingest.maintenance.table_maintenance import TableGrowth, TableWork, rules_of
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.schema import new_schema


def test_rows_that_wait_are_due_at_once_and_hold_up_nobody() -> None:
    columns = [("k", parse_type("INT"))]
    schema = new_schema(columns, ["k"], [], {"bucket": "-2"}, 0)
    one = TableWork(rules_of(schema), schema, first_due_at=5.0, expires_at=60.0)
    for snapshot in range(1, 40):
        one.committed(TableGrowth(schema, snapshot, {(b"", -2): 1}), 1.0)
    assert one.due_since == 1.0
    assert not one.is_over_stop
