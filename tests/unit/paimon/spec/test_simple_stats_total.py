import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from ingestd.paimon.spec.arrow import column_of
from ingestd.paimon.spec.data_types import DataField, parse_type
from ingestd.paimon.spec.simple_stats import StatsTotal, collect_stats


def _pair(cells: Sequence[Any], text: str, cut: int, mode: str) -> tuple[Any, Any]:
    """Statistics of the whole column, and those put together of two parts of it."""
    field = DataField(0, "c", parse_type(text))
    rows = pa.table({"c": column_of(cells, field.type)})
    total = StatsTotal([field], lambda _: mode)
    for part in (rows.slice(0, cut), rows.slice(cut)):
        if part.num_rows:
            total.add(part)
    return collect_stats(rows, [field], lambda _: mode), total.result()


@pytest.mark.parametrize("mode", ["full", "truncate(2)", "counts", "none"])
@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("INT", [5, None, -3, 9]),
        ("INT", [None, None, 4, None]),
        ("INT", [None, None, None, None]),
        ("STRING", ["b", "abc", "zzz", "\U0010ffff\U0010ffffx"]),
        ("STRING", ["é", "", "e", "zz"]),
        ("DOUBLE", [0.0, 1.5, -0.0, -2.5]),
        ("DOUBLE", [0.0, 0.0, -0.0, 0.0]),
        ("DECIMAL(10, 2)", [None, None, None, None]),
        ("DATE", [3, 1, None, 2]),
        ("BYTES", [b"a", None, b"c", b"d"]),
    ],
)
def test_parts_put_together_are_the_whole(text: str, cells: list[Any], mode: str) -> None:
    for cut in range(len(cells) + 1):
        whole, parts = _pair(cells, text, cut, mode)
        assert parts == whole


def test_a_bound_that_is_not_known_of_one_part_is_not_known_at_all() -> None:
    whole, parts = _pair([1.0, 2.0, math.nan, 3.0], "DOUBLE", 2, "full")
    assert parts == whole
    whole, parts = _pair([math.nan, 2.0, 1.0, 3.0], "DOUBLE", 2, "full")
    assert parts == whole


def test_without_dense_store_all_columns_have_a_place() -> None:
    fields = [DataField(i, name, parse_type("INT")) for i, name in enumerate("ab")]
    rows = pa.table({"a": pa.array([1, 2], pa.int32()), "b": pa.array([None, 7], pa.int32())})

    def mode(name: str) -> str:
        return "none" if name == "a" else "full"

    for dense in (True, False):
        total = StatsTotal(fields, mode, dense=dense)
        total.add(rows)
        assert total.result() == collect_stats(rows, fields, mode, dense=dense)
