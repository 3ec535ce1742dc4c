"""Tables of Java's with options and types that seldom meet, read here as Java reads them."""

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from ingestd.errors import UnsupportedError
from ingestd.paimon.casts.rows_json import json_lines, sorted_json_lines
from ingestd.paimon.spec.predicate_text import parse_predicate
from ingestd.paimon.table.compact.table_compact import compact_table
from ingestd.paimon.table.files.data_files import stored_rows
from ingestd.paimon.table.metadata.file_store_scan import live_files
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import (
    latest_snapshot,
    read_snapshot,
    snapshot_ids,
)
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.read.incremental_read import change_fields, iter_changelog
from ingestd.paimon.table.read.table_read import read_table
from ingestd.paimon.table.retention.referenced_files import data_paths
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.native_tables import NOW_MS, native_table, open_native, put
from tests.support.oracle import Oracle

pytestmark = pytest.mark.compat

ROW = {
    "type": "ROW",
    "fields": [
        {"id": 50, "name": "q", "type": "INT NOT NULL"},
        {"id": 51, "name": "w", "type": {"type": "ARRAY", "element": "VARCHAR(5)"}},
    ],
}
FIELDS: list[tuple[str, Any]] = [
    ("k", "INT NOT NULL"), ("v", "STRING"), ("r", ROW), ("l", {"type": "ARRAY", "element": ROW}),
    ("m", {"type": "MAP", "key": "DATE", "value": ROW}),
]  # fmt: skip
CELL = {"q": 5, "w": ["abc", None]}
FULL = {"v": "x", "r": CELL, "l": [CELL, None], "m": [["2020-01-02", CELL], ["2020-01-03", None]]}
OPTIONS: dict[str, dict[str, str]] = {
    "ORC": {"file.format": "orc"},
    "Avro": {"file.format": "avro"},
    "Parquet": {"parquet.page.size": "64", "parquet.writer.version": "PARQUET_2_0"},
    "thin files": {"data-file.thin-mode": "true"},
    "a folder of their own": {"data-file.path-directory": "data/files"},
    "vectors, merged when read": {
        "deletion-vectors.enabled": "true", "deletion-vectors.merge-on-read": "true",
    },
    "vectors beside the files": {
        "deletion-vectors.enabled": "true", "index-file-in-data-file-dir": "true",
    },
    "other prefixes and formats of changes": {
        "changelog-producer": "input", "changelog-file.format": "orc", "data-file.prefix": "d-",
        "changelog-file.prefix": "c-", "file.suffix.include.compression": "true",
    },
    "snappy manifests": {"manifest.compression": "snappy", "manifest.merge-min-count": "2"},
}  # fmt: skip


def _spec(options: dict[str, str]) -> dict[str, Any]:
    first = [{"k": k, **FULL} for k in range(6)]
    second = [{"k": 2, "v": "new"}, {"k": 9, "r": {"q": 0, "w": None}, "l": [], "m": []}]
    return {
        "fields": [{"name": name, "type": t} for name, t in FIELDS],
        "primaryKey": ["k"],
        "options": {"bucket": "2", **options},
        "steps": [
            {"commit": {"rows": first, "compact": "none"}},
            {"commit": {"rows": [*second, {"k": 4, "_kind": "-D"}], "compact": "auto"}},
            {"commit": {"rows": [{"k": 1, "v": "last"}], "compact": "full"}},
        ],
    }


def _without(table: FileStoreTable, option: str) -> FileStoreTable:
    options = {name: value for name, value in table.schema.options.items() if name != option}
    return table.with_schema(dataclasses.replace(table.schema, options=options))


def test_what_is_merged_when_read_is_what_a_table_without_vectors_shows(
    tmp_path: Path, oracle: Oracle
) -> None:
    found = []
    for name, options in {"vectors": OPTIONS["vectors, merged when read"], "plain": {}}.items():
        oracle.write_spec(_spec(options), tmp_path / name, tmp_path)
        table = open_native(tmp_path / name)
        commits = [1, 2, snapshot_ids(table.io, table.paths)[-1]]
        rows = [read_table(table, snapshot_id=number) for number in commits]
        found.append([sorted_json_lines(row, table.schema.fields) for row in rows])
    assert found[0] == found[1]
    assert [len(lines) for lines in found[0]] == [6, 6, 6]


