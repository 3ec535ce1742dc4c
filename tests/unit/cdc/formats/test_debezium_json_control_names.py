"""Rows with a column of the same name as a field of Debezium's control messages are rows."""

import json
from typing import Any

import pytest

from ingestd.cdc.base import Decoded, FormatSettings, load_data_format
from tests.support import registered
from tests.support.registered import chunk_of

ROWS: list[dict[str, Any]] = [
    {"id": 1, "ts_ms": 5},
    {"id": 1, "ddl": "create"},
    {"id": 1, "tableChanges": 3},
    {"id": 1, "status": "BEGIN"},
    {"id": "a", "status": "END", "v": 1},
]
CONTROL: list[dict[str, Any]] = [
    {"ts_ms": 5},
    {"source": {"db": "d"}, "databaseName": "d", "ddl": "create table t (a int)", "ts_ms": 5},
    {"status": "BEGIN", "id": "571:1", "event_count": None, "data_collections": None, "ts_ms": 5},
    {"op": "m", "ts_ms": 5, "source": {"db": "d"}, "message": {"prefix": "p"}},
]


def decode(data_format: str, *messages: dict[str, Any]) -> Decoded:
    values = [json.dumps(message).encode() for message in messages]
    return load_data_format(data_format, FormatSettings()).decode(chunk_of(values), {}, {})


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("data_format", ["debezium-json", "debezium-flat-json"])
def test_a_flattened_row_is_not_a_control_message(data_format: str, row: dict[str, Any]) -> None:
    found = decode(data_format, {**row, "__op": "c"})
    [batch] = found.batches
    assert (batch.columns.to_pylist(), found.control) == ([row], 0)


@pytest.mark.parametrize("row", [*ROWS, {"id": 1, "op": "m"}])
def test_a_row_without_added_fields_is_an_insert(row: dict[str, Any]) -> None:
    found = decode("debezium-flat-json", row)
    [batch] = found.batches
    assert (batch.columns.to_pylist(), found.control) == ([row], 0)
    rejected = decode("debezium-json", row)
    assert (len(rejected.rejected), rejected.control) == (1, 0)


@pytest.mark.parametrize("message", CONTROL)
@pytest.mark.parametrize("data_format", ["debezium-json", "debezium-flat-json"])
def test_control_messages_have_no_rows(data_format: str, message: dict[str, Any]) -> None:
    found = decode(data_format, message)
    assert (found.batches, found.rejected, found.control) == ([], [], 1)


def test_an_avro_record_with_a_column_ddl_is_rejected() -> None:
    registry = registered.Registered()
    schema = {"type": "record", "name": "row", "fields": [{"name": "ddl", "type": "int"}]}
    decoder = load_data_format("debezium-avro", FormatSettings(schemas=registry))
    found = decoder.decode(chunk_of(registry.avro(schema, {"ddl": 1})), {}, {})
    assert ([record.reason for record in found.rejected], found.control) == (["missing-op"], 0)
