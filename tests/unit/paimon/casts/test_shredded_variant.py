"""VARIANT values in parts, put together again."""

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from ingestd.errors import FormatError
from ingestd.paimon.casts.rows_json import variant_text
from ingestd.paimon.casts.shredded_variant import whole_variants

NAMES = b"\x01\x03\x00\x01\x02\x03abc"
"""Metadata with the names a, b and c."""


def _text(typed: pa.DataType, cell: object, value: bytes | None = None) -> str:
    kind: Any = pa.struct(
        [("metadata", pa.binary()), ("value", pa.binary()), ("typed_value", typed)]
    )
    rows = [{"metadata": NAMES, "value": value, "typed_value": cell}, None]
    first, second = whole_variants(pa.array(rows, kind)).to_pylist()
    assert second is None
    return variant_text(first["value"], first["metadata"])


@pytest.mark.parametrize(
    ("kind", "cell", "text"),
    [
        (pa.int8(), -1, "-1"), (pa.int64(), 1 << 40, "1099511627776"), (pa.int32(), 300, "300"),
        (pa.int32(), 70000, "70000"), (pa.bool_(), True, "true"), (pa.bool_(), False, "false"),
        (pa.float32(), 1.5, "1.5"), (pa.float64(), -2.25, "-2.25"), (pa.string(), "x", '"x"'),
        (pa.string(), "y" * 64, f'"{"y" * 64}"'), (pa.binary(), b"\0", '"AA=="'),
        (pa.decimal128(9, 2), Decimal("1.25"), "1.25"),
        (pa.decimal128(38, 3), Decimal("-12345678901234567890.125"), "-12345678901234567890.125"),
        (pa.decimal128(18, 0), Decimal(12345678901), "12345678901"),
        (pa.date32(), datetime.date(2024, 2, 29), '"2024-02-29"'),
        (pa.timestamp("us"), datetime.datetime(2024, 1, 1, 1), '"2024-01-01 01:00:00"'),  # noqa: DTZ001
        (pa.list_(pa.struct([("value", pa.binary()), ("typed_value", pa.int8())])),
         [{"value": None, "typed_value": 1}, {"value": b"\0", "typed_value": None}], "[1,null]"),
    ],
)  # fmt: skip
def test_typed_values_are_encoded(kind: pa.DataType, cell: object, text: str) -> None:
    assert _text(kind, cell) == text
    assert _text(kind, None, b"\x04") == "true"


def test_fields_of_both_parts_are_one_object() -> None:
    field = pa.struct([("value", pa.binary()), ("typed_value", pa.int8())])
    kind = pa.struct([("c", field), ("a", field)])
    cell = {"c": {"value": None, "typed_value": 3}, "a": {"value": None, "typed_value": None}}
    rest = b"\x02\x01\x01\x00\x01\x08"
    assert _text(kind, cell, rest) == '{"b":false,"c":3}'
    assert _text(kind, cell) == '{"c":3}'
    for damaged in (b"\x04", rest[:3], b"\x02\x01\x07\x00\x01\x08"):
        with pytest.raises(FormatError, match="a shredded VARIANT is damaged"):
            _text(kind, cell, damaged)


def test_a_value_without_parts_is_damaged() -> None:
    with pytest.raises(FormatError, match="a value is missing"):
        _text(pa.int8(), None)
