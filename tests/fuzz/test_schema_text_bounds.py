"""Schema texts from outside are read in linear time: each of these would take hours otherwise."""

import json
from typing import Any

import pytest

from ingestd.cdc.avro.nodes import AvroSchemaError, parse_avro
from ingestd.cdc.columns.mysql_types import mysql_column
from ingestd.cdc.columns.wire_column import Meaning
from ingestd.cdc.ddl.alter_text import ColumnChange, added_columns, renames_and_drops
from ingestd.cdc.ddl.schema_events import ddl_events
from ingestd.cdc.protobuf.proto_schema import ProtobufSchemaError, parse_protobuf

MANY = 1_000_000
PROTOBUF: dict[str, tuple[str, str]] = {
    "comments without an end": ("/*a" * MANY, "a comment without an end"),
    "strings without an end": ('"' + '\\"' * MANY, "a string without an end"),
    "other strings without an end": ("'" + "\\'" * MANY, "a string without an end"),
    "a package of many parts": (
        f"package {'a.' * MANY}a; message M {{ {'x y = 1; ' * 1000} }}",
        "a name of 2000001 characters",
    ),
    "a package of many words": ("package " + "a." * 200 + "a; message M {}", "too deep"),
    "names within long names": ("message " + "a" * 400 + "{ message " + "b" * 400 + "{}}", "long"),
}


@pytest.mark.parametrize("text", PROTOBUF)
def test_protobuf_that_has_no_end_or_no_bounds_is_refused(text: str) -> None:
    schema, reason = PROTOBUF[text]
    with pytest.raises(ProtobufSchemaError, match=reason):
        parse_protobuf(schema)


def test_protobuf_strings_and_comments_end_where_they_end() -> None:
    text = """/* a "b */ syntax = 'proto3'; // "
    option x = "\\"/*"; message M { string a = 1 [(o) = '\\'}', (p) = "*/"]; }"""
    (field,) = parse_protobuf(text).messages["M"]
    assert (field.name, field.number) == ("a", 1)


STATEMENTS = {
    "comments": "/*a" * MANY,
    "strings": "'" + "\\'" * MANY,
    "quoted": '"' + '\\"' * MANY,
    "backticks": "`" * (2 * MANY + 1),
}


@pytest.mark.parametrize("text", STATEMENTS)
def test_statements_without_an_end_prove_what_is_before(text: str) -> None:
    statement = f"ALTER TABLE t DROP a, ADD b INT, {STATEMENTS[text]}"
    assert renames_and_drops(statement) == [ColumnChange("a", None)]
    assert added_columns(statement) == ["b"]


def test_types_of_mysql_without_an_end_are_read_at_once() -> None:
    assert mysql_column("x", "a" * MANY + "(", frozenset()).data_type.root == "STRING"
    assert mysql_column("x", "a" + " " * MANY + "(", frozenset()).data_type.root == "STRING"
    column = mysql_column("x", "enum('a','" + "\\'" * MANY + ")", frozenset())
    assert column.meaning is Meaning.ENUM and column.labels[0] == "a"


@pytest.mark.parametrize(("tables", "proven"), [(2, 2), (20_000, 0)])
def test_an_event_of_many_tables_and_changes_is_not_compared(tables: int, proven: int) -> None:
    change = {"id": '"d"."t"', "type": "ALTER", "table": {"columns": [{"name": "x"}]}}
    ddl = "ALTER TABLE t " + ", ".join(f"DROP c{index}" for index in range(tables))
    event = {"source": {}, "ddl": ddl, "databaseName": "d", "tableChanges": [change] * tables}
    found = ddl_events(json.dumps(event).encode())
    assert len(found) == proven


def enum_used(symbols: int, times: int) -> dict[str, Any]:
    kind = {"type": "enum", "name": "E", "symbols": [f"s{index}" for index in range(symbols)]}
    fields = [{"name": f"f{index}", "type": "E" if index else kind} for index in range(times)]
    return {"type": "record", "name": "R", "fields": fields}


def test_avro_whose_names_or_symbols_multiply_is_refused() -> None:
    assert len(parse_avro(json.dumps(enum_used(1_000, 100))).children) == 100
    with pytest.raises(AvroSchemaError, match="too many symbols"):
        parse_avro(json.dumps(enum_used(100_000, 10_000)))
    fields = [
        {"name": f"f{index}", "type": {"type": "record", "name": f"R{index}", "fields": []}}
        for index in range(9_000)
    ]
    long = {"type": "record", "name": "R", "namespace": "n" * 100_000, "fields": fields}
    with pytest.raises(AvroSchemaError, match="a name of more than 1000 characters"):
        parse_avro(json.dumps(long))
