"""Merge engines as Java has them: what either writes merges to the same rows in both."""

import json
import os
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ingestd.errors import ConfigError, UnsupportedError
from ingestd.paimon.casts.rows_json import json_lines, sorted_json_lines
from ingestd.paimon.spec.data_types import RowKind
from ingestd.paimon.spec.schema_change import SetOption
from ingestd.paimon.table.compact.table_compact import compact_table
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.read.table_read import read_table
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.merge_cases import BITMAPS_64, CELLS, ROWS, MergeCase, random_case
from tests.support.native_tables import NOW_MS, alter, native_table, open_native, put, rows_table
from tests.support.oracle import Oracle, OracleError

pytestmark = pytest.mark.compat

LONG = "INGESTD_LONG" in os.environ


def _own(table: FileStoreTable) -> list[dict[str, Any]]:
    return [json.loads(line) for line in sorted_json_lines(read_table(table), table.schema.fields)]


def _java_rows(table: FileStoreTable, batch: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of a batch as the oracle takes them."""
    lines = json_lines(rows_table(table.schema, batch), table.schema.fields)
    return [
        {**json.loads(line), "_kind": RowKind(row["_kind"]).symbol}
        for line, row in zip(lines, batch, strict=True)
    ]


def _spec(case: MergeCase, batches: Sequence[Any], compact: Sequence[str]) -> dict[str, Any]:
    fields = [{"name": name, "type": t} for name, t in case.columns[1:]]
    commits = zip(batches, compact, strict=True)
    return {
        "fields": [{"name": "k", "type": "INT NOT NULL"}, *fields],
        "primaryKey": ["k"],
        "options": {**case.options, "num-sorted-run.compaction-trigger": "2"},
        "steps": [{"commit": {"rows": rows, "compact": how}} for rows, how in commits],
    }


@pytest.mark.parametrize("seed", range(24 if LONG else 12))
def test_random_tables_merge_alike(seed: int, tmp_path: Path, oracle: Oracle) -> None:
    random = Random(seed)
    case = random_case(random)
    own, java = tmp_path / "own", tmp_path / "java"
    table = native_table(own, case.columns, keys=["k"], options=case.options)
    for batch in case.batches:
        put(table, batch)
    read = case.settled(_own(table))
    assert case.settled(oracle.read(own, "db", "t")) == read
    assert verify(table) == []
    # The same changes written by Java, whose merging before it writes must be the same, too.
    batches = [_java_rows(table, batch) for batch in case.batches]
    oracle.write_spec(_spec(case, batches, ["none"] * len(batches)), java, tmp_path)
    assert case.settled(_own(open_native(java))) == read
    oracle.compact(own, "db", "t")
    compacted = case.settled(oracle.read(own, "db", "t"))
    assert case.settled(_own(open_native(own))) == compacted


@pytest.mark.parametrize("seed", range(100, 110))
def test_tables_that_java_compacts_on_the_way_read_alike(
    seed: int, tmp_path: Path, oracle: Oracle
) -> None:
    random = Random(seed)
    case = random_case(random)
    case.options["changelog-producer"] = random.choice(["lookup", "none"])
    shape = native_table(tmp_path / "shape", case.columns, keys=["k"], options=case.options)
    batches = [_java_rows(shape, batch) for batch in case.batches]
    compact = [random.choice(["none", "auto", "full"]) for _ in batches]
    oracle.write_spec(_spec(case, batches, compact), tmp_path, tmp_path)
    found = case.settled(_own(open_native(tmp_path)))
    assert found == case.settled(oracle.read(tmp_path, "db", "t"))


def test_the_first_row_is_visible_once_java_has_compacted(tmp_path: Path, oracle: Oracle) -> None:
    options = {"bucket": "1", "merge-engine": "first-row", "ignore-delete": "true"}
    table = native_table(tmp_path, [("k", "INT"), ("v", "STRING")], keys=["k"], options=options)
    put(table, [{"k": 1, "v": "first"}, {"k": 1, "v": "second"}, {"k": 2, "_kind": 3}])
    put(table, [{"k": 1, "v": "third"}, {"k": 2, "v": "other"}])
    assert _own(table) == oracle.read(tmp_path, "db", "t") == []
    oracle.compact(tmp_path, "db", "t")
    rows = [{"k": 1, "v": "first"}, {"k": 2, "v": "other"}]
    assert _own(table) == oracle.read(tmp_path, "db", "t") == rows
    put(table, [{"k": 1, "v": "fourth"}, {"k": 3, "v": "new"}])
    assert _own(table) == oracle.read(tmp_path, "db", "t") == rows


def test_row_kinds_from_a_column_are_java_s(tmp_path: Path, oracle: Oracle) -> None:
    options = {"bucket": "1", "rowkind.field": "op"}
    columns = [("k", "INT"), ("op", "STRING"), ("v", "STRING")]
    table = native_table(tmp_path, columns, keys=["k"], options=options)
    put(table, [{"k": n, "op": "+I", "v": "a"} for n in range(4)])
    put(table, [{"k": 1, "op": "-D", "v": "a"}, {"k": 2, "op": "+U", "v": "b", "_kind": 3}])
    assert [row["k"] for row in _own(table)] == [0, 2, 3]
    assert _own(table) == oracle.read(tmp_path, "db", "t")
    with pytest.raises(UnsupportedError, match=r"'rowkind\.field' holds something else"):
        put(table, [{"k": 1, "op": "delete"}])


@pytest.mark.parametrize("order", ["ascending", "descending"])
def test_nulls_are_the_oldest_in_either_order(order: str, tmp_path: Path, oracle: Oracle) -> None:
    options = {"bucket": "1", "sequence.field": "s, t", "sequence.field.sort-order": order}
    columns = [("k", "INT"), ("s", "INT"), ("t", "DOUBLE"), ("v", "INT")]
    table = native_table(tmp_path, columns, keys=["k"], options=options)
    cells = [None, -1, 7]
    pairs = [(s, t) for s in cells for t in (None, -0.0, 0.0, 2.5)]
    for k, first in enumerate(pairs):
        for n, (s, t) in enumerate([first, *pairs[k:]]):
            put(table, [{"k": k, "s": s, "t": t, "v": n}])
    assert _own(table) == oracle.read(tmp_path, "db", "t")


WRONG: Any = {
    "unknown sequence field": {"sequence.field": "x"},
    "sequence field twice": {"sequence.field": "v,v"},
    "aggregated sequence field": {
        "merge-engine": "aggregation", "sequence.field": "v", "fields.v.aggregate-function": "sum",
    },
    "first-row by sequence": {"merge-engine": "first-row", "sequence.field": "v"},
    "first-row with input": {"merge-engine": "first-row", "changelog-producer": "input"},
    "unknown row kind column": {"rowkind.field": "x"},
    "unknown column": {"fields.x.aggregate-function": "sum"},
    "unknown group column": {"merge-engine": "partial-update", "fields.v.sequence-group": "x"},
    "column in two groups": {
        "merge-engine": "partial-update", "fields.v.sequence-group": "a",
        "fields.w.sequence-group": "a",
    },
    "function without group": {
        "merge-engine": "partial-update", "fields.a.aggregate-function": "sum",
    },
    "ignored and removed": {
        "merge-engine": "partial-update", "ignore-delete": "true",
        "partial-update.remove-record-on-delete": "true",
    },
    "groups and removal": {
        "merge-engine": "partial-update", "fields.v.sequence-group": "a",
        "partial-update.remove-record-on-delete": "true",
    },
    "removal by no group": {
        "merge-engine": "partial-update", "fields.v.sequence-group": "a",
        "partial-update.remove-record-on-sequence-group": "a",
    },
    "unknown function": {"merge-engine": "aggregation", "fields.a.aggregate-function": "total"},
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_options_that_java_refuses_are_refused(name: str, tmp_path: Path, oracle: Oracle) -> None:
    columns = [("k", "INT"), ("v", "INT"), ("w", "INT"), ("a", "INT")]
    with pytest.raises(ConfigError):
        native_table(tmp_path / "own", columns, keys=["k"], options=WRONG[name])
    fields = [{"name": column, "type": t} for column, t in columns]
    spec = {"fields": fields, "primaryKey": ["k"], "options": {"bucket": "1", **WRONG[name]}}
    with pytest.raises(OracleError):
        oracle.write_spec({**spec, "steps": []}, tmp_path / "java", tmp_path)


AGGREGATION = {"bucket": "1", "merge-engine": "aggregation"}
CHANGED: Mapping[str, tuple[Any, dict[str, str], list[Any]]] = {
    "sums that do not fit": (
        "TINYINT", {**AGGREGATION, "fields.v.aggregate-function": "sum"}, [100, 100],
    ),
    "the zeros of a sequence field": (
        "DOUBLE", {"bucket": "1", "sequence.field": "v"}, [0.0, -0.0],
    ),
    "more rows in a first value than its limit": (
        ROWS,
        {
            **AGGREGATION, "fields.v.aggregate-function": "nested_update",
            "fields.v.count-limit": "1",
        },
        [[(2, "x"), (3, "y")], None],
    ),
    "a row of a nested key that is there once the limit is reached": (
        ROWS,
        {
            **AGGREGATION, "fields.v.aggregate-function": "nested_update",
            "fields.v.nested-key": "id", "fields.v.count-limit": "1",
        },
        [[(2, "x")], [(2, "y")]],
    ),
    "only empty texts of listagg": (
        "STRING", {**AGGREGATION, "fields.v.aggregate-function": "listagg"}, [None, ""],
    ),
    "a nested key twice in one value": (
        ROWS,
        {
            **AGGREGATION, "fields.v.aggregate-function": "nested_partial_update",
            "fields.v.nested-key": "id",
        },
        [[(2, "x"), (2, "y")], None],
    ),
}  # fmt: skip
"""Where Java 2.0 reads other rows than 1.4: the type of a column, options, and cells of one key."""


@pytest.mark.parametrize("name", CHANGED)
def test_rows_are_those_of_java_1_4_where_java_2_0_has_changed(
    name: str, tmp_path: Path, oracle: Oracle, oracle_2: Oracle
) -> None:
    t, options, cells = CHANGED[name]
    columns = [("k", "INT"), ("v", t), ("n", "INT")]
    table = native_table(tmp_path, columns, keys=["k"], options=options)
    for n, cell in enumerate(cells):
        put(table, [{"k": 1, "v": cell, "n": n}])
    assert oracle.read(tmp_path, "db", "t") == _own(table)
    try:
        assert oracle_2.read(tmp_path, "db", "t") != _own(table)
    except OracleError as error:
        assert "byte overflow" in str(error)


@pytest.mark.parametrize(
    ("function", "before", "after"),
    [
        ("sum", "INT", "STRING"), ("product", "INT", "STRING"), ("bool_or", "BOOLEAN", "STRING"),
        ("listagg", "STRING", "INT"), ("rbm32", "BYTES", "STRING"),
    ],
)  # fmt: skip
def test_a_type_that_java_changed_and_its_function_does_not_fit_is_named_where_java_fails(
    function: str, before: str, after: str, tmp_path: Path, oracle: Oracle
) -> None:
    option = "fields.v.aggregate-function"
    options = {**AGGREGATION, option: function}
    table = native_table(tmp_path, [("k", "INT"), ("v", before)], keys=["k"], options=options)
    put(table, [{"k": 1, "v": None}])
    change = {"alter": [{"op": "type", "name": ["v"], "type": after}]}
    oracle.write_spec({"existing": True, "steps": [change]}, tmp_path, tmp_path)
    # A single file needs no merge.
    assert _own(open_native(tmp_path)) == oracle.read(tmp_path, "db", "t")
    put(table, [{"k": 1, "v": None}])
    table = open_native(tmp_path)
    way_out = f"set '{option}' to a function of this type, such as 'last_non_null_value'"
    message = re.escape(f"table db.t: aggregate function '{function}' of column 'v' needs ")
    for use in (_own, partial(compact_table, now_ms=NOW_MS, full=True)):
        with pytest.raises(UnsupportedError, match=f"{message}.*, not {after}; {way_out}"):
            use(table)
    with pytest.raises(OracleError, match="Data type for"):
        oracle.read(tmp_path, "db", "t")
    table = alter(table, SetOption(option, "last_non_null_value"))
    assert _own(table) == oracle.read(tmp_path, "db", "t")


@pytest.mark.parametrize(("function", "t"), [("rbm32", "BYTES"), ("rbm64", BITMAPS_64)])
def test_bitmaps_are_united_to_the_same_bytes(
    function: str, t: str, tmp_path: Path, oracle: Oracle, oracle_2: Oracle
) -> None:
    options = {
        "bucket": "1",
        "merge-engine": "aggregation",
        "fields.v.aggregate-function": function,
    }
    table = native_table(tmp_path, [("k", "INT"), ("v", t)], keys=["k"], options=options)
    for cell in CELLS[t]:
        put(table, [{"k": 1, "v": cell}, {"k": 2, "v": None}, {"k": len(cell), "v": cell}])
    read = _own(table)
    assert oracle.read(tmp_path, "db", "t") == oracle_2.read(tmp_path, "db", "t") == read
    oracle.compact(tmp_path, "db", "t")
    assert _own(table) == oracle.read(tmp_path, "db", "t") == read
