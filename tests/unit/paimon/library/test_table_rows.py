"""Rows in whatever form become the columns of a table."""

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ingestd.errors import ArgumentError, ConfigError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.library.table_rows import arrow_rows
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from tests.support.native_tables import native_table

ROW = {"id": 1, "price": Decimal("1.50"), "name": "a"}


@pytest.fixture
def table() -> FileStoreTable:
    columns = [("id", "INT"), ("price", "DECIMAL(9, 2)"), ("name", "STRING")]
    return native_table("/w", columns, io=MemoryFileIO())


class Frame:
    """A data frame of some package that speaks Arrow."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return pa.table({"id": [1], "price": ["1.50"], "name": ["a"]}).__arrow_c_stream__()


@pytest.mark.parametrize(
    "data",
    [
        [ROW],
        ROW,
        pa.Table.from_pylist([ROW]),
        pa.RecordBatch.from_pylist([ROW]),
        pa.Table.from_pylist([ROW]).to_reader(),
        pa.table({"name": ["a"], "price": [1.5], "id": pa.array([1], pa.int64())}),
        Frame(),
    ],
    ids=["dictionaries", "one", "table", "batch", "reader", "other types", "frame"],
)
def test_every_form_is_the_same_rows(table: FileStoreTable, data: Any) -> None:
    assert arrow_rows(table, data).to_pylist() == [ROW]


class MixedFrame:
    """A data frame with a column whose values have no common type, such as pandas' of maps."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return pa.table({"id": pa.array([1, "a"])}).__arrow_c_stream__()


def test_a_frame_without_types_of_its_own_is_refused(table: FileStoreTable) -> None:
    with pytest.raises(ArgumentError, match=r"rows of a MixedFrame .* give an Arrow table"):
        arrow_rows(table, MixedFrame())


def test_whole_numbers_of_any_type_are_accepted(table: FileStoreTable) -> None:
    rows = arrow_rows(table, [{"id": 1.0}, {"id": Decimal(2)}, {"id": 3}])
    assert rows["id"].to_pylist() == [1, 2, 3]


@pytest.mark.parametrize(
    "prices", [["72656038009350675562e9"], [Decimal("72656038009350675562e9")]]
)
def test_a_price_with_too_many_digits_is_refused(prices: list[Any]) -> None:
    table = native_table("/w", [("id", "INT"), ("price", "DECIMAL(38, 10)")], io=MemoryFileIO())
    with pytest.raises(ArgumentError, match="column price is decimal128"):
        arrow_rows(table, pa.table({"id": [1], "price": prices}))


