import pyarrow as pa
import pytest

from ingestd.errors import UnsupportedError
from ingestd.paimon.spec.arrow import (
    FIELD_ID_KEY,
    arrow_schema,
    column_of,
    column_values,
    from_arrow_type,
    to_arrow_type,
)
from ingestd.paimon.spec.data_types import DataField, DataType, parse_type

ROW = {"type": "ROW", "fields": [{"id": 29, "name": "a", "type": "INT NOT NULL"}]}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("BOOLEAN", pa.bool_()),
        ("TINYINT", pa.int8()),
        ("SMALLINT", pa.int16()),
        ("INT", pa.int32()),
        ("BIGINT", pa.int64()),
        ("FLOAT", pa.float32()),
        ("DOUBLE", pa.float64()),
        ("DECIMAL(10, 2)", pa.decimal128(10, 2)),
        ("CHAR(5)", pa.string()),
        ("VARCHAR(5)", pa.string()),
        ("STRING", pa.string()),
        ("BINARY(5)", pa.binary()),
        ("BYTES", pa.binary()),
        ("DATE", pa.date32()),
        ("TIME(6)", pa.time32("ms")),
        ("TIMESTAMP(0)", pa.timestamp("ms")),
        ("TIMESTAMP(3)", pa.timestamp("ms")),
        ("TIMESTAMP(4)", pa.timestamp("us")),
        ("TIMESTAMP(6)", pa.timestamp("us")),
        ("TIMESTAMP(7)", pa.timestamp("ns")),
        ("TIMESTAMP_LTZ(3)", pa.timestamp("ms", "UTC")),
        ("TIMESTAMP_LTZ(6)", pa.timestamp("us", "UTC")),
        ({"type": "ARRAY", "element": "INT"}, pa.list_(pa.field("element", pa.int32()))),
        ({"type": "MAP", "key": "INT", "value": "STRING"}, pa.map_(pa.int32(), pa.string())),
        (ROW, pa.struct([pa.field("a", pa.int32(), nullable=False)])),
    ],
)
def test_types_have_the_arrow_form_of_their_precision(text: str, expected: pa.DataType) -> None:
    assert to_arrow_type(parse_type(text)) == expected


def test_a_multiset_is_a_map_of_counts_and_a_variant_a_pair_of_bytes() -> None:
    multiset = to_arrow_type(parse_type({"type": "MULTISET", "element": "STRING"}))
    assert (multiset.key_type, multiset.item_type) == (pa.string(), pa.int32())
    assert not multiset.item_field.nullable
    parts = [pa.field(name, pa.binary(), nullable=False) for name in ("value", "metadata")]
    assert to_arrow_type(parse_type("VARIANT")) == pa.struct(parts)


def test_types_without_arrow_form_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match="VECTOR"):
        to_arrow_type(parse_type({"type": "VECTOR", "element": "INT", "length": 2}))


def ids(schema: pa.Schema) -> list[int]:
    found = []

    def visit(field: pa.Field) -> None:
        found.append(int(field.metadata[FIELD_ID_KEY]))
        t = field.type
        children = (
            [t.key_field, t.item_field]
            if pa.types.is_map(t)
            else [t.field(i) for i in range(t.num_fields)]
        )
        for child in children:
            visit(child)

    for field in schema:
        visit(field)
    return found


def test_ids_of_columns_and_of_all_that_is_inside_them_are_javas() -> None:
    array = DataType("ARRAY", element=DataType("ARRAY", element=DataType("INT")))
    mapping = DataType("MAP", key=DataType("INT"), value=parse_type(ROW))
    fields = [DataField(25, "c_arr", array), DataField(26, "c_map", mapping)]
    base = 536870911
    assert ids(arrow_schema(fields)) == [
        25, base + 25 * 1024 + 1, base + 25 * 1024 + 2,
        26, base - 26 * 1024 - 1, base + 26 * 1024 + 1, 29,
    ]  # fmt: skip


def test_schema_keeps_names_and_nullability() -> None:
    schema = arrow_schema([DataField(0, "k", parse_type("INT NOT NULL")),
                           DataField(1, "v", parse_type("STRING"))])  # fmt: skip
    assert schema.names == ["k", "v"]
    assert [field.nullable for field in schema] == [False, True]


@pytest.mark.parametrize(
    ("arrow_type", "text"),
    [
        (pa.large_string(), "STRING"),
        (pa.timestamp("s"), "TIMESTAMP(0)"),
        (pa.timestamp("ns", "UTC"), "TIMESTAMP(9) WITH LOCAL TIME ZONE"),
        (pa.decimal128(38, 10), "DECIMAL(38, 10)"),
        (pa.time32("ms"), "TIME(3)"),
        (pa.list_(pa.int8()), "ARRAY<TINYINT>"),
        (pa.map_(pa.string(), pa.date32()), "MAP<STRING NOT NULL, DATE>"),
        (pa.struct({"x": pa.float32()}), "ROW<`x` FLOAT>"),
    ],
)
def test_arrow_types_have_a_paimon_type(arrow_type: pa.DataType, text: str) -> None:
    assert str(from_arrow_type(arrow_type)) == text


@pytest.mark.parametrize(
    "arrow_type",
    [pa.uint8(), pa.decimal256(50, 2), pa.time64("us"), pa.float16(), pa.decimal128(3, -2)],
)
def test_arrow_types_that_lose_values_are_refused(arrow_type: pa.DataType) -> None:
    with pytest.raises(UnsupportedError, match="has no Paimon type"):
        from_arrow_type(arrow_type)


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("DATE", [-2147472692, 2147483647, None]),
        ("TIMESTAMP(3)", [-(1 << 63), (1 << 63) - 1, None]),
        ("TIMESTAMP_LTZ(6)", [-(1 << 63), 0]),
        ("TIME(3)", [0, 86_399_999]),
    ],
)
def test_times_outside_the_calendar_of_python_are_whole_numbers(
    text: str, cells: list[object]
) -> None:
    column = column_of(cells, parse_type(text))
    assert column.type == to_arrow_type(parse_type(text))
    assert column_values(column) == cells


def test_times_inside_nested_columns_are_whole_numbers_too() -> None:
    struct = pa.struct({"d": pa.date32(), "m": pa.map_(pa.string(), pa.timestamp("us"))})
    column = pa.array([[{"d": 1, "m": [("a", 2)]}], None], pa.list_(struct))
    assert column_values(pa.chunked_array([column])) == [[{"d": 1, "m": [("a", 2)]}], None]
