"""Functions that pick one of the values."""

from typing import Any

import pytest

from tests.support.merges import aggregate

NAN = float("nan")


@pytest.mark.parametrize(
    ("function", "t", "cells", "value"),
    [
        ("last_value", "INT", [1, None], None),
        ("last_value", "INT", [1, (2,)], None),
        ("last_non_null_value", "STRING", ["a", None, "b", None], "b"),
        ("last_non_null_value", "INT", [1, (None,)], 1),
        ("last_non_null_value", "INT", [1, (1,)], None),
        ("first_value", "INT", [None, 1], None),
        ("first_non_null_value", "INT", [None, 1, 2], 1),
        ("first_not_null_value", "INT", [None, 3], 3),
        ("max", "STRING", ["b", None, "é", "z"], "é"),
        ("min", "DATE", [3, -5, 0], -5),
        ("max", "DECIMAL(30, 2)", [None, None], None),
        ("bool_and", "BOOLEAN", [True, None, False], False),
        ("bool_or", "BOOLEAN", [False, None, True], True),
        ("primary-key", "INT", [1, (2,)], 2),
    ],
)
def test_the_value_of_a_key(function: str, t: str, cells: list[Any], value: Any) -> None:
    assert aggregate(function, t, cells) == value


def test_zeros_and_not_a_number_have_an_order() -> None:
    assert str(aggregate("max", "DOUBLE", [-0.0, 0.0, -1.0])) == "0.0"
    assert str(aggregate("min", "FLOAT", [0.0, -0.0, NAN])) == "-0.0"
    assert aggregate("max", "DOUBLE", [1e300, NAN, 5.0]) != aggregate("min", "DOUBLE", [1.0, NAN])
