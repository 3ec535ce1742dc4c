"""Values at the edges of their types: far timestamps, blanks of CHAR, NaN in ORC."""

import json
from pathlib import Path
from typing import Any

import pytest

from ingestd.paimon.casts.rows_json import json_lines, sorted_json_lines
from ingestd.paimon.spec.predicate import Comparison
from ingestd.paimon.table.compact.table_compact import compact_table
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.read.table_read import read_table
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.native_tables import NOW_MS, native_table, put, rows_table
from tests.support.oracle import Oracle

pytestmark = pytest.mark.compat

NAN = float("nan")
YEAR_1_MS, YEAR_9999_MS = -62_135_596_800_000, 253_402_300_799_999


def _lines(table: FileStoreTable, predicate: Any = None) -> list[str]:
    return sorted_json_lines(read_table(table, predicate=predicate), table.schema.fields)


def _in_java(table: FileStoreTable, rows: list[dict[str, Any]]) -> list[Any]:
    """Rows as the oracle takes them."""
    fields = table.schema.fields
    return [json.loads(line) for line in json_lines(rows_table(table.schema, rows), fields)]


LISTS = {"type": "ARRAY", "element": "TIMESTAMP(6)"}
MAPS = {"type": "MAP", "key": "TIMESTAMP(0)", "value": "DECIMAL(18, 0)"}
ROWS = {"type": "ROW", "fields": [{"id": 70, "name": "x", "type": "TIMESTAMP(3)"}]}
TIMES: list[tuple[str, Any]] = [
    ("k", "TIMESTAMP(9)"), ("t3", "TIMESTAMP(3)"), ("t6", "TIMESTAMP(6)"),
    ("z6", "TIMESTAMP(6) WITH LOCAL TIME ZONE"), ("n", "BIGINT"), ("d", "DECIMAL(18, 2)"),
    ("lists", LISTS), ("maps", MAPS), ("rows", ROWS),
]  # fmt: skip


