"""Schema change events prove renames and drops if statement and columns agree."""

import json
from typing import Any

import numpy as np

from ingestd.cdc.base import RecordChunk, SourceTable, load_data_format
from ingestd.cdc.ddl.schema_events import ddl_events

CHUNK = RecordChunk("shop", 0, np.array([7]), np.array([0]), [None], [None], None)
SOURCE = {"file": "bin.000001", "pos": 5, "row": 0, "snapshot": "false"}


def event(statement: str | None, *columns: str, **fields: Any) -> bytes:
    change = {
        "type": "ALTER",
        "id": '"inv"."item"',
        "table": {"columns": [{"name": name} for name in columns]},
    }
    document = {
        "source": SOURCE,
        "databaseName": "inv",
        "schemaName": None,
        "ddl": statement,
        "tableChanges": [change],
        **fields,
    }
    return json.dumps(document).encode()


def changes(payload: bytes) -> list[tuple[str, str | None]]:
    return [pair for schema_change in ddl_events(payload) for pair in schema_change.columns]


def test_event_says_table_place_and_position() -> None:
    (event_of_table,) = ddl_events(event("ALTER TABLE item CHANGE a b int", "id", "b"))
    found = event_of_table.at(CHUNK, 0)
    assert found.source == SourceTable("inv", None, "item")
    assert (found.offset, found.position) == (7, ((1 << 32) + 5) << 12)
    assert found.columns == (("a", "b"),)


def test_columns_have_to_agree() -> None:
    assert changes(event("ALTER TABLE item CHANGE a b int", "id", "a")) == []
    assert changes(event("ALTER TABLE item CHANGE a b int", "id", "a", "b")) == []
    assert changes(event("ALTER TABLE item DROP a", "id", "a")) == []
    assert changes(event("ALTER TABLE item RENAME COLUMN A TO bB", "id", "Bb")) == [("A", "Bb")]


def test_nothing_is_proven_without_a_statement_or_of_other_events() -> None:
    assert changes(event(None, "id")) == []
    assert changes(event("DROP TABLE item", "id")) == []
    assert changes(event("ALTER TABLE item DROP a", "id", tableChanges=None)) == []
    assert changes(b'{"ts_ms": 1}') == []
    assert changes(b'{"tableChanges": 5, "source": {}}') == []


def test_position_of_a_snapshot_is_unknown() -> None:
    payload = event("ALTER TABLE item DROP a", "id", source={**SOURCE, "snapshot": "true"})
    (found,) = ddl_events(payload)
    assert found.position is None


def test_decoder_hands_them_on_with_and_without_envelope() -> None:
    payload = event("ALTER TABLE item DROP a", "id")
    wrapped = b'{"schema": {"type": "struct", "fields": []}, "payload": ' + payload + b"}"
    values: list[bytes | None] = [payload, wrapped, b'{"ts_ms": 5}', None]
    chunk = RecordChunk("shop", 0, np.arange(4), np.arange(4), [None] * 4, values, None)
    found = load_data_format("debezium-json").decode(chunk, {}, {})
    assert [schema_change.offset for schema_change in found.schema_changes] == [0, 1]
    assert (found.control, found.rejected) == (4, [])
