"""What a table shows and answers in a notebook, and which mistakes it refuses."""

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import ingestd.paimon as paimon

SCHEMA = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), ("status", pa.string()), ("amount", pa.int64())]
)
FULL = {"id": 1, "status": "new", "amount": 5}


def orders(folder: Path, options: Mapping[str, str] | None = None, keys: tuple[str, ...] = ("id",)):  # type: ignore[no-untyped-def]  # noqa: ANN201
    path = f"{folder}/ods.orders"
    return paimon.create(
        path, SCHEMA, primary_keys=keys, options={"bucket": "1", **(options or {})}
    )


def test_dir_lists_the_stable_names_and_signatures_the_keywords() -> None:
    assert dir(paimon) == sorted(paimon.__all__)
    for method in ("scan", "to_arrow", "to_pandas", "to_polars", "to_duckdb"):
        names = list(inspect.signature(getattr(paimon.Table, method)).parameters)
        assert names == ["self", "columns", "where", "snapshot", "tag", "as_of", "between"]


def test_a_table_is_shown_in_six_lines_and_in_a_notebook_as_html(tmp_path: Path) -> None:
    table = orders(tmp_path)
    assert repr(table).splitlines()[5] == "snapshot       none"
    table.write([FULL])
    lines = repr(table).splitlines()
    assert len(lines) == 6
    assert lines[0] == "Paimon table   ods.orders"
    assert lines[5].startswith("snapshot       1, committed 2")
    assert table._repr_html_().count("<tr>") == 6
    odd = paimon.create(f"{tmp_path}/ods.odd", pa.schema([("<b>", pa.int64())]))
    assert "&lt;b&gt; BIGINT" in odd._repr_html_()


def test_many_columns_and_options_stay_in_six_short_lines(tmp_path: Path) -> None:
    schema = pa.schema([(f"column_{n}", pa.string()) for n in range(300)])
    long = {"fields.column_0.default-value": "x\ny" * 500}
    table = paimon.create(f"{tmp_path}/a.b", schema, options=long)
    assert len(repr(table).splitlines()) == 6
    assert max(map(len, repr(table).splitlines())) < 120


def test_count_and_head_read_what_is_there(tmp_path: Path) -> None:
    table = orders(tmp_path)
    assert table.count() == 0
    assert table.head().num_rows == 0
    table.write([{**FULL, "id": n, "amount": n} for n in range(10)])
    table.delete([{"id": 0}])
    assert table.count() == 9
    assert table.count(where="amount >= 5") == 5
    assert table.head(3).num_rows == 3
    assert table.head(0).num_rows == 0
    assert table.head(50).num_rows == 9
    with pytest.raises(ValueError, match="rows=-1"):
        table.head(-1)


def test_history_has_a_row_for_each_snapshot(tmp_path: Path) -> None:
    table = orders(tmp_path)
    assert table.history().num_rows == 0
    table.write([FULL])
    table.write([{**FULL, "id": 2}])
    assert table.history()["snapshot"].to_pylist() == [1, 2]
    assert table.history()["total"].to_pylist() == [1, 2]


@pytest.mark.parametrize(
    ("options", "row"),
    [
        ({}, {"id": 1, "status": "paid"}),
        ({"fields.amount.default-value": "0"}, {"id": 1, "status": "paid"}),
        ({"merge-engine": "first-row"}, {"id": 1, "status": "paid"}),
        (
            {"merge-engine": "aggregation", "fields.amount.aggregate-function": "last_value"},
            {"id": 1, "status": "paid"},
        ),
        (
            {"merge-engine": "partial-update", "fields.amount.sequence-group": "status"},
            {"id": 1, "amount": 6},
        ),
    ],
    ids=["deduplicate", "default", "first-row", "last_value", "part of a sequence group"],
)
def test_a_partial_row_is_refused_where_a_value_would_be_lost(
    tmp_path: Path, options: dict[str, str], row: dict[str, Any]
) -> None:
    table = orders(tmp_path, options)
    table.write([FULL])
    with pytest.raises(ValueError, match=r"lack the column (amount|status), .*partial=True"):
        table.write([row])
    with pytest.raises(ValueError, match="lack the column"):
        table.write([FULL, row])
    with pytest.raises(ValueError, match="lack the column"):
        table.write(pa.Table.from_pylist([row]))
    assert table.history().num_rows == 1
    assert table.write([row], partial=True) is not None


@pytest.mark.parametrize(
    ("options", "row", "merged"),
    [
        ({"merge-engine": "partial-update"}, {"status": "paid"}, {"status": "paid"}),
        (
            {"merge-engine": "aggregation", "fields.amount.aggregate-function": "sum"},
            {"amount": 2},
            {"amount": 7},
        ),
        (
            {"merge-engine": "partial-update", "fields.amount.sequence-group": "status"},
            {},
            {},
        ),
    ],
    ids=["partial-update", "aggregation", "no column of the sequence group"],
)
def test_a_partial_row_is_written_where_the_merge_engine_keeps_values(
    tmp_path: Path, options: dict[str, str], row: dict[str, Any], merged: dict[str, Any]
) -> None:
    table = orders(tmp_path, options)
    table.write([FULL])
    table.write([{"id": 1, **row}])
    assert table.to_arrow().to_pylist() == [{**FULL, **merged}]


def test_a_partial_row_of_an_append_table_replaces_nothing(tmp_path: Path) -> None:
    table = orders(tmp_path, {"bucket": "-1"}, keys=())
    table.write([{"id": 1}])
    assert table.to_arrow().to_pylist() == [{"id": 1, "status": None, "amount": None}]


def test_mistakes_are_also_errors_of_python(tmp_path: Path) -> None:
    table = orders(tmp_path)
    for wrong in (
        lambda: table.to_arrow(columns=["nope"]),
        lambda: table.to_arrow(where="id >"),
        lambda: table.to_arrow(tag="t", snapshot=1),
        lambda: table.to_arrow(snapshot=7),
        lambda: table.to_arrow(as_of="yesterday"),
        lambda: table.changes(between=(3, 1)),
        lambda: table.get([{"status": "x"}]),
        lambda: table.write([{"id": "text"}]),
        lambda: paimon.open("orders"),
    ):
        with pytest.raises(ValueError):
            wrong()
    for absent in (f"{tmp_path}/ods.nope", f"{tmp_path}/nope.orders", f"{tmp_path}/no/a.b"):
        with pytest.raises(FileNotFoundError):
            paimon.open(absent)