def test_columns_that_are_left_out_are_null(table: FileStoreTable) -> None:
    assert arrow_rows(table, [{"id": 1}]).to_pylist() == [{"id": 1, "price": None, "name": None}]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([{"id": 1, "nmae": "a"}], "no column nmae"),
        ([{"id": "x"}], "do not fit"),
        ([{"id": 1 << 70}], "do not fit"),
        ([{"name": "\ud800"}], "do not fit"),
        ([{"id": 1}, {"id": 1.5}], "do not fit"),
        ([{"id": Decimal("1.5")}], "do not fit"),
        ([{"id": Decimal("1e60")}], "do not fit"),
        ([{"id": object()}], "do not fit"),
        ([{"id": float("nan")}], "do not fit"),
        (pa.table({"id": [1 << 40]}), "column id is int32"),
        (pa.table({"price": ["1.555"]}), "column price is decimal"),
        ([1], "not int"),
        (7, "from int"),
        ("text", "from str"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(
    table: FileStoreTable, data: Any, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        arrow_rows(table, data)


MOMENT = datetime.fromisoformat("2024-01-02T03:04:05")
INSTANT = MOMENT.replace(microsecond=6, tzinfo=UTC)
FIELDS = [{"id": 0, "name": "a", "type": "INT"}, {"id": 1, "name": "b", "type": "STRING"}]
ROW_TYPE = {"type": "ROW", "fields": FIELDS}
NESTED = [
    ("day", "DATE"),
    ("clock", "TIME(3)"),
    ("ms", "TIMESTAMP(3)"),
    ("us", "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
    ("list", {"type": "ARRAY", "element": {"type": "ARRAY", "element": "INT"}}),
    ("map", {"type": "MAP", "key": "STRING", "value": "BIGINT"}),
    ("keys", {"type": "MAP", "key": "INT", "value": "STRING"}),
    ("row", ROW_TYPE),
    ("rows", {"type": "ARRAY", "element": ROW_TYPE}),
]


@pytest.fixture
def nested() -> FileStoreTable:
    return native_table("/w", NESTED, io=MemoryFileIO())


@pytest.mark.parametrize(
    ("row", "stored"),
    [
        ({"day": MOMENT}, date(2024, 1, 2)),
        ({"clock": time(1, 2, 3, 4000)}, time(1, 2, 3, 4000)),
        ({"ms": MOMENT.replace(microsecond=6000)}, MOMENT.replace(microsecond=6000)),
        (
            {"us": MOMENT.replace(microsecond=6, tzinfo=UTC)},
            MOMENT.replace(microsecond=6, tzinfo=UTC),
        ),
        ({"list": [[1.0, None], None]}, [[1, None], None]),
        ({"list": [np.array([1.0])]}, [[1]]),
        ({"map": {"a": 1.0, "b": None}}, [("a", 1), ("b", None)]),
        ({"keys": [(1.0, "x")]}, [(1, "x")]),
        ({"row": {"a": 1.0}}, {"a": 1, "b": None}),
        ({"row": (1, "x")}, {"a": 1, "b": "x"}),
        ({"row": [("a", 1)]}, {"a": 1, "b": None}),
        ({"rows": [None, {"b": "x"}]}, [None, {"a": None, "b": "x"}]),
    ],
)
def test_a_value_that_is_stored_whole_is_accepted(
    nested: FileStoreTable, row: dict[str, Any], stored: object
) -> None:
    (name,) = row
    assert arrow_rows(nested, [{}, row])[name].to_pylist() == [None, stored]


@pytest.mark.parametrize(
    ("row", "lost"),
    [
        ({"day": 1.5}, "the fraction"),
        ({"clock": time(1, 2, 3, 4001)}, "digits of the second"),
        ({"ms": MOMENT.replace(microsecond=6)}, "digits of the second"),
        ({"ms": 1.5}, "the fraction"),
        ({"list": [[1], [1, Decimal("1.5")]]}, "the fraction"),
        ({"list": [np.array([1.5])]}, "the fraction"),
        ({"map": {"a": 1.5}}, "the fraction"),
        ({"map": [("a", 1.5), ("a", 1)]}, "the fraction"),
        ({"keys": [(1.5, "x")]}, "the fraction"),
        ({"row": (1.5, "x")}, "the fraction"),
        ({"row": {"a": 1, "B": "x"}}, "the field B"),
        ({"rows": [{"a": 1}, {"c": 1}]}, "the field c"),
    ],
)
def test_a_value_that_would_lose_a_part_is_refused(
    nested: FileStoreTable, row: dict[str, Any], lost: str
) -> None:
    with pytest.raises(ArgumentError, match=f"column {next(iter(row))} is .*{lost} would be lost"):
        arrow_rows(nested, [row])


@pytest.mark.parametrize(
    "row",
    [
        {"row": {"a": 1, "c": 2}},
        {"rows": [{"a": 1, "c": 2}]},
    ],
)
def test_unknown_nested_fields_of_arrow_tables_are_refused(
    nested: FileStoreTable, row: dict[str, Any]
) -> None:
    with pytest.raises(ArgumentError, match="the unknown field c"):
        arrow_rows(nested, pa.Table.from_pylist([row]))
