"""Values are cast where they fit, and those that do not are marked."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ingestd.ingest.values.value_casts import cast_values
from ingestd.paimon.spec.arrow import to_arrow_type
from ingestd.paimon.spec.data_types import DataType, parse_type


@pytest.mark.parametrize(
    ("source", "target", "values", "wanted"),
    [
        ("INT", "STRING", [5, None], ["5", None]),
        ("BOOLEAN", "STRING", [True, False], ["true", "false"]),
        ("DECIMAL(5, 2)", "STRING", [pa.scalar(1, pa.decimal128(5, 2)).as_py()], ["1.00"]),
        ("BIGINT", "DOUBLE", [(1 << 53) + 1], [float(1 << 53)]),
        ("INT", "DECIMAL(12, 2)", [7], [pa.scalar(7, pa.decimal128(12, 2)).as_py()]),
        ("VARBINARY(3)", "VARBINARY(2)", [b"ab", b"abc"], [b"ab", None]),
        ("STRING", "INT", ["5", "x"], [5, None]),
        ("STRING", "INT", ["0x10", "7"], [None, 7]),
        ("DOUBLE", "FLOAT", [1e300, float("-inf"), 1.5, None], [None, float("-inf"), 1.5, None]),
        ("STRING", "FLOAT", ["1e300", "-Infinity", "1.5"], [None, float("-inf"), 1.5]),
        ("STRING", "DOUBLE", ["1e999", "1e300"], [None, 1e300]),
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


def test_few_bad_values_among_many_are_all_found() -> None:
    values = [str(i) for i in range(1000)]
    bad = {0, 17, 500, 501, 999}
    for i in bad:
        values[i] = "x"
    column = pa.chunked_array([values[:300], values[300:]])
    cast, failed = cast_values(column, DataType("STRING"), DataType("INT"))
    assert set(np.flatnonzero(failed).tolist()) == bad
    assert cast[998].as_py() == 998
