from decimal import Decimal

import pytest

from ingestd.errors import FormatError
from ingestd.paimon.spec.binary_row import (
    EMPTY_ROW,
    deserialize_row,
    encode_array,
    encode_row,
    serialize_row,
    unscaled,
)
from ingestd.paimon.spec.data_types import DataField, DataType, RowKind, parse_type
from tests.support.format_vectors import vector_type, vector_value, vectors
from tests.support.typed_cells import same

ROWS = vectors("binary_rows")


def cells(row: dict[str, list[object]]) -> tuple[list[DataType], list[object]]:
    types = [vector_type(str(text)) for text in row["types"]]
    return types, [vector_value(t, raw) for t, raw in zip(types, row["values"], strict=True)]


@pytest.mark.parametrize("row", ROWS, ids=[row["name"] for row in ROWS])
def test_rows_have_the_bytes_that_java_gives_them(row: dict[str, list[object]]) -> None:
    types, values = cells(row)
    assert encode_row(types, values).hex() == row["bytes"]
    assert serialize_row(types, values).hex() == row["serialized"]


@pytest.mark.parametrize("row", ROWS, ids=[row["name"] for row in ROWS])
def test_rows_of_java_are_read_back(row: dict[str, list[object]]) -> None:
    types, values = cells(row)
    assert same(deserialize_row(types, bytes.fromhex(str(row["serialized"]))), tuple(values))


def test_row_kind_stands_in_front() -> None:
    expected = vectors("row_kind_header")
    assert {kind.symbol: int(kind) for kind in RowKind} == {
        symbol: header["byte"] for symbol, header in expected.items()
    }
    assert encode_row([DataType("INT")], [1]).hex() == expected["+I"]["bytes"]


def test_arrays_have_the_bytes_that_java_gives_them() -> None:
    for array in vectors("binary_arrays_long"):
        assert encode_array(DataType("BIGINT"), array["values"]).hex() == array["bytes"]


def test_empty_row_is_twelve_zeros() -> None:
    assert serialize_row([], []) == EMPTY_ROW == bytes(12)


def test_rows_and_maps_may_be_given_as_mappings() -> None:
    row = DataType("ROW", fields=(DataField(0, "a", DataType("INT")),
                                  DataField(1, "b", DataType("STRING"))))  # fmt: skip
    mapping = DataType("MAP", key=DataType("STRING"), value=row)
    by_name = encode_row([mapping], [{"x": {"b": "t", "a": 1}}])
    assert by_name == encode_row([mapping], [[("x", (1, "t"))]])


def test_negative_nan_is_written_as_javas_nan() -> None:
    negative = -float("nan")
    assert encode_row([DataType("DOUBLE")], [negative])[8:].hex() == "000000000000f87f"
    assert encode_row([DataType("FLOAT")], [negative])[8:].hex() == "0000c07f00000000"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("INT", "1"), ("INT", 1 << 31), ("TINYINT", 128), ("STRING", 3), ("BYTES", "a"),
        ("DECIMAL(3, 1)", Decimal("1.25")), ("DECIMAL(3, 1)", Decimal("100")),
        ("DECIMAL(38, 0)", Decimal("NaN")), ("TIMESTAMP(3)", 1.5), ("VARIANT", b""),
        ("DATE", 1 << 31),
    ],
)  # fmt: skip
def test_a_value_that_is_not_of_its_type_is_refused(text: str, value: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        encode_row([parse_type(text)], [value])


def test_a_row_needs_a_value_for_every_type() -> None:
    with pytest.raises(ValueError, match="shorter"):
        encode_row([DataType("INT"), DataType("INT")], [1])


@pytest.mark.parametrize(
    ("types", "data"),
    [
        (["INT"], b""),
        (["INT"], EMPTY_ROW),
        ([], serialize_row([DataType("INT")], [1])),
        (["INT"], serialize_row([DataType("INT")], [1])[:-1]),
        (["STRING"], serialize_row([DataType("STRING")], ["a long text"])[:-8]),
        (["STRING"], serialize_row([DataType("BYTES")], [b"\xff"])),
    ],
)
def test_bytes_that_are_no_row_of_these_types_are_a_format_error(
    types: list[str], data: bytes
) -> None:
    with pytest.raises(FormatError, match="no serialized row"):
        deserialize_row([parse_type(text) for text in types], data)


def test_unscaled_numbers_are_exact_beyond_the_decimal_context() -> None:
    assert unscaled(Decimal("9" * 38), 0) == int("9" * 38)
    assert unscaled(Decimal("-1.5"), 3) == -1500
    assert unscaled(Decimal("1E+5"), 2) == 10_000_000
    assert unscaled(Decimal("1.2300"), 2) == 123
