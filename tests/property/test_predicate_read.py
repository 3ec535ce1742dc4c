"""Reading with a predicate gives what filtering all rows gives, whatever files are skipped."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingestd.paimon.casts.rows_json import sorted_json_lines
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.arrow import column_values
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.file_index_bitmap import has_bitmap
from ingestd.paimon.spec.file_index_range import has_range_bitmap
from ingestd.paimon.spec.predicate import (
    And,
    Comparison,
    IsIn,
    IsNull,
    Like,
    Not,
    Or,
    Predicate,
    matching,
)
from ingestd.paimon.spec.schema_change import DropColumn, RenameColumn, UpdateColumnType
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.read.table_read import TableReader, read_table
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.native_tables import alter, native_table, put

TEXTS = ["", "a", "ab", "b?", "é", "a text that is longer than bounds", "a text that is long"]
CELLS: Mapping[str, st.SearchStrategy[Any]] = {
    "p": st.integers(0, 2),
    "k": st.integers(-4, 4),
    "s": st.sampled_from(TEXTS),
    "x": st.sampled_from([-1.5, -0.0, 0.0, 2.5, float("nan"), float("inf")]),
    "n": st.integers(-3, 3),
}
NULLABLE = ["s", "x", "n"]
OPERATORS = ["=", "!=", "<", "<=", ">", ">="]
OPTIONS: list[dict[str, str]] = [
    {"bucket": "3", "bucket-key": "k"},
    {"bucket": "1", "bucket-key": "k", "target-file-size": "1 b"},
    {"bucket": "2", "bucket-key": "k", "metadata.stats-mode": "none"},
    {
        "bucket": "1",
        "bucket-key": "k",
        "metadata.stats-mode": "full",
        "file-index.bloom-filter.columns": "s,x,n",
        "file-index.bitmap.columns": "s,x,n",
    },
    {
        "bucket": "1",
        "bucket-key": "k",
        "metadata.stats-mode": "none",
        "file-index.bitmap.columns": "n",
        "file-index.bsi.columns": "n",
        "file-index.range-bitmap.columns": "s,x,n",
    },
    {
        "bucket": "1",
        "bucket-key": "k",
        "metadata.stats-mode": "none",
        "file-index.bitmap.columns": "s,x,n",
        "file-index.bitmap.s.version": "1",
    },
]


def leaves(name: str) -> st.SearchStrategy[Predicate]:
    column, cells = st.just(name), CELLS[name]
    compared = st.builds(Comparison, column, st.sampled_from(OPERATORS), cells)
    among = st.builds(IsIn, column, st.lists(cells, min_size=1, max_size=3).map(tuple))
    found = compared | among | st.builds(IsNull, column)
    if name == "s":
        found |= st.builds(Like, column, st.sampled_from(["a%", "a text%", "%b_", "é", "_%"]))
    return found


PREDICATES = st.recursive(
    st.sampled_from(sorted(CELLS)).flatmap(leaves),
    lambda inner: (
        st.builds(Not, inner)
        | st.builds(And, st.lists(inner, min_size=1, max_size=3).map(tuple))
        | st.builds(Or, st.lists(inner, min_size=1, max_size=3).map(tuple))
    ),
    max_leaves=4,
)
ROWS = st.fixed_dictionaries(
    {name: (st.none() | cells) if name in NULLABLE else cells for name, cells in CELLS.items()}
)
BATCHES = st.lists(st.lists(ROWS, min_size=1, max_size=6), min_size=1, max_size=4)


@settings(max_examples=50, deadline=None)
@given(
    batches=BATCHES,
    predicate=PREDICATES,
    options=st.sampled_from(OPTIONS),
    keyed=st.booleans(),
    evolve=st.booleans(),
    deletes=st.sets(st.integers(0, 23), max_size=6),
)
def test_a_predicate_finds_what_filtering_finds(
    batches: list[list[dict[str, Any]]],
    predicate: Predicate,
    options: dict[str, str],
    keyed: bool,
    evolve: bool,
    deletes: set[int],
) -> None:
    columns = [("p", "INT"), ("k", "INT"), ("s", "STRING"), ("x", "DOUBLE"), ("n", "INT")]
    table = native_table(
        "/w", columns, keys=["p", "k"] if keyed else [], partitions=["p"], options=options,
        io=MemoryFileIO(),
    )  # fmt: skip
    count = 0
    for batch in batches:
        if keyed:
            kinds = [{"_kind": 3} if count + i in deletes else {} for i in range(len(batch))]
            batch = [{**row, **kind} for row, kind in zip(batch, kinds, strict=True)]
        put(table, batch)
        count += len(batch)
        if evolve and table.schema.id == 0 and "file-index.bitmap.columns" not in options:
            table = alter(
                table,
                RenameColumn(("s",), "t"),
                RenameColumn(("n",), "s"),
                RenameColumn(("t",), "n"),
                DropColumn(("x",)),
                UpdateColumnType(("s",), parse_type("BIGINT")),
            )
            predicate = Or((IsNull("s"), Comparison("s", ">", 0)))
            break
    _check(table, predicate)


CHANGED: list[tuple[str, list[Any], str]] = [
    ("VARCHAR(5)", ["", "ab", "ab ", "b"], "CHAR(7)"),
    ("CHAR(3)", ["a", "abc"], "CHAR(7)"),
    ("STRING", ["", "ab", "abc", "é𝄞x"], "VARCHAR(2)"),
    ("VARCHAR(2)", ["", "ab"], "STRING"),
    ("STRING", ["7", "-5", "007"], "INT"),
    ("DECIMAL(10, 2)", [Decimal("12345.67"), Decimal("1.00"), Decimal("-0.05")], "DECIMAL(5, 2)"),
    ("DECIMAL(5, 2)", [Decimal("1.05"), Decimal("1.04"), Decimal("-1.05")], "DECIMAL(5, 1)"),
    ("DECIMAL(5, 2)", [Decimal("1.05"), Decimal("999.99")], "DECIMAL(9, 4)"),
    ("TINYINT", [-128, 0, 127], "BIGINT"),
    ("BIGINT", [-(2**40), 2**31, 7], "INT"),
    ("INT", [-(2**31), 9, 10], "STRING"),
    ("FLOAT", [0.1, -0.0, 0.0, float("nan")], "DOUBLE"),
    ("DOUBLE", [0.1, 1e300, -0.0], "FLOAT"),
    ("BOOLEAN", [True, False], "INT"),
    ("DATE", [-1, 0, 19_000], "TIMESTAMP(3)"),
    ("TIMESTAMP(6)", [-1, 999, 10**12], "TIMESTAMP(3)"),
    ("TIME(3)", [0, 86_399_999], "STRING"),
]
INDEXES = [
    {},
    {"file.format": "avro"},
    {"metadata.stats-mode": "none", "file.format": "avro", "file-index.range-bitmap.columns": "c"},
    {"metadata.stats-mode": "none", "file.format": "avro", "file-index.bitmap.columns": "c"},
]


@pytest.mark.parametrize("options", INDEXES, ids=["parquet", "avro", "range-bitmap", "bitmap"])
@pytest.mark.parametrize(("old", "cells", "new"), CHANGED)
def test_a_predicate_finds_what_filtering_finds_once_the_type_has_changed(
    old: str, cells: list[Any], new: str, options: dict[str, str]
) -> None:
    if "file-index.bitmap.columns" in options and not has_bitmap(parse_type(old)):
        options = {}
    if "file-index.range-bitmap.columns" in options and not has_range_bitmap(parse_type(old)):
        options = {}
    columns = [("k", "INT"), ("c", old)]
    table = native_table("/w", columns, options={"bucket": "-1", **options}, io=MemoryFileIO())
    for k, cell in enumerate([*cells, None]):
        put(table, [{"k": k, "c": cell}])
    table = alter(table, UpdateColumnType(("c",), parse_type(new)))
    rows, types = read_table(table), {name: parse_type(t) for name, t in (("k", "INT"), ("c", new))}
    values = [value for value in column_values(rows.column("c")) if value is not None]
    for predicate in (
        IsNull("c"),
        Not(IsNull("c")),
        *(Comparison("c", operator, value) for value in values for operator in ("=", "<", ">=")),
    ):
        found = read_table(table, predicate=predicate)
        assert found.column("k").equals(matching(predicate, rows, types).column("k")), predicate


def _check(table: Any, predicate: Predicate) -> None:
    types = {field.name: field.type for field in table.schema.fields}
    wanted = matching(predicate, read_table(table), types)
    assert _lines(table, read_table(table, predicate=predicate)) == _lines(table, wanted)
    columns = table.schema.field_names[:1]
    narrow = read_table(table, predicate=predicate, columns=columns)
    assert narrow.num_rows == wanted.num_rows
    assert narrow.column_names == list(columns)
    snapshot = latest_snapshot(table.io, table.paths)
    assert snapshot is not None
    plan = TableReader(table, predicate=predicate).plan(snapshot)
    every = TableReader(table).plan(snapshot)
    assert plan.files_read + sum(plan.files_skipped.values()) <= every.files_read
    assert verify(table) == []


def _lines(table: Any, rows: pa.Table) -> list[str]:
    return sorted_json_lines(rows, table.schema.fields)
