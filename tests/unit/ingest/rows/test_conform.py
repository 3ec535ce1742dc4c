"""Batches become rows of the table; values that do not fit cost their record only."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ingestd.cdc.base import ChangeBatch, SourceTable
from ingestd.ingest.rows.blobs import KIND, OFFSET, POSITION, UNAVAILABLE_PREFIX
from ingestd.ingest.rows.conform import Conformed, conform
from ingestd.ingest.settings.evolution_policy import EvolutionPolicy
from ingestd.paimon.spec.arrow import arrow_schema, to_arrow_type
from ingestd.paimon.spec.data_types import DataType, parse_type
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.spec.table_schema import TableSchema

INSERT, DELETE = 0, 3


def schema(keys: tuple[str, ...] = ("id",), **columns: str) -> TableSchema:
    typed = [(name, parse_type(text)) for name, text in columns.items()]
    return new_schema(typed, keys, (), {}, 0)


def batch(columns: dict[str, tuple[str, list[Any]]], **parts: Any) -> ChangeBatch:
    types = {name: parse_type(text) for name, (text, _) in columns.items()}
    arrays = {
        name: pa.array(values, to_arrow_type(types[name])) for name, (_, values) in columns.items()
    }
    count = len(next(iter(arrays.values())))
    defaults = {
        "row_kind": np.zeros(count, np.int8),
        "position": np.arange(count, dtype=np.int64),
        "snapshot_row": np.zeros(count, np.bool_),
        "unavailable": {},
    }
    return ChangeBatch(
        source=SourceTable("db", "shop", "orders"),
        columns=pa.table(arrays),
        types=types,
        primary_keys=("id",),
        offset=np.arange(count, dtype=np.int64) + 100,
        **{**defaults, **parts},
    )


def rows(conformed: Conformed) -> pa.Table:
    assert conformed.rows is not None
    return conformed.rows


def test_rows_have_the_columns_of_the_table_in_its_order_and_types() -> None:
    target = schema(b="BIGINT", id="INT", missing="DATE", d="DECIMAL(12, 4)")
    done = conform(
        batch({"id": ("INT", [1]), "d": ("DECIMAL(5, 2)", [None]), "b": ("INT", [7])}), target, {}
    )
    assert rows(done).column_names == ["b", "id", "missing", "d", KIND, OFFSET, POSITION]
    for field in arrow_schema(target.fields):
        assert rows(done).schema.field(field.name).type == field.type
    assert rows(done).to_pylist() == [
        {"b": 7, "id": 1, "missing": None, "d": None, KIND: 0, OFFSET: 100, POSITION: 0}
    ]


def test_columns_that_the_table_lacks_are_reported_instead_of_rows() -> None:
    done = conform(
        batch({"id": ("INT", [1]), "n": ("BIGINT", [1]), "x": ("DATE", [None])}),
        schema(id="INT", n="INT"),
        {},
    )
    assert done.rows is None
    assert done.beyond == {"n": DataType("BIGINT"), "x": DataType("DATE")}


def test_text_needs_no_wider_column_while_its_values_fit() -> None:
    target = schema(id="INT", s="VARCHAR(3)")
    fitting = conform(batch({"id": ("INT", [1, 2]), "s": ("STRING", ["äöü", None])}), target, {})
    assert rows(fitting).column("s").to_pylist() == ["äöü", None]
    longer = conform(batch({"id": ("INT", [1]), "s": ("STRING", ["abcd"])}), target, {})
    assert longer.beyond == {"s": DataType("STRING")}


def test_key_keeps_its_type_while_its_values_fit() -> None:
    target = schema(id="INT")
    assert rows(conform(batch({"id": ("BIGINT", [5])}), target, {})).column("id").type == pa.int32()
    fail = EvolutionPolicy(on_refused="fail")
    assert conform(batch({"id": ("BIGINT", [1 << 40])}), target, {}, fail).beyond == {
        "id": DataType("BIGINT")
    }


def test_value_that_a_declared_type_cannot_hold_fails_its_row() -> None:
    declared = {"n": DataType("TINYINT")}
    done = conform(
        batch({"id": ("INT", [1, 2, 3]), "n": ("INT", [5, 300, None])}),
        schema(id="INT", n="TINYINT"),
        declared,
    )
    (failure,) = done.failures
    assert failure.rows.tolist() == [False, True, False]
    assert (failure.stage, failure.reason) == ("cast", "cast")
    assert "n: a value of INT does not fit TINYINT" in failure.message
    assert rows(done).column("n").to_pylist() == [5, None, None]


def test_value_of_a_delete_that_does_not_fit_is_only_left_out() -> None:
    done = conform(
        batch(
            {"id": ("INT", [1, 2]), "n": ("INT", [300, 300])},
            row_kind=np.array([DELETE, INSERT], np.int8),
        ),
        schema(id="INT", n="TINYINT"),
        {"n": DataType("TINYINT")},
    )
    assert [failure.rows.tolist() for failure in done.failures] == [[False, True]]


def test_null_and_missing_keys_fail() -> None:
    target = schema(keys=("id", "line"), id="INT", line="INT")
    done = conform(batch({"id": ("INT", [1, None])}), target, {})
    assert sorted((f.reason, f.rows.tolist()) for f in done.failures) == [
        ("null-key", [False, True]),
        ("null-key", [True, True]),
    ]
    assert {failure.stage for failure in done.failures} == {"key"}


def test_null_in_a_not_null_column_fails_except_in_a_delete() -> None:
    target = schema(
        id="INT", s="STRING NOT NULL", d="DECIMAL(5, 2) NOT NULL", t="TIMESTAMP(3) NOT NULL"
    )
    done = conform(
        batch({"id": ("INT", [1, 2])}, row_kind=np.array([DELETE, INSERT], np.int8)), target, {}
    )
    assert {tuple(failure.rows.tolist()) for failure in done.failures} == {(False, True)}
    assert len(done.failures) == 3
    assert all(rows(done).column(name).null_count == 0 for name in ("s", "d", "t"))


def test_marks_of_left_out_cells_travel_with_the_rows() -> None:
    marks = {"n": np.array([True, False]), "gone": np.array([True, True])}
    done = conform(
        batch({"id": ("INT", [1, 2]), "n": ("INT", [None, 2])}, unavailable=marks),
        schema(id="INT", n="INT"),
        {},
    )
    assert rows(done).column(UNAVAILABLE_PREFIX + "n").to_pylist() == [True, False]
    assert UNAVAILABLE_PREFIX + "gone" not in rows(done).column_names


@pytest.mark.parametrize("keys", [(), ("id",)])
def test_positions_travel_also_those_of_snapshot_rows(keys: tuple[str, ...]) -> None:
    mixed = batch({"id": ("INT", [1, 2])}, snapshot_row=np.array([True, False]))
    done = conform(mixed, schema(keys=keys, id="INT"), {})
    assert rows(done).column(POSITION).to_pylist() == [0, 1]


def test_positions_that_nobody_knows_do_not_travel() -> None:
    unknown = batch({"id": ("INT", [1])}, position=np.array([-1]))
    assert POSITION not in rows(conform(unknown, schema(id="INT"), {})).column_names
