"""Where messages contain comments of tables and columns, decoders report them with their batch."""

import json
from typing import Any

import pytest

from ingestd.cdc.base import MAX_COMMENT, Comments, Decoded, FormatSettings, load_data_format
from ingestd.cdc.ddl.schema_events import ddl_events
from ingestd.cdc.formats import debezium_json
from tests.support.change_events import chunk, event, field, key, wrapped
from tests.support.registered import Registered, chunk_of, envelope, framed, record
from tests.support.registered import event as avro_event

FIELDS = [field("id", "int64", doc="number"), field("n", "int32"), field("x", "string", doc=" ")]


def comments(decoded: Decoded) -> list[Comments]:
    assert not decoded.rejected
    return [schema_change.comments for schema_change in decoded.schema_changes]


def documented(payload: bytes, doc: str | None = "all items") -> bytes:
    message = json.loads(wrapped(payload, FIELDS))
    for image in message["schema"]["fields"][:2]:
        image |= {} if doc is None else {"doc": doc}
    return json.dumps(message).encode()


@pytest.mark.parametrize("decoder", ["native", "python"])
def test_debezium_json_has_them_in_the_schema_of_rows(
    decoder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if decoder == "python":
        monkeypatch.setattr(debezium_json, "native_module", lambda: None)
    data_format = load_data_format("debezium-json")
    rows = [event("c", {"id": n, "n": n, "x": "a"}) for n in range(3)]
    records = chunk([documented(row) for row in rows], [key(id=n) for n in range(3)])
    expected = [Comments("all items", {"id": "number"})]
    assert comments(data_format.decode(records, {}, {})) == expected
    assert comments(data_format.decode(records, {}, {})) == expected
    mixed = chunk([documented(rows[0]), documented(rows[1], "items")], [key(id=0), key(id=1)])
    found = comments(data_format.decode(mixed, {}, {}))
    assert sorted(one.table or "" for one in found) == ["all items", "items"]
    assert comments(data_format.decode(chunk(rows, [key(id=0)] * 3), {}, {})) == []


def test_flat_rows_have_them_in_their_schema() -> None:
    schema = {"type": "struct", "fields": FIELDS, "optional": False, "doc": "all items"}
    message = {"schema": schema, "payload": {"id": 1, "n": 2, "x": None}}
    decoded = load_data_format("debezium-flat-json").decode(
        chunk([json.dumps(message).encode()], [key(id=1)]), {}, {}
    )
    assert comments(decoded) == [Comments("all items", {"id": "number"})]


AVRO = [
    {"name": "id", "type": "long", "doc": "number"},
    {"name": "n", "type": ["null", {"type": "int", "connect.doc": "amount"}]},
    {"name": "m", "type": "string", "connect.doc": "text", "default": ""},
]
AVRO_COMMENTS = {"id": "number", "n": "amount", "m": "text"}


@pytest.mark.parametrize("data_format", ["avro", "debezium-avro"])
def test_avro_has_them_as_doc(data_format: str) -> None:
    registry, row = Registered(), {"id": 1, "n": 2, "m": ""}
    schema: Any = {**dict(record("Item", AVRO)), "doc": "all items"}  # type: ignore[arg-type]
    if data_format == "debezium-avro":
        schema = json.loads(json.dumps(envelope(AVRO)))
        schema["fields"][0]["type"][1]["doc"] = "all items"
        row = avro_event("c", row)
    values = registry.avro(schema, row)
    keys = registry.avro(record("Key", [{"name": "id", "type": "long"}]), {"id": 1})
    decoder = load_data_format(data_format, FormatSettings(schemas=registry))
    decoded = decoder.decode(chunk_of(values, keys), {}, {})
    assert comments(decoded) == [Comments("all items", AVRO_COMMENTS)]


PROTO = """
syntax = "proto3";
// A licence.

// All items,
// old and new.
message Item {  // not of a field
  // Number.
  int64 id = 1;
  int32 n = 2 [deprecated = true]; // Amount.

  /* Detached. */

  string plain = 3;
  /**
   * Text of
   * two lines.
   */
  optional string m = 4; /* not used */
}
"""


def test_protobuf_has_them_before_or_after_a_field() -> None:
    registry = Registered()
    number = registry.add(PROTO, "PROTOBUF")
    decoder = load_data_format("protobuf", FormatSettings(schemas=registry))
    decoded = decoder.decode(chunk_of([framed(number, b"\0\x08\x01")]), {}, {})
    columns = {"id": "Number.", "n": "Amount.", "m": "Text of\ntwo lines."}
    assert comments(decoded) == [Comments("All items,\nold and new.", columns)]


@pytest.mark.parametrize("kind", ["CREATE", "ALTER"])
def test_schema_change_events_have_them_if_the_connector_sends_them(kind: str) -> None:
    columns = [{"name": "id", "comment": "number"}, {"name": "n", "comment": None}, {"name": "m"}]
    change = {"type": kind, "id": '"inv"."item"', "table": {"columns": columns, "comment": "all"}}
    document = {
        "source": {"file": "bin.1", "pos": 4},
        "databaseName": "inv",
        "ddl": "ALTER TABLE item COMMENT 'all'",
        "tableChanges": [change, {**change, "table": {"columns": [{"name": "id"}]}}],
    }
    (found,) = ddl_events(json.dumps(document).encode())
    assert (found.columns, found.comments) == ((), Comments("all", {"id": "number"}))
    at = found.at(chunk([b"{}"]), 0)
    assert (str(at.source), at.comments) == ("inv.item", found.comments)


def test_long_comments_are_cut_and_other_values_are_none() -> None:
    found = Comments.of(7, [("a", "x" * (MAX_COMMENT + 1)), ("b", ["text"]), ("c", " text ")])
    assert found == Comments(None, {"a": "x" * MAX_COMMENT, "c": "text"})
    assert not Comments.of(None, [("a", "")])
    assert Comments("a") and Comments(None, {"a": "b"})