@pytest.mark.parametrize("encoding", ["plain", "delta"])
def test_only_nanoseconds_are_int96_whatever_is_beside_them(
    encoding: str, tmp_path: Path, oracle: Oracle
) -> None:
    options = {"bucket": "1", "target-file-size": "1 b", "ingestd.number-encoding": encoding}
    table = native_table(tmp_path, TIMES, keys=["k"], options=options)
    rows = [
        {
            "k": k, "t3": ms, "t6": ms * 1000 + 1, "z6": ms * 1000, "n": k, "d": None,
            "lists": [ms * 1000, None], "maps": [(ms // 1000 * 1000, 7)], "rows": (ms,),
        }
        for k, ms in [(-(2**63), YEAR_1_MS), (2**63 - 1, YEAR_9999_MS), (-1, -1), (0, 0)]
    ]  # fmt: skip
    put(table, rows)
    put(table, [{"k": 2**63 - 1, "t3": 5}, {"k": 10**18 + 1}])
    for _ in range(2):
        lines = _lines(table)
        assert len(lines) == 5
        assert lines == oracle.read_lines(tmp_path, "db", "t")
        for name, cell, text in [
            ("t3", 0, "1970-01-01T00:00:00.000"),
            ("t6", YEAR_9999_MS * 1000, "9999-12-31T23:59:59.999000"),
            ("z6", 0, "1970-01-01T00:00:00.000000Z"),
        ]:
            found = _lines(table, Comparison(name, "<", cell))
            assert found == oracle.read_lines(tmp_path, "db", "t", "--filter", f"{name}<{text}")
            assert 0 < len(found) < 4
        assert verify(table) == []
        assert compact_table(table, now_ms=NOW_MS, full=True).status in ("compacted", "nothing")
    assert oracle.fsck(tmp_path, "db", "t", "--all") == []


@pytest.mark.parametrize("bucket", ["1", "-1"])
def test_char_values_of_orc_files_have_no_blanks_at_their_end(
    bucket: str, tmp_path: Path, oracle: Oracle
) -> None:
    inner = {"type": "ROW", "fields": [{"id": 80, "name": "c", "type": "CHAR(4)"}]}
    columns: list[tuple[str, Any]] = [
        ("k", "CHAR(3)"), ("c", "CHAR(5)"), ("v", "VARCHAR(5)"),
        ("a", {"type": "ARRAY", "element": "CHAR(3)"}),
        ("m", {"type": "MAP", "key": "CHAR(2) NOT NULL", "value": inner}), ("r", inner),
    ]  # fmt: skip
    options = {"bucket": bucket, "file.format": "orc"}
    table = native_table(tmp_path, columns, keys=["k"], options=options)
    java = [
        {"k": k, "c": k, "v": f"{k} ", "a": [k, None], "m": [(k[:2], (k,))], "r": (k,)}
        for k in ("a", "éé", "", "abc")
    ]
    oracle.append(tmp_path, "db", "t", _in_java(table, [*java, {"k": "n"}]), tmp_path)
    assert _lines(table) == oracle.read_lines(tmp_path, "db", "t")
    put(table, [{"k": "a", "c": "x ", "v": "x "}, {"k": "abc", "_kind": 3}])
    for _ in range(2):
        lines = _lines(table)
        assert [json.loads(line)["k"] for line in lines] == ["", "a", "n", "éé"]
        assert lines == oracle.read_lines(tmp_path, "db", "t")
        assert verify(table) == []
        compact_table(table, now_ms=NOW_MS, full=True)


@pytest.mark.parametrize("kind", ["bitmap", "bloom-filter", "range-bitmap"])
def test_blanks_that_orc_loses_hide_no_row_and_are_no_damage(
    kind: str, tmp_path: Path, oracle: Oracle
) -> None:
    columns = [("p", "CHAR(3)"), ("k", "INT"), ("c", "CHAR(3)")]
    options = {"bucket": "1", "file.format": "orc", f"file-index.{kind}.columns": "c"}
    table = native_table(tmp_path, columns, keys=["p", "k"], partitions=["p"], options=options)
    put(table, [{"p": "x  ", "k": 1, "c": "y  "}, {"p": "x  ", "k": 2, "c": "z"}])
    rows = _in_java(table, [{"p": "x  ", "k": 3, "c": "y  "}, {"p": "x", "k": 4, "c": "y"}])
    oracle.append(tmp_path, "db", "t", rows, tmp_path)
    lines = _lines(table)
    assert lines == oracle.read_lines(tmp_path, "db", "t")
    # Java's own filter misses rows, by the indexes.
    assert _lines(table, Comparison("c", "=", "y")) == [line for line in lines if '"y"' in line]
    assert len([line for line in lines if '"c":"y"' in line]) == 3
    assert verify(table) == []


def test_bounds_of_java_in_orc_that_leave_nan_out_are_no_damage(
    tmp_path: Path, oracle: Oracle
) -> None:
    columns = [("k", "DOUBLE"), ("i", "INT"), ("v", "FLOAT")]
    options = {"bucket": "1", "file.format": "orc"}
    table = native_table(tmp_path, columns, keys=["i", "k"], options=options)
    for start, values in enumerate(([1.0, NAN], [NAN, 1.0], [NAN])):
        # In Java a NaN in a key is equal to every number.
        rows = [{"k": v, "i": 9 * start + n, "v": v} for n, v in enumerate(values)]
        oracle.append(tmp_path, "db", "t", _in_java(table, rows), tmp_path)
        assert verify(table) == []
    # Java's own filter misses a row, by these bounds.
    nans = [line for line in oracle.read_lines(tmp_path, "db", "t") if '"k":"NaN"' in line]
    assert _lines(table, Comparison("k", ">", 5.0)) == nans
    assert len(nans) == 3
