"""Checking statistics against rows."""

from typing import Any

import pyarrow as pa
import pytest

from ingestd.paimon.spec.binary_row import EMPTY_ROW, serialize_row
from ingestd.paimon.spec.data_file import EMPTY_STATS, SimpleStats
from ingestd.paimon.spec.data_types import DataField, parse_type
from ingestd.paimon.table.verify.content import check_stats
from ingestd.paimon.table.verify.verify_findings import VerifyFindings


def _problems(text: str, values: pa.Array, low: Any, high: Any, nulls: int | None) -> list[str]:
    field = DataField(0, "c", parse_type(text))
    types = [field.type]
    stats = SimpleStats(serialize_row(types, [low]), serialize_row(types, [high]), (nulls,))
    findings = VerifyFindings()
    check_stats("f", stats, pa.table({"c": values}), [field], findings)
    return [finding.message for finding in findings.found]


INTS = pa.array([3, None, 7], pa.int32())
NAN = pa.array([1.0, float("nan")])


@pytest.mark.parametrize(
    ("text", "values", "low", "high", "nulls"),
    [
        ("INT", INTS, 3, 7, 1),
        ("INT", INTS, -5, 99, None),
        ("INT", INTS, None, None, 1),
        ("INT", pa.array([None], pa.int32()), 5, 5, 1),
        ("STRING", pa.array(["abc", "é"]), "ab", "ê", 0),
        ("DOUBLE", NAN, 1.0, None, 0),
        ("DOUBLE", NAN, 1.0, float("nan"), 0),
        ("BYTES", pa.array([b"x"]), b"z", b"a", 0),
        ("BOOLEAN", pa.array([True, False]), False, True, 0),
    ],
)
def test_bounds_that_hold_every_value_are_right(
    text: str, values: pa.Array, low: Any, high: Any, nulls: int | None
) -> None:
    assert _problems(text, values, low, high, nulls) == []


@pytest.mark.parametrize(
    ("text", "values", "low", "high", "nulls", "problem"),
    [
        ("INT", INTS, 4, 7, 1, "c: 3 is below the bound 4"),
        ("INT", INTS, 3, 6, 1, "c: 7 is above the bound 6"),
        ("INT", INTS, 3, 7, 0, "c: has 1 nulls, expected 0"),
        ("STRING", pa.array(["abd"]), "a", "abc", 0, "c: 'abd' is above the bound 'abc'"),
        ("DOUBLE", NAN, 1.0, 9.0, 0, "c: nan is above the bound 9.0"),
    ],
)
def test_wrong_statistics_are_reported(
    text: str, values: pa.Array, low: Any, high: Any, nulls: int, problem: str
) -> None:
    assert _problems(text, values, low, high, nulls) == [problem]


def test_statistics_of_no_columns_promise_nothing() -> None:
    findings = VerifyFindings()
    field = DataField(0, "c", parse_type("INT"))
    check_stats("f", EMPTY_STATS, pa.table({"c": INTS}), [field], findings)
    assert not findings.found


def test_statistics_of_another_number_of_columns_are_reported() -> None:
    findings = VerifyFindings()
    stats = SimpleStats(EMPTY_ROW, EMPTY_ROW, (0, 0))
    field = DataField(0, "c", parse_type("INT"))
    check_stats("f", stats, pa.table({"c": INTS}), [field], findings)
    assert [finding.message for finding in findings.found] == ["statistics of 2 columns, not 1"]
