"""Debezium's schema change events as Avro converters write them."""

from typing import Any

from ingestd.cdc.base import Decoded, FormatSettings, SourceTable, load_data_format
from tests.support.registered import Registered, chunk_of, record

OPTIONAL = ["null", "string"]
COLUMN = record("Column", [{"name": "name", "type": "string"}, {"name": "jdbcType", "type": "int"}])
TABLE = record("Table", [{"name": "columns", "type": {"type": "array", "items": COLUMN}}])
CHANGE = record(
    "Change",
    [
        {"name": "type", "type": "string"},
        {"name": "id", "type": "string"},
        {"name": "table", "type": ["null", TABLE]},
    ],
)
SOURCE = record(
    "Place",
    [
        {"name": "snapshot", "type": OPTIONAL},
        {"name": "file", "type": "string"},
        {"name": "pos", "type": "long"},
        {"name": "row", "type": "int"},
    ],
)
EVENT = record(
    "SchemaChangeValue",
    [
        {"name": "source", "type": SOURCE},
        {"name": "ts_ms", "type": "long"},
        {"name": "databaseName", "type": OPTIONAL},
        {"name": "schemaName", "type": OPTIONAL},
        {"name": "ddl", "type": OPTIONAL},
        {"name": "tableChanges", "type": {"type": "array", "items": CHANGE}},
    ],
)


def altered(ddl: str, *names: str, kind: str = "ALTER") -> dict[str, Any]:
    columns = [{"name": name, "jdbcType": 4} for name in names]
    change = {"type": kind, "id": '"inv"."item"', "table": {"columns": columns}}
    return {
        "source": {"snapshot": "false", "file": "bin.000004", "pos": 911, "row": 0},
        "ts_ms": 1,
        "databaseName": "inv",
        "schemaName": None,
        "ddl": ddl,
        "tableChanges": [change],
    }


def decode(*events: dict[str, Any]) -> Decoded:
    registry = Registered()
    values = registry.avro(EVENT, *events)
    data_format = load_data_format("debezium-avro", FormatSettings(schemas=registry))
    return data_format.decode(chunk_of(values), {}, {})


def test_statements_in_avro_report_columns_at_their_place_in_the_log() -> None:
    decoded = decode(
        altered("ALTER TABLE item ADD c INT", "id", "a", "c"),
        altered("ALTER TABLE item CHANGE a b INT, DROP c", "id", "b"),
    )
    [event] = decoded.schema_changes
    assert event.source == SourceTable("inv", None, "item")
    assert event.columns == (("a", "b"), ("c", None))
    assert event.offset == 1
    assert event.position == (4 << 32 | 911) << 12
    assert (decoded.control, decoded.rejected) == (2, [])


def test_columns_that_do_not_agree_and_other_changes_prove_nothing() -> None:
    decoded = decode(
        altered("ALTER TABLE item DROP c", "id", "c"),
        altered("ALTER TABLE item DROP c", "id", kind="DROP"),
    )
    assert (decoded.schema_changes, decoded.control) == ([], 2)
