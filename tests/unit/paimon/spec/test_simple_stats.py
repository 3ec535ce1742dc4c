from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from ingestd.paimon.spec.arrow import column_of
from ingestd.paimon.spec.binary_row import EMPTY_ROW, deserialize_row
from ingestd.paimon.spec.data_file import SimpleStats
from ingestd.paimon.spec.data_types import DataField, parse_type
from ingestd.paimon.spec.simple_stats import collect_stats, truncate_upper
from tests.support.format_vectors import vectors
from tests.support.java_tables import JavaFile, java_data_files


def mode(text: str) -> Callable[[str], str]:
    return lambda _: text


def one(
    text: str, cells: list[object], kept: str = "truncate(16)"
) -> tuple[object, object, object]:
    """Bounds and null count of a single column."""
    t = parse_type(text)
    table = pa.table({"c": column_of(cells, t)})
    stats, _ = collect_stats(table, [DataField(0, "c", t)], mode(kept), dense=False)
    (least,) = deserialize_row([t], stats.min_values)
    (most,) = deserialize_row([t], stats.max_values)
    return least, most, stats.null_counts[0]


@pytest.mark.parametrize("file", java_data_files(), ids=str)
def test_statistics_of_java_files_are_those_that_java_took(file: JavaFile) -> None:
    rows, meta = file.rows(), file.entry.file
    found = collect_stats(
        rows, file.schema.fields, file.options.stats_mode, dense=file.options.stats_dense_store
    )
    assert found == (meta.value_stats, meta.value_stats_cols)
    if file.schema.primary_keys:
        keys = file.schema.key_fields
        assert collect_stats(rows, keys, mode("truncate(128)")) == (meta.key_stats, None)


@pytest.mark.parametrize("case", vectors("stats_truncate_16"), ids=range(10))
def test_texts_are_truncated_as_java_does(case: dict[str, Any]) -> None:
    # Java stores a lone surrogate as "?", a bound below the data; here the bound holds.
    expected = "aaaaaaaaaaaaaaa\ue000" if case["max"] == "aaaaaaaaaaaaaaa?" else case["max"]
    assert one("STRING", list(case["values"])) == (
        case["min"], expected, case["nullCount"],
    )  # fmt: skip


def test_an_upper_bound_skips_what_cannot_be_incremented() -> None:
    assert truncate_upper("ab", 2) == "ab"
    assert truncate_upper("abc", 2) == "ac"
    assert truncate_upper("a\U0010ffffc", 2) == "b"
    assert truncate_upper("\U0010ffff\U0010ffffc", 2) is None
    assert truncate_upper("\ud7ffx", 1) == "\ue000"


@pytest.mark.parametrize(
    ("text", "cells", "least", "most"),
    [
        ("INT", [3, None, -1], -1, 3),
        ("DATE", [-2147472692, 2147483647], -2147472692, 2147483647),
        ("TIMESTAMP(6)", [-(1 << 62), 5], -(1 << 62), 5),
        ("TIMESTAMP_LTZ(3)", [7], 7, 7),
        ("BOOLEAN", [True, False], False, True),
        ("DOUBLE", [1.5, -2.0, float("inf")], -2.0, float("inf")),
        ("STRING", ["b", "a" * 20], "a" * 16, "b"),
        ("STRING", ["é", "z", "\U0001f600"], "z", "\U0001f600"),
        ("INT", [None, None], None, None),
        ("INT", [], None, None),
        ("BYTES", [b"a", b"b"], None, None),
        ("DOUBLE", [1.0, float("nan")], None, None),
        ("FLOAT", [float("nan")], None, None),
    ],
)
def test_bounds_are_sure_or_absent(
    text: str, cells: list[object], least: object, most: object
) -> None:
    assert one(text, cells) == (least, most, cells.count(None))


@pytest.mark.parametrize(
    ("cells", "least", "most"),
    [
        ([0.0, 1.0], "0.0", "1.0"), ([-0.0, 1.0], "-0.0", "1.0"), ([0.0, -0.0], "-0.0", "0.0"),
        ([-1.0, -0.0], "-1.0", "-0.0"), ([-1.0, -0.0, 0.0], "-1.0", "0.0"),
    ],
)  # fmt: skip
def test_negative_zero_is_below_zero(cells: list[object], least: str, most: str) -> None:
    found = one("DOUBLE", cells)
    assert (repr(found[0]), repr(found[1])) == (least, most)


def test_modes_keep_less() -> None:
    cells: list[object] = ["a long text of more than sixteen", None]
    assert one("STRING", cells, "full") == (cells[0], cells[0], 1)
    assert one("STRING", cells, "truncate(3)") == ("a l", "a m", 1)
    assert one("STRING", cells, "counts") == (None, None, 1)
    assert one("STRING", cells, "none") == (None, None, None)


def test_dense_statistics_leave_columns_out_and_name_the_rest() -> None:
    fields = [DataField(0, "a", parse_type("INT NOT NULL")), DataField(1, "b", parse_type("INT"))]
    table = pa.table({"a": pa.array([1, 2], pa.int32()), "b": pa.array([None, 3], pa.int32())})
    modes = {"a": "full", "b": "none"}
    stats, names = collect_stats(table, fields, modes.__getitem__)
    assert names == ("a",)
    assert deserialize_row([fields[0].type], stats.min_values) == (1,)
    assert stats.null_counts == (0,)
    assert collect_stats(table, fields, mode("none")) == (SimpleStats(EMPTY_ROW, EMPTY_ROW, ()), ())


def test_nested_columns_have_null_counts_only() -> None:
    nested = parse_type({"type": "ARRAY", "element": "INT"})
    fields = [DataField(0, "a", parse_type("INT")), DataField(1, "n", nested)]
    table = pa.table({"a": pa.array([1], pa.int32()), "n": column_of([[1, 2]], nested)})
    stats, names = collect_stats(table, fields, mode("full"))
    assert (stats.null_counts, names) == ((0, 0), None)
    types = [field.type for field in fields]
    assert deserialize_row(types, stats.min_values) == (1, None)
    assert deserialize_row(types, stats.max_values) == (1, None)
