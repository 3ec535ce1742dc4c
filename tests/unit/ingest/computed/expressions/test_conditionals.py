"""CASE and its kin choose row by row, and a row fails by what is looked at for it only."""

from typing import Any

import pytest

from tests.support.sql_values import FAILED, Columns, values

COLUMNS: Columns = {
    "a": ("INT", [0, 2, None, 5]),
    "b": ("INT", [1, None, 3, 5]),
    "s": ("STRING", ["x", "7", None, "8"]),
}


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("case when a > 1 then 'big' when a = 0 then 'none' end", ["none", "big", None, "big"]),
        ("case a when 0 then 'zero' when 5 then s else '?' end", ["zero", "?", "?", "8"]),
        ("case when a <> 0 then 10 / a else 0 end", [0.0, 5.0, 0.0, 2.0]),
        ("case when 10 div a > 4 then 1 else 0 end", [FAILED, 1, 0, 0]),
        ("case when a = 0 then 1 when 10 div a > 4 then 2 else 3 end", [1, 2, 3, 3]),
        ("if(s = 'x', null, cast(s as int))", [None, 7, None, 8]),
        ("if(a > 1, b)", [None, None, None, 5]),
        ("coalesce(a, b)", [0, 2, 3, 5]),
        ("coalesce(b, 1 div a, 9)", [1, 0, 3, 5]),
        ("coalesce(1 div a, b)", [FAILED, 0, 3, 0]),
        ("nvl(b, 0)", [1, 0, 3, 5]),
        ("nvl2(b, 'y', s)", ["y", "7", "y", "y"]),
        ("nvl2(10 div a, 1 div b, 0)", [FAILED, None, 0, 0]),
        ("nullif(a, b)", [0, 2, None, None]),
        ("10 div nullif(a, 0)", [None, 5, None, 2]),
        ("greatest(a, b, 3)", [3, 3, 3, 5]),
        ("least(a, b)", [0, 2, 3, 5]),
        ("greatest(null, a)", [0, 2, None, 5]),
    ],
)
def test_values(sql: str, wanted: list[Any]) -> None:
    assert values(sql, COLUMNS) == wanted
