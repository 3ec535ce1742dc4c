"""Comparisons of columns: NaN and zeros are those of PostgreSQL and Spark, null stays null."""

import math
import operator

import pyarrow as pa
import pytest

from ingestd.ingest.computed.expressions import comparisons
from tests.support.sql_values import values

NAN = float("nan")
NUMBERS = [NAN, float("inf"), 1.5, 0.0, -0.0, -1.0, float("-inf"), None]
COMPARISONS = {
    "=": (comparisons.equal, operator.eq),
    "<>": (comparisons.not_equal, operator.ne),
    "<": (comparisons.less, operator.lt),
    "<=": (comparisons.less_equal, operator.le),
    ">": (comparisons.greater, operator.gt),
    ">=": (comparisons.greater_equal, operator.ge),
}


def rank(number: float) -> tuple[bool, float]:
    """The place of a number in the order: NaN is the last one."""
    return (True, 0.0) if math.isnan(number) else (False, number)


PAIRS = [(one, other) for one in NUMBERS for other in NUMBERS]


@pytest.mark.parametrize("arrow_type", [pa.float32(), pa.float64()])
@pytest.mark.parametrize("sign", COMPARISONS)
def test_nan_is_equal_to_itself_and_greater_than_all_numbers(
    sign: str, arrow_type: pa.DataType
) -> None:
    compare, plain = COMPARISONS[sign]
    wanted = [
        None if one is None or other is None else plain(rank(one), rank(other))
        for one, other in PAIRS
    ]
    left, right = (pa.array(column, arrow_type) for column in zip(*PAIRS, strict=True))
    assert compare(left, right).to_pylist() == wanted


FLOATS = {
    "f": ("DOUBLE", [NAN, 1.5, NAN, -0.0, None]),
    "g": ("DOUBLE", [NAN, NAN, 1.0, 0.0, NAN]),
}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("f in (g, 7e0)", [True, False, False, True, None]),
        ("f is not distinct from g", [True, False, False, True, False]),
        ("f between 1 and g", [True, True, False, False, None]),
        ("case f when g then 1 else 0 end", [1, 0, 0, 1, 0]),
        ("nullif(f, g) is null", [True, False, False, True, True]),
        ("greatest(f, g) > 1e300", [True, True, True, False, True]),
        ("greatest(g, f) > 1e300", [True, True, True, False, True]),
        ("least(f, g) > 1e300", [True, False, False, False, True]),
        ("least(g, f) > 1e300", [True, False, False, False, True]),
    ],
)
def test_all_functions_that_compare_have_the_order(text: str, wanted: list[object]) -> None:
    assert values(text, FLOATS) == wanted