@pytest.mark.parametrize("judge", ["oracle", "oracle_2"])
@pytest.mark.parametrize("name", [*OPTIONS, "paths outside"])
def test_rows_and_changes_are_those_of_java(
    name: str, judge: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    oracle: Oracle = request.getfixturevalue(judge)
    options = OPTIONS.get(name) or {
        "data-file.external-paths": f"file://{tmp_path}/outside",
        "data-file.external-paths.strategy": "round-robin",
    }
    warehouse = tmp_path / "warehouse"
    oracle.write_spec(_spec(options), warehouse, tmp_path)
    table = open_native(warehouse)
    lines = sorted_json_lines(read_table(table), table.schema.fields)
    assert len(lines) == 6
    assert lines == oracle.read_lines(warehouse, "db", "t")
    for number in snapshot_ids(table.io, table.paths):
        then = table.at_schema(read_snapshot(table.io, table.paths, number).schema_id)
        if judge == "oracle":
            # Java 1.4 does not know the option yet, and shows compacted rows only.
            then = _without(then, "deletion-vectors.merge-on-read")
        found = sorted_json_lines(read_table(then, snapshot_id=number), then.schema.fields)
        wanted = oracle.read_lines(warehouse, "db", "t", "--snapshot", number)
        assert found == wanted, number
    fields = change_fields(table)
    changes = [line for part in iter_changelog(table) for line in json_lines(part, fields)]
    assert [json.loads(line) for line in changes] == oracle.changelog(warehouse, "db", "t") != []
    assert [one for one in verify(table) if one.severity == "error"] == []


def test_a_snapshot_of_a_later_version_reads_as_in_java(tmp_path: Path, oracle: Oracle) -> None:
    oracle.write_spec(_spec({}), tmp_path, tmp_path)
    for path in Path(tmp_path, "db.db/t/snapshot").glob("snapshot-*"):
        document = {**json.loads(path.read_text()), "version": 4, "laterKey": {"a": [1]}}
        path.write_text(json.dumps(document))
    table = open_native(tmp_path)
    lines = sorted_json_lines(read_table(table), table.schema.fields)
    assert lines == oracle.read_lines(tmp_path, "db", "t")
    put(table, [{"k": 77, "v": "ours"}])
    lines = sorted_json_lines(read_table(table), table.schema.fields)
    assert lines == oracle.read_lines(tmp_path, "db", "t")


@pytest.mark.parametrize(
    ("options", "message"),
    [({"file.format": "orc", "file.compression": "lzo"}, "ORC compression LZO is not supported"),
     ({"manifest.format": "orc"}, r"'manifest\.format' = 'orc'")],
)  # fmt: skip
def test_what_java_writes_and_cannot_be_read_here_is_unsupported_and_not_damaged(
    options: dict[str, str], message: str, tmp_path: Path, oracle: Oracle
) -> None:
    oracle.write_spec(_spec(options), tmp_path, tmp_path)
    table = open_native(tmp_path)
    with pytest.raises(UnsupportedError, match=message):
        read_table(table)
    with pytest.raises(UnsupportedError, match=r"LZO|manifest format ORC"):
        load_state(table) if "manifest.format" in options else list(_files(table))


def _files(table: FileStoreTable) -> Iterator[pa.Table]:
    for entry in live_files(table, latest_snapshot(table.io, table.paths)):
        (path, *_) = data_paths(table, entry)
        yield stored_rows(table, path, entry.file)


@pytest.mark.parametrize("strategy", ["round-robin", "entropy-inject", "a folder of their own"])
def test_java_reads_and_continues_files_at_other_places(
    strategy: str, tmp_path: Path, oracle: Oracle
) -> None:
    options = OPTIONS.get(strategy) or {
        "data-file.external-paths": f"file://{tmp_path}/a,file://{tmp_path}/b",
        "data-file.external-paths.strategy": strategy,
    }
    columns = [("k", "INT"), ("v", "STRING")]
    vectors = {"deletion-vectors.enabled": "true", "index-file-in-data-file-dir": "true"}
    table = native_table(
        tmp_path / "w", columns, keys=["k"], options={"bucket": "2", **vectors, **options}
    )
    put(table, [{"k": n, "v": "ours"} for n in range(20)])
    compact_table(table, full=True, now_ms=NOW_MS)
    put(table, [{"k": 3, "v": "new"}, {"k": 4, "_kind": 3}])
    compact_table(table, now_ms=NOW_MS)
    expected = {n: "new" if n == 3 else "ours" for n in range(20) if n != 4}
    assert {row["k"]: row["v"] for row in oracle.read(tmp_path / "w", "db", "t")} == expected
    more = [{"k": 5, "v": "java"}, {"k": 50, "v": "java"}]
    oracle.append(tmp_path / "w", "db", "t", more, tmp_path, "--compact", "full")
    expected |= {5: "java", 50: "java"}
    rows = read_table(open_native(tmp_path / "w")).to_pylist()
    assert {row["k"]: row["v"] for row in rows} == expected
    compact_table(open_native(tmp_path / "w"), full=True, now_ms=NOW_MS)
    assert {row["k"]: row["v"] for row in oracle.read(tmp_path / "w", "db", "t")} == expected


@pytest.mark.parametrize("name", ["thin files", "snappy manifests"])
def test_java_reads_and_continues_what_we_continue(
    name: str, tmp_path: Path, oracle: Oracle
) -> None:
    """Files of ours have the columns of Java's, and manifests of both are merged."""
    oracle.write_spec(_spec(OPTIONS[name]), tmp_path, tmp_path)
    table = open_native(tmp_path)
    of_java = set(map(_stored_columns, Path(table.path).glob("bucket-*/*.parquet")))
    for number in range(3):
        put(table, [{"k": 20 + number, "v": "ours", "l": []}])
    compact_table(table, full=True, now_ms=NOW_MS)
    assert set(map(_stored_columns, Path(table.path).glob("bucket-*/*.parquet"))) == of_java
    assert ("_KEY_k" in next(iter(of_java))) == (name != "thin files")
    oracle.append(tmp_path, "db", "t", [{"k": 21, "v": "java"}], tmp_path, "--compact", "full")
    lines = sorted_json_lines(read_table(table), table.schema.fields)
    assert lines == oracle.read_lines(tmp_path, "db", "t")
    assert {json.loads(line)["v"] for line in lines} >= {"ours", "java", "last"}
    assert verify(table) == []
    assert oracle.fsck(tmp_path, "db", "t", "--all") == []


def _stored_columns(path: Path) -> tuple[str, ...]:
    return tuple(parquet.read_schema(path).names)


@pytest.mark.parametrize("index", [{}, {"file-index.bitmap.columns": "x"}])
@pytest.mark.parametrize("file_format", ["parquet", "avro", "orc"])
def test_filters_of_nan_and_of_zeros_find_the_rows_that_java_finds(
    file_format: str, index: dict[str, str], tmp_path: Path, oracle: Oracle
) -> None:
    # One row a file, except in the last one: bounds in ORC lack NaN and signs, also for Java.
    cells: list[list[Any]] = [[-0.0], [0.0], ["NaN"], [7.5], [None], ["-Infinity"]]
    cells += [] if file_format == "orc" else [[5.0, "NaN", -0.0, 0.0, -3.0]]
    commits = [
        {"commit": {"rows": [{"k": 10 * n + i, "x": x} for i, x in enumerate(part)],
                    "compact": "none"}}
        for n, part in enumerate(cells)
    ]  # fmt: skip
    spec = {
        "fields": [{"name": "k", "type": "INT NOT NULL"}, {"name": "x", "type": "DOUBLE"}],
        "options": {"file.format": file_format, "bucket": "-1", **index},
        "steps": commits,
    }
    oracle.write_spec(spec, tmp_path, tmp_path)
    table = open_native(tmp_path)
    for value in ("0.0", "-0.0", "NaN", "5.0", "7.5", "1.0"):
        quoted = '"NaN"' if value == "NaN" else value
        wanted = oracle.read_lines(tmp_path, "db", "t", "--filter", f"x={quoted}")
        for where in (f"x = '{value}'", f"x IN ('{value}')"):
            predicate = parse_predicate(where, table.schema.fields)
            found = sorted_json_lines(read_table(table, predicate=predicate), table.schema.fields)
            assert found == wanted, where
    predicate = parse_predicate("x > '7.5'", table.schema.fields)
    above = read_table(table, predicate=predicate).column("k").to_pylist()
    assert sorted(above) == [20, 61][: len(cells) - 5]
