"""Types, promotions and bounds in the forms of Iceberg."""

from decimal import Decimal
from typing import Any

import pytest

from ingestd.errors import UnsupportedError
from ingestd.paimon.iceberg.iceberg_types import (
    avro_value,
    bound,
    bound_order,
    column_bounds,
    refuse_unreadable,
    schema_document,
)
from ingestd.paimon.spec.data_types import DataField, parse_type
from ingestd.paimon.spec.schema import TableSchema


def schema(number: int, *types: Any) -> TableSchema:
    fields = tuple(DataField(at, f"c{at}", parse_type(t)) for at, t in enumerate(types))
    return TableSchema(number, fields, len(types))


@pytest.mark.parametrize(
    ("paimon", "iceberg"),
    [
        ("BOOLEAN", "boolean"), ("TINYINT", "int"), ("SMALLINT", "int"), ("INT", "int"),
        ("BIGINT", "long"), ("FLOAT", "float"), ("DOUBLE", "double"), ("DATE", "date"),
        ("CHAR(3)", "string"), ("VARCHAR(3)", "string"), ("STRING", "string"),
        ("BINARY(3)", "binary"), ("BYTES", "binary"), ("DECIMAL(10, 2)", "decimal(10, 2)"),
        ("TIMESTAMP(3)", "timestamp"), ("TIMESTAMP(6)", "timestamp"),
        ("TIMESTAMP(6) WITH LOCAL TIME ZONE", "timestamptz"),
    ],
)  # fmt: skip
def test_primitive_types_have_the_names_of_iceberg(paimon: str, iceberg: str) -> None:
    (field,) = schema_document(schema(0, paimon))["fields"]
    assert field == {"id": 0, "name": "c0", "required": False, "type": iceberg}


def test_nested_types_have_the_ids_of_the_data_files() -> None:
    nested = {
        "type": "MAP", "key": "STRING NOT NULL",
        "value": {"type": "ARRAY", "element": {
            "type": "ROW", "fields": [{"id": 7, "name": "x", "type": "INT NOT NULL"}]}},
    }  # fmt: skip
    document = schema_document(schema(3, "INT NOT NULL", nested))
    assert document["schema-id"] == 3
    assert document["fields"][0]["required"] is True
    assert document["fields"][1]["type"] == {
        "type": "map", "key-id": 536870911 - 1025, "key": "string",
        "value-id": 536870911 + 1025, "value-required": False,
        "value": {
            "type": "list", "element-id": 536870911 + 1026, "element-required": False,
            "element": {
                "type": "struct",
                "fields": [{"id": 7, "name": "x", "required": True, "type": "int"}],
            },
        },
    }  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("INT", "BIGINT"), ("TINYINT", "INT"), ("SMALLINT", "BIGINT"), ("FLOAT", "DOUBLE"),
        ("DECIMAL(5, 2)", "DECIMAL(9, 2)"), ("VARCHAR(2)", "STRING"),
        ("TIMESTAMP(3)", "TIMESTAMP(6)"), ("INT", "INT NOT NULL"),
        ({"type": "ARRAY", "element": "INT"}, {"type": "ARRAY", "element": "BIGINT"}),
    ],
)  # fmt: skip
def test_promotions_of_iceberg_are_readable(old: Any, new: Any) -> None:
    refuse_unreadable(schema(0, old), schema(1, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("INT", "STRING"), ("BIGINT", "INT"), ("INT", "DOUBLE"), ("DATE", "TIMESTAMP(3)"),
        ("DECIMAL(5, 2)", "DECIMAL(9, 3)"), ("DECIMAL(5, 2)", "DECIMAL(4, 2)"),
        ("STRING", "BYTES"),
        ({"type": "ARRAY", "element": "INT"}, {"type": "ARRAY", "element": "STRING"}),
        ({"type": "ARRAY", "element": "INT"}, "STRING"),
    ],
)  # fmt: skip
def test_other_changes_are_refused_with_the_column(old: Any, new: Any) -> None:
    with pytest.raises(UnsupportedError, match="column 'c0'"):
        refuse_unreadable(schema(0, old), schema(1, new))
    refuse_unreadable(schema(0, "INT", "INT"), schema(1, "INT"))


@pytest.mark.parametrize(
    ("paimon", "values", "first"),
    [
        ("INT", [-5, 3], b"\xfb\xff\xff\xff"), ("TINYINT", [-5, 3], b"\xfb\xff\xff\xff"),
        ("BIGINT", [-1, 2**40], b"\xff" * 8), ("DATE", [-1, 19000], b"\xff" * 4),
        ("BOOLEAN", [False, True], b"\x00"), ("STRING", ["Z", "é", "\U00010000"], b"Z"),
        ("DOUBLE", [-2.5, 1.0], b"\x00\x00\x00\x00\x00\x00\x04\xc0"),
        ("DECIMAL(9, 2)", [Decimal("-1.28"), Decimal("1.29")], b"\x80"),
        ("TIMESTAMP(3)", [-1, 5], (-1000).to_bytes(8, "little", signed=True)),
        ("TIMESTAMP(6)", [-1, 5], b"\xff" * 8),
    ],
)  # fmt: skip
def test_bounds_have_the_bytes_and_the_order_of_iceberg(
    paimon: str, values: list[Any], first: bytes
) -> None:
    t = parse_type(paimon)
    bounds = [bound(t, avro_value(t, value)) for value in values]
    assert bounds[0] == first
    mixed = [*bounds[1:], bounds[0]]
    assert sorted(mixed, key=lambda data: bound_order(t, data)) == bounds


@pytest.mark.parametrize("millis", [2**62, -(2**62), 2**63 - 1])
def test_a_timestamp_that_iceberg_does_not_have_has_no_bound(millis: int) -> None:
    fields = {
        "t": DataField(0, "t", parse_type("TIMESTAMP(3)")),
        "n": DataField(1, "n", parse_type("BIGINT")),
    }
    assert column_bounds(fields, ["t", "n"], [millis, millis], ["t", "n"]).keys() == {1}
    assert column_bounds(fields, ["t", "n"], [-1, None], ["t"]).keys() == {0}
