"""sum and product."""

from functools import reduce
from random import Random
from typing import Any

import numpy as np
import pytest

from ingestd.errors import UnsupportedError
from tests.support.merges import aggregate


@pytest.mark.parametrize(
    ("function", "t", "cells", "value"),
    [
        ("sum", "INT", [1, None, 2, (5,)], -2),
        ("sum", "INT", [(5,), (1,)], -6),
        ("sum", "BIGINT", [None, None], None),
        ("sum", "TINYINT", [100, 100], -56),
        ("sum", "BIGINT", [2**63 - 1, 1], -(2**63)),
        ("sum", "DOUBLE", [1e308, 1e308, 5.0], float("inf")),
        ("sum", "FLOAT", [-3e38, -3e38], float("-inf")),
        ("product", "SMALLINT", [300, 300], 24464),
        ("product", "INT", [None, 3, -4], -12),
        ("product", "INT", [-7, (2,)], -3),
        ("product", "INT", [(2,), 5, 2, (3,)], 3),
        ("product", "DOUBLE", [3.0, (2.0,), 4.0], 6.0),
    ],
)
def test_the_value_of_a_key(function: str, t: str, cells: list[Any], value: Any) -> None:
    assert aggregate(function, t, cells) == value


def test_infinities_of_both_signs_have_no_sum() -> None:
    assert np.isnan(aggregate("sum", "DOUBLE", [float("inf"), float("-inf")]))


@pytest.mark.parametrize("count", [3, 63, 64, 65, 1000])
@pytest.mark.parametrize("t", ["FLOAT", "DOUBLE"])
def test_floating_point_numbers_are_added_from_left_to_right(count: int, t: str) -> None:
    kind = np.float32 if t == "FLOAT" else np.float64
    cells = [kind(Random(n).uniform(-1e6, 1e6)) for n in range(count)]
    expected = reduce(lambda a, b: kind(a + b), cells)
    assert aggregate("sum", t, [cell.item() for cell in cells]) == expected.item()


def test_a_factor_of_zero_cannot_be_taken_back() -> None:
    with pytest.raises(UnsupportedError, match="factor 0"):
        aggregate("product", "INT", [1, (0,)])
