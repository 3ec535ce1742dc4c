"""File indexes of numbers, ranks and keys of maps: Java finds by ours what we find by Java's."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from ingestd.paimon.casts.rows_json import sorted_json_lines
from ingestd.paimon.library.open_table import Table
from ingestd.paimon.spec.file_index import FileIndexes, decode_file_index
from ingestd.paimon.spec.predicate_text import parse_predicate
from ingestd.paimon.spec.schema_change import SetOption
from ingestd.paimon.table.compact.table_compact import compact_table
from ingestd.paimon.table.files.data_file_indexes import encode_indexes, read_file_indexes
from ingestd.paimon.table.files.data_files import DataFileReader
from ingestd.paimon.table.metadata.file_store_scan import live_files
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.read.table_read import TableReader, read_table
from ingestd.paimon.table.rewrite.file_index_rewrite import rewrite_file_indexes
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.native_tables import NOW_MS, alter, native_table, open_native, put
from tests.support.oracle import Oracle, OracleError

pytestmark = pytest.mark.compat

COLUMNS: list[tuple[str, Any]] = [
    ("k", "INT"), ("n", "BIGINT"), ("d", "DECIMAL(9, 2)"), ("t", "TIMESTAMP(6)"),
    ("s", "STRING"), ("x", "DOUBLE"), ("m", {"type": "MAP", "key": "STRING", "value": "INT"}),
]  # fmt: skip
BASE = {"bucket": "-1", "metadata.stats-mode": "none", "file-index.in-manifest-threshold": "1 mb"}
INDEXES: dict[str, dict[str, str]] = {
    "bsi": {"file-index.bsi.columns": "k,n,d,t"},
    "range-bitmap": {
        "file-index.range-bitmap.columns": "k,n,d,t,s,x",
        "file-index.range-bitmap.s.chunk-size": "20 b",
        "file-index.range-bitmap.n.chunk-size": "16 b",
    },
    "bitmap of version 1": {
        "file-index.bitmap.columns": "k,n,t,s,x",
        **{f"file-index.bitmap.{name}.version": "1" for name in "kntsx"},
    },
}
CONDITIONS = [
    "k=105", "k!=105", "k<0", "k>=400", "n=-7000000000", "n<=0", "n>1400000000", "n=null",
    "d=0.25", "d<-1.50", "d>=22", "t=1970-01-01T00:00:00.000100", "t<1970-01-01T00:00:00",
    "s=s10", "s=zz", "s>s35", "s!=null", "x=7.25", "x<=-1.0", "x>97.5",
]  # fmt: skip


def row(i: int) -> dict[str, Any]:
    """A row in the form of the oracle; nulls and negative values are among them."""
    day = "1970-01-01T00:00:00" if i % 2 else "1969-12-31T23:59:59"
    values = {
        "k": i - 3, "n": (i % 11 - 5) * 1_400_000_000, "d": f"{i // 4 - 3}.{25 * (i % 4):02}",
        "t": f"{day}.{i * 100:06}", "s": f"s{i % 40}", "x": i / 4 - 2.0,
        "m": [["a", i % 7], ["c", None]] if i % 3 else [["b", i]],
    }  # fmt: skip
    gone = ("n", "d", "t", "s", "x", "m")[i % 6]
    return {**values, gone: None} if i % 5 == 0 else values


PARTS = [[row(i) for i in range(start, start + 100)] for start in (0, 100, 400)]


def spec(options: Mapping[str, str]) -> dict[str, Any]:
    fields = [{"name": name, "type": t} for name, t in COLUMNS]
    steps = [{"commit": {"rows": rows, "compact": "none"}} for rows in PARTS]
    return {"fields": fields, "options": {**BASE, **options}, "steps": steps}


def our_table(folder: Path, oracle: Oracle, options: Mapping[str, str]) -> FileStoreTable:
    """The same rows in as many files, written here: those of a table of Java without indexes."""
    oracle.write_spec(spec({}), folder / "java", folder)
    rows = read_table(open_native(folder / "java")).sort_by("k")
    table = native_table(folder / "ours", COLUMNS, options={**BASE, **options})
    for start in range(0, rows.num_rows, 100):
        Table(table).write(rows.slice(start, 100))
    return table


def where(condition: str) -> str:
    match = re.fullmatch(r"(\w+)([<>=!]+)(.*)", condition)
    assert match
    column, operator, value = match.groups()
    if value == "null":
        return f"{column} IS {'' if operator == '=' else 'NOT '}NULL"
    return f"{column} {operator} '{value}'"


def found(table: FileStoreTable, condition: str) -> list[str]:
    predicate = parse_predicate(where(condition), table.schema.fields)
    return sorted_json_lines(read_table(table, predicate=predicate), table.schema.fields)


def skipped(table: FileStoreTable, condition: str) -> dict[str, int]:
    snapshot = latest_snapshot(table.io, table.paths)
    assert snapshot is not None
    predicate = parse_predicate(where(condition), table.schema.fields)
    return dict(TableReader(table, predicate=predicate).plan(snapshot).files_skipped)


def both_indexes(table: FileStoreTable) -> Iterator[tuple[FileIndexes, FileIndexes]]:
    """The indexes of each file, and those that we write for its rows."""
    for entry in live_files(table, latest_snapshot(table.io, table.paths)):
        place = (entry.partition, entry.bucket, entry.file)
        stored = read_file_indexes(table, *place)
        encoded = encode_indexes(
            table.schema, DataFileReader(table).read(*place, table.schema.fields)
        )
        assert stored is not None
        assert encoded is not None
        yield stored, decode_file_index(encoded, "ours")


@pytest.mark.parametrize("kind", sorted(INDEXES))
def test_java_finds_by_indexes_of_ours_what_we_find(
    kind: str, tmp_path: Path, oracle: Oracle
) -> None:
    table = our_table(tmp_path, oracle, INDEXES[kind])
    assert oracle.fsck(tmp_path / "ours", "db", "t") == []
    assert verify(table) == []
    for condition in CONDITIONS:
        lines = oracle.read_lines(tmp_path / "ours", "db", "t", "--filter", condition)
        assert found(table, condition) == lines, condition
    assert skipped(table, "k=105") == {"file index": 2}
    assert skipped(table, "k>400") == {"file index": 2}
    assert skipped(table, "n!=null") == {}
    compact_table(table, now_ms=NOW_MS, full=True)
    assert oracle.fsck(tmp_path / "ours", "db", "t") == []
    assert oracle.read(tmp_path / "ours", "db", "t", "--filter", "k>=105") == [
        one for one in oracle.read(tmp_path / "java", "db", "t") if one["k"] >= 105
    ]


@pytest.mark.parametrize("kind", sorted(INDEXES))
def test_we_find_by_indexes_of_java_what_java_finds(
    kind: str, tmp_path: Path, oracle: Oracle
) -> None:
    oracle.write_spec(spec(INDEXES[kind]), tmp_path, tmp_path)
    table = open_native(tmp_path)
    assert verify(table) == []
    for condition in CONDITIONS:
        lines = oracle.read_lines(tmp_path, "db", "t", "--filter", condition)
        assert found(table, condition) == lines, condition
    assert skipped(table, "k=105") == {"file index": 2}
    assert skipped(table, "k<=90") == {"file index": 2}
    for java, ours in both_indexes(table):
        if kind == "bitmap of version 1":
            # The order of its values is that of a hash map of Java.
            assert {name: len(kinds["bitmap"] or b"") for name, kinds in java.items()} == {
                name: len(kinds["bitmap"] or b"") for name, kinds in ours.items()
            }
        else:
            assert java == ours


def test_indexes_of_keys_of_a_map_are_those_of_java(tmp_path: Path, oracle: Oracle) -> None:
    options = {
        "file-index.bloom-filter.columns": "m[a],m[b]",
        "file-index.bloom-filter.m.items": "50",
        "file-index.bloom-filter.m[b].fpp": "0.01",
    }
    oracle.write_spec(spec(options), tmp_path, tmp_path)
    table = open_native(tmp_path)
    assert verify(table) == []
    for java, ours in both_indexes(table):
        assert java == ours
        assert set(java) == {"m[a]", "m[b]"}
    Table(table).write(read_table(table).slice(0, 30))
    assert oracle.fsck(tmp_path, "db", "t") == []
    oracle.append(tmp_path, "db", "t", PARTS[0], tmp_path, "--compact", "full")
    assert verify(table) == []
    assert sorted_json_lines(read_table(table), table.schema.fields) == oracle.read_lines(
        tmp_path, "db", "t"
    )


def test_what_java_cannot_index_has_no_index(tmp_path: Path, oracle: Oracle) -> None:
    """The number -2^63 has no absolute value of 64 bits, and Java refuses it in a bsi index."""
    options = {**BASE, "file-index.bsi.columns": "n"}
    table = native_table(tmp_path, [("n", "BIGINT")], options=options)
    put(table, [{"n": -(1 << 63)}, {"n": 7}])
    put(table, [{"n": 8}])
    assert oracle.fsck(tmp_path, "db", "t") == []
    assert oracle.read(tmp_path, "db", "t", "--filter", "n<8") == [{"n": -(1 << 63)}, {"n": 7}]
    assert found(table, "n<8") == oracle.read_lines(tmp_path, "db", "t", "--filter", "n<8")
    with pytest.raises(OracleError):
        oracle.append(tmp_path, "db", "t", [{"n": -(1 << 63)}], tmp_path)


@pytest.mark.parametrize("kind", sorted(INDEXES))
def test_indexes_of_files_that_java_has_written_serve_both_javas(
    kind: str, tmp_path: Path, oracle: Oracle, oracle_2: Oracle
) -> None:
    oracle.write_spec(spec({}), tmp_path, tmp_path)
    table = open_native(tmp_path)
    changes = [SetOption(name, value) for name, value in INDEXES[kind].items()]
    table = alter(table, *changes)
    (done,) = rewrite_file_indexes(table, now_ms=NOW_MS)
    assert (done.files, done.indexed) == (len(PARTS), len(PARTS))
    for java in (oracle, oracle_2):
        assert java.fsck(tmp_path, "db", "t", "--all") == []
        for condition in CONDITIONS:
            lines = java.read_lines(tmp_path, "db", "t", "--filter", condition)
            assert found(table, condition) == lines, condition
    assert skipped(table, "k=105") == {"file index": 2}
    oracle.compact(tmp_path, "db", "t")
    assert verify(open_native(tmp_path)) == []
