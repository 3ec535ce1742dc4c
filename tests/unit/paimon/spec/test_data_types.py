from typing import Any

import pytest

from ingestd.errors import FormatError
from ingestd.paimon.spec.data_types import (
    DataField,
    DataType,
    RowKind,
    encode_field,
    encode_type,
    max_field_id,
    parse_field,
    parse_type,
    walk_types,
)
from tests.support.format_vectors import vectors


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("INT", DataType("INT")),
        ("INT NOT NULL", DataType("INT", nullable=False)),
        ("integer", DataType("INT")),
        ("DECIMAL(10,2)", DataType("DECIMAL", precision=10, scale=2)),
        ("NUMERIC( 10 , 2 ) NOT NULL", DataType("DECIMAL", False, precision=10, scale=2)),
        ("DECIMAL", DataType("DECIMAL", precision=10, scale=0)),
        ("STRING", DataType("STRING")),
        ("VARCHAR(2147483647)", DataType("STRING")),
        ("VARBINARY(2147483647)", DataType("BYTES")),
        ("VARCHAR(20)", DataType("VARCHAR", length=20)),
        ("CHAR", DataType("CHAR", length=1)),
        ("TIME", DataType("TIME", precision=0)),
        ("TIMESTAMP", DataType("TIMESTAMP", precision=6)),
        ("TIMESTAMP(3) WITHOUT TIME ZONE", DataType("TIMESTAMP", precision=3)),
        ("TIMESTAMP(3) WITH LOCAL TIME ZONE", DataType("TIMESTAMP_LTZ", precision=3)),
        ("TIMESTAMP WITH LOCAL TIME ZONE NOT NULL", DataType("TIMESTAMP_LTZ", False, precision=6)),
        ("TIMESTAMP_LTZ(9)", DataType("TIMESTAMP_LTZ", precision=9)),
        ("DOUBLE PRECISION", DataType("DOUBLE")),
        ({"type": "ARRAY NOT NULL", "element": "INT"},
         DataType("ARRAY", False, element=DataType("INT"))),
        ({"type": "MULTISET", "element": "INT"}, DataType("MULTISET", element=DataType("INT"))),
        ({"type": "VECTOR", "element": "FLOAT", "length": 3},
         DataType("VECTOR", element=DataType("FLOAT"), length=3)),
    ],
)  # fmt: skip
def test_types_are_read_as_java_reads_them(text: Any, expected: DataType) -> None:
    assert parse_type(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "INT", "BOOLEAN NOT NULL", "DECIMAL(10, 2)", "CHAR(5) NOT NULL", "VARCHAR(20)", "STRING",
        "BINARY(4)", "VARBINARY(10)", "BYTES", "DATE", "TIME(3)", "TIMESTAMP(0)",
        "TIMESTAMP(6) WITH LOCAL TIME ZONE NOT NULL", "VARIANT", "BLOB", "TINYINT", "DOUBLE",
    ],
)  # fmt: skip
def test_types_are_written_as_java_writes_them(text: str) -> None:
    assert encode_type(parse_type(text)) == text


def test_fields_of_java_schemas_come_back_to_the_letter() -> None:
    for schema in vectors("schema_json_examples"):
        for field in schema["fields"]:
            assert encode_field(parse_field(field)) == field


@pytest.mark.parametrize(
    "text",
    ["", "INT(3)", "NUMBER", "DECIMAL(39, 0)", "DECIMAL(2, 3)", "TIMESTAMP(10)", "ARRAY<INT>",
     "INT NOT", "TIME(3) WITH LOCAL TIME ZONE", {"type": "ROW"}, {"type": "MAP", "key": "INT"},
     {"type": "ARRAY"}, {}, None, 7],
)  # fmt: skip
def test_what_is_no_type_is_a_format_error(text: Any) -> None:
    with pytest.raises(FormatError, match="cannot be understood"):
        parse_type(text)


@pytest.mark.parametrize("field", [{}, {"id": 1, "name": "a"}, {"id": "x", "name": "a", "type": 1}])
def test_what_is_no_field_is_a_format_error(field: dict[str, object]) -> None:
    with pytest.raises(FormatError):
        parse_field(field)


@pytest.mark.parametrize("root", ["INTEGER", "", "ARRAY", "MAP"])
def test_a_type_that_no_table_can_have_cannot_be_built(root: str) -> None:
    with pytest.raises(ValueError, match="no such data type"):
        DataType(root)


def test_ids_and_types_are_found_inside_nested_types() -> None:
    inner = DataType("ROW", fields=(DataField(9, "x", DataType("INT")),))
    outer = DataType("MAP", key=DataType("STRING"), value=DataType("ARRAY", element=inner))
    assert max_field_id((DataField(3, "m", outer),)) == 9
    assert max_field_id(()) == -1
    assert [t.root for t in walk_types(outer)] == ["MAP", "STRING", "ARRAY", "ROW", "INT"]
    assert str(outer) == "MAP<STRING, ARRAY<ROW<`x` INT>>>"


def test_nullability_changes_nothing_else() -> None:
    t = parse_type("DECIMAL(10, 2)")
    assert str(t.not_null()) == "DECIMAL(10, 2) NOT NULL"
    assert t.not_null().as_nullable() == t


def test_row_kinds_have_the_bytes_and_symbols_of_the_format() -> None:
    assert [(int(kind), kind.symbol) for kind in RowKind] == [
        (0, "+I"), (1, "-U"), (2, "+U"), (3, "-D"),
    ]  # fmt: skip
