"""Computed columns: what is understood, in which order, and what comes of values."""

from datetime import UTC, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from ingestd.errors import ConfigError, SchemaConflictError
from ingestd.ingest.computed.computed_columns import compute, fixed_type, in_order, parse_computed
from ingestd.ingest.computed.expressions.cells import Frame
from ingestd.ingest.computed.expressions.expression import Outcome
from ingestd.ingest.computed.functions import FUNCTIONS
from ingestd.paimon.spec.data_types import DataType, parse_type

TEXT = DataType("STRING")


def made_from(text: str, column: pa.ChunkedArray, data_type: DataType) -> Outcome:
    frame = Frame({"a": column.combine_chunks()}, len(column))
    made = compute(parse_computed("c", text), {"a": data_type}, frame)
    assert made is not None
    return made


def constant(text: str, rows: int, now_ms: int) -> Outcome:
    made = compute(parse_computed("c", text), {}, Frame({}, rows, now_ms))
    assert made is not None
    return made


def test_there_are_fourteen_functions() -> None:
    assert len(FUNCTIONS) == 14


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("conct(a, b)", "unknown function 'conct'; did you mean 'concat'?"),
        ("year()", "year takes 1 or 2 arguments, not 0"),
        ("upper(a, b)", "upper takes 1 arguments, not 2"),
        ("now(a)", "now takes 0"),
        ("year(a, 2)", "'2' is not a precision"),
        ("date_format(a, yyyyq)", "'q' is not supported"),
        ("date_format(a, yyyy, x)", "'x' is not a precision"),
        ("substring(a, -1)", "begin '-1' is not an integer from 0"),
        ("substring(a, 3, 2)", "end '2' is not an integer from 3"),
        ("truncate(a, 0)", "width '0' is not an integer from 1"),
        ("cast(x, INT)", "'x' cannot be read as INT"),
        ("cast(x, THING)", "THING"),
        ("a +", "at character 3: it cannot be parsed"),
    ],
)
def test_what_is_not_understood_is_said_with_column_and_expression(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_computed("c", text)
    assert message in caught.value.message
    assert f"computed column 'c' = {text}: " in caught.value.message


def test_columns_follow_those_they_are_computed_from() -> None:
    texts = {"a": "upper(b)", "b": "trim(c)", "x": "now()", "c": "substring(s, 1)"}
    ordered = in_order(parse_computed(*item) for item in texts.items())
    assert [one.name for one in ordered] == ["x", "c", "b", "a"]


@pytest.mark.parametrize("text", ["upper(a)", "upper(b)"])
def test_columns_in_a_ring_are_refused(text: str) -> None:
    columns = [parse_computed("a", text), parse_computed("b", "lower(a)")]
    with pytest.raises(ConfigError, match=r"'a' = upper.*depends on itself"):
        in_order(columns)


@pytest.mark.parametrize(
    ("text", "data_type"),
    [
        ("year(a)", "INT"),
        ("date_format(a, yyyy)", "STRING"),
        ("cast(1, DECIMAL(5, 1))", "DECIMAL(5, 1)"),
        ("cast(1)", "STRING"),
        ("now()", "TIMESTAMP(3) WITH LOCAL TIME ZONE"),
        ("truncate(a, 2)", "None"),
    ],
)
def test_types_are_known_beforehand_but_for_truncate(text: str, data_type: str) -> None:
    assert str(fixed_type(parse_computed("c", text), {})) == data_type


def test_constants_fill_the_column() -> None:
    made = constant("cast('1.5', DECIMAL(5, 1))", 2, 0)
    assert made.values.to_pylist() == [Decimal("1.5")] * 2
    now = constant("now()", 1, 1500)
    assert now.values.to_pylist() == [datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC)]


def test_bad_values_are_found_among_many_good_ones() -> None:
    values = ["2025-01-01"] * 300
    bad = {0, 17, 299}
    for index in bad:
        values[index] = "someday"
    column = pa.chunked_array([values[:100], values[100:], []], pa.string())
    made = made_from("year(a)", column, TEXT)
    assert set(np.flatnonzero(made.failed).tolist()) == bad
    assert made.values.to_pylist()[1] == 2025
    assert made.values.null_count == len(bad)


def test_nulls_stay_nulls_and_fail_nothing() -> None:
    column = pa.chunked_array([pa.nulls(3, pa.string())])
    for text in ("year(a)", "date_format(a, yyyy)", "substring(a, 1)", "truncate(a, 1)", "trim(a)"):
        made = made_from(text, column, TEXT)
        assert (made.values.null_count, made.failed.any()) == (3, False)


def test_truncate_has_the_type_of_its_column() -> None:
    column = pa.chunked_array([pa.array([15], pa.int16())])
    made = made_from("truncate(a, 10)", column, parse_type("SMALLINT NOT NULL"))
    assert (made.type, made.values.to_pylist()) == (DataType("SMALLINT"), [10])


def test_type_that_a_function_does_not_take_is_refused_whatever_the_values() -> None:
    column = pa.chunked_array([pa.array([None], pa.bool_())])
    with pytest.raises(SchemaConflictError, match=r"'c' = year\(a\): column 'a' is BOOLEAN"):
        made_from("year(a)", column, DataType("BOOLEAN"))
