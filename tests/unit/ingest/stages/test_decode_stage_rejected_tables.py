"""Dead letters of records that cannot be decoded name their table where the message states it."""

import json

import pytest

from tests.support.change_events import event
from tests.support.ingest_rig import Rig

_FIELDS = [
    {"field": "id", "type": "int32", "optional": False},
    {"field": "n", "type": "int32", "optional": True},
]


def with_schema(value: bytes) -> bytes:
    """Wrap an event in the schema of its rows, in which `n` is an integer."""
    rows = [
        {"field": name, "type": "struct", "optional": True, "fields": _FIELDS}
        for name in ("before", "after")
    ]
    schema = {"type": "struct", "fields": rows}
    return json.dumps({"schema": schema, "payload": json.loads(value)}).encode()


@pytest.mark.parametrize(
    ("broken", "reason", "table"),
    [
        (with_schema(event("c", {"id": 2, "n": "x"})), "wrong-type", "lake.orders"),
        (b"{bad", "invalid-json", None),
    ],
)
def test_the_table_is_that_of_the_record_or_unknown(
    broken: bytes, reason: str, table: str | None
) -> None:
    rig = Rig(data_format="debezium-json", key=None)
    rig.produce(with_schema(event("c", {"id": 1, "n": 1})), broken)
    rig.run()
    [dead_letter] = rig.rows("ingestd_dead_letters", "offset", "reason", "table")
    assert dead_letter == {"offset": 1, "reason": reason, "table": table}
