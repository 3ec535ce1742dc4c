"""Values are cast where they fit, and those that do not are marked."""

from collections.abc import Callable
from datetime import datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ingestd.ingest.values.value_casts import cast_values
from ingestd.paimon.spec.arrow import to_arrow_type
from ingestd.paimon.spec.data_types import DataField, DataType, parse_type

NOON = datetime.fromisoformat("2024-02-29T12:00:00")


@pytest.mark.parametrize(
    ("source", "target", "values", "wanted"),
    [
        ("INT", "STRING", [5, None], ["5", None]),
        ("BOOLEAN", "STRING", [True, False], ["true", "false"]),
        ("DECIMAL(5, 2)", "STRING", [pa.scalar(1, pa.decimal128(5, 2)).as_py()], ["1.00"]),
        ("BIGINT", "DOUBLE", [(1 << 53) + 1], [float(1 << 53)]),
        ("BIGINT", "DECIMAL(4, 2)", [7, -100, None], [Decimal(7), None, None]),
        ("INT", "DECIMAL(12, 2)", [7], [pa.scalar(7, pa.decimal128(12, 2)).as_py()]),
        ("VARBINARY(3)", "VARBINARY(2)", [b"ab", b"abc"], [b"ab", None]),
        ("STRING", "INT", ["5", "x"], [5, None]),
        ("STRING", "INT", ["0x10", "7"], [None, 7]),
        ("DOUBLE", "FLOAT", [1e300, float("-inf"), 1.5, None], [None, float("-inf"), 1.5, None]),
        ("STRING", "FLOAT", ["1e300", "-Infinity", "1.5"], [None, float("-inf"), 1.5]),
        (
            "STRING",
            "TIME(3)",
            ["10:00:00.5", "24:00:00", None],
            [time(10, 0, 0, 500_000), None, None],
        ),
        ("STRING", "TIMESTAMP(3)", ["2024-02-29T12:00:00Z", "x"], [NOON, None]),
        ("STRING", "DATE", ["2024-02-29Z", "2023-02-29"], [NOON.date(), None]),
        ("STRING", "DECIMAL(38, 10)", ["1.5", "9" * 37, "1e40"], [Decimal("1.5"), None, None]),
        ("DECIMAL(38, 2)", "DECIMAL(38, 10)", [Decimal("9" * 36), Decimal(1)], [None, Decimal(1)]),
        ("DECIMAL(10, 2)", "DOUBLE", [Decimal("2728028.80")], [2728028.8]),
        ("STRING", "DOUBLE", ["1e999", "1e300"], [None, 1e300]),
        ("DOUBLE", "DECIMAL(10, 2)", [19.99, 1.239, 1e9, None], [Decimal("19.99"), *[None] * 3]),
        ("FLOAT", "DECIMAL(4, 2)", [0.1, 0.105, float("nan")], [Decimal("0.10"), None, None]),
    ],
)
def test_casts(source: str, target: str, values: list[Any], wanted: list[Any]) -> None:
    from_type, to_type = parse_type(source), parse_type(target)
    column = pa.chunked_array([pa.array(values, to_arrow_type(from_type))])
    cast, failed = cast_values(column, from_type, to_type)
    assert cast.to_pylist() == wanted
    assert failed.tolist() == [
        value is not None and after is None for value, after in zip(values, wanted, strict=True)
    ]


def nested(root: str, part: str) -> DataType:
    """An array, a map or a row with parts of one type."""
    inner = parse_type(part)
    if root == "ARRAY":
        return DataType(root, element=inner)
    if root == "MAP":
        return DataType(root, key=parse_type("STRING").not_null(), value=inner)
    return DataType(root, fields=(DataField(0, "a", inner),))


@pytest.mark.parametrize(
    ("source", "target", "value", "expected"),
    [
        ("DECIMAL(12, 8)", "STRING", Decimal("0.00000001"), "0.00000001"),
        ("BIGINT", "DOUBLE", (1 << 53) + 1, float(1 << 53)),
        ("DOUBLE", "FLOAT", 1e300, None),
        ("STRING", "INT", "0x10", None),
        ("INT", "STRING", None, None),
        ("STRING", "VARCHAR(3)", "abcd", None),
        ("STRING", "VARCHAR(3)", "abc", "abc"),
        ("VARBINARY(9)", "VARBINARY(2)", b"abc", None),
        ("TIMESTAMP(6)", "TIMESTAMP(4)", NOON.replace(microsecond=1), NOON),
    ],
)
@pytest.mark.parametrize(
    ("root", "within"),
    [("ARRAY", lambda part: [part]), ("MAP", lambda part: [("k", part)]),
     ("ROW", lambda part: {"a": part})],
)  # fmt: skip
def test_a_part_of_a_nested_value_is_cast_like_a_column(
    root: str, within: Callable[[Any], Any], source: str, target: str, value: Any, expected: Any
) -> None:
    from_type, to_type = nested(root, source), nested(root, target)
    values = [within(value), None, within(None), within(value)]
    column = pa.chunked_array([pa.array(values, to_arrow_type(from_type)).slice(1)])
    cast, failed = cast_values(column, from_type, to_type)
    cast.validate(full=True)
    fits = value is None or expected is not None
    assert cast.to_pylist() == [None, within(None), within(expected) if fits else None]
    assert failed.tolist() == [False, False, not fits]
    assert cast.type == to_arrow_type(to_type)


def test_the_day_of_a_timestamp_does_not_overflow() -> None:
    """Arrow casts to the day modulo 2^32, which is one in the past."""
    day = 86_400_000
    column = pa.chunked_array([pa.array([-1, (2**31 - 1) * day, 2**31 * day], pa.timestamp("ms"))])
    cast, failed = cast_values(column, parse_type("TIMESTAMP(3)"), DataType("DATE"))
    assert cast.cast(pa.int32()).to_pylist() == [-1, 2**31 - 1, None]
    assert failed.tolist() == [False, False, True]


def test_keys_of_maps_and_parts_of_parts_have_a_length() -> None:
    def maps(key: str) -> DataType:
        inner = DataType("MAP", key=parse_type(key).not_null(), value=parse_type("INT"))
        return DataType("ARRAY", element=inner)

    column = pa.chunked_array(
        [pa.array([[[("abc", 1)]], [[("abcd", 1)]]], to_arrow_type(maps("STRING")))]
    )
    cast, failed = cast_values(column, maps("STRING"), maps("VARCHAR(3)"))
    assert cast.to_pylist() == [[[("abc", 1)]], None]
    assert failed.tolist() == [False, True]


def test_a_nested_null_does_not_fit_not_null_but_the_null_around_it_does() -> None:
    from_type = nested("ROW", "INT")
    to_type = DataType("ROW", fields=(DataField(0, "a", parse_type("BIGINT").not_null()),))
    column = pa.chunked_array([pa.array([{"a": 1}, None, {"a": None}], to_arrow_type(from_type))])
    cast, failed = cast_values(column, from_type, to_type)
    assert cast.to_pylist() == [{"a": 1}, None, None]
    assert failed.tolist() == [False, False, True]


def test_few_bad_values_among_many_are_all_found() -> None:
    values = [str(i) for i in range(1000)]
    bad = {0, 17, 500, 501, 999}
    for i in bad:
        values[i] = "x"
    column = pa.chunked_array([values[:300], values[300:]])
    cast, failed = cast_values(column, DataType("STRING"), DataType("INT"))
    assert set(np.flatnonzero(failed).tolist()) == bad
    assert cast[998].as_py() == 998
