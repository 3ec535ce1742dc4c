from decimal import Decimal, localcontext

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestd.errors import UnsupportedError
from ingestd.paimon.spec.arrow import (
    FIELD_ID_KEY,
    arrow_schema,
    cast_exactly,
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


LARGEST = "9" * 38
DIGITS = st.integers(0, 80).flatmap(
    lambda size: st.text("0123456789", min_size=size, max_size=size)
)


@st.composite
def numerals(draw: st.DrawFn) -> str:
    whole, fraction = draw(DIGITS), draw(st.just("") | DIGITS)
    exponent = draw(st.just("") | st.integers(-60, 60).map("e{}".format))
    return f"{draw(st.sampled_from('+- ')).strip()}{whole or '0'}.{fraction}{exponent}"


@given(
    st.lists(numerals() | st.sampled_from([LARGEST, f"-{2**127}", f"0.{LARGEST}"]), max_size=3),
    st.sampled_from([(38, 0), (38, 2), (38, 10), (38, 38), (10, 2), (5, 5)]),
)
def test_casts_to_decimals_are_exact_or_refused(texts: list[str], size: tuple[int, int]) -> None:
    precision, scale = size
    target = pa.decimal128(precision, scale)
    with localcontext(prec=400):
        numbers = [Decimal(text) for text in texts]
        unscaled = [number.scaleb(scale) for number in numbers]
        fits = all(n % 1 == 0 and abs(n) < 10**precision for n in unscaled)
    if fits:
        assert cast_exactly(pa.array(texts, pa.string()), target).to_pylist() == numbers
    else:
        with pytest.raises(pa.ArrowInvalid):
            cast_exactly(pa.array(texts, pa.string()), target)


@given(
    st.integers(-(10**38) + 1, 10**38 - 1) | st.integers(-(10**9), 10**9) | st.just(-(2**127)),
    st.sampled_from([0, 2, 10, 38]),
    st.sampled_from([(38, 0), (38, 2), (38, 10), (38, 38), (10, 2)]),
)
def test_casts_of_decimals_are_exact_or_refused(
    unscaled: int, scale: int, size: tuple[int, int]
) -> None:
    data = pa.py_buffer(unscaled.to_bytes(16, "little", signed=True))
    values = pa.Array.from_buffers(pa.decimal128(38, scale), 1, [None, data])
    with localcontext(prec=400):
        number = Decimal(unscaled).scaleb(-scale)
        wanted = number.scaleb(size[1])
        fits = wanted % 1 == 0 and abs(wanted) < 10 ** size[0]
    if fits:
        assert cast_exactly(values, pa.decimal128(*size)).to_pylist() == [number]
    else:
        with pytest.raises(pa.ArrowInvalid):
            cast_exactly(values, pa.decimal128(*size))
    assert cast_exactly(values, pa.float64()).to_pylist() == [float(number)]
    assert cast_exactly(values, pa.float32()).to_pylist() == [float(np.float32(str(number)))]


@pytest.mark.parametrize("text", ["", " 1", "1_0", "NaN", "abc", "٣", "1e", "1e99999999999999"])
@pytest.mark.parametrize("other", ["1", "1e0"])
def test_what_is_no_number_is_no_decimal(text: str, other: str) -> None:
    with pytest.raises(pa.ArrowInvalid):
        cast_exactly(pa.array([text, other]), pa.decimal128(10, 2))
