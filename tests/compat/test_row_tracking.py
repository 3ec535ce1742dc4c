"""Tables with row ids, columns in several files and BLOBs: Java and ingestd read the same rows."""

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

from ingestd.cli.read_source import Request, requested_rows
from ingestd.errors import UnsupportedError
from ingestd.paimon.casts.rows_json import sorted_json_lines
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.predicate_text import parse_predicate
from ingestd.paimon.spec.schema_change import AddColumn, RenameColumn
from ingestd.paimon.table.commit.overwrite import drop_partitions
from ingestd.paimon.table.compact.table_compact import compact_table
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.partition_spec import parse_partition_spec
from ingestd.paimon.table.read.incremental_read import iter_changelog
from ingestd.paimon.table.read.table_read import read_table
from ingestd.paimon.table.rewrite.delete_rows import delete_rows
from ingestd.paimon.table.rewrite.sort_compact import sort_compact
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.native_tables import NOW_MS, alter, native_table, open_native, put
from tests.support.oracle import Oracle

pytestmark = pytest.mark.compat

TRACKED = {"bucket": "-1", "row-tracking.enabled": "true"}
EVOLVING = {**TRACKED, "data-evolution.enabled": "true"}


def fields(**types: Any) -> list[dict[str, Any]]:
    return [{"name": name, "type": t} for name, t in types.items()]


def agree(oracle: Oracle, warehouse: Path) -> list[str]:
    """Java reads the same rows with the same ids, and neither finds anything wrong."""
    table = open_native(warehouse)
    lines = sorted_json_lines(read_table(table), table.schema.fields)
    assert lines == oracle.read_lines(warehouse, "db", "t")
    tracked = tracked_lines(table)
    assert tracked == oracle.read_lines(warehouse, "db", "t$row_tracking")
    assert verify(table) == []
    return tracked


def tracked_lines(table: FileStoreTable, **how: Any) -> list[str]:
    printed = requested_rows(table, "row_tracking", Request(**how))
    parts = (sorted_json_lines(part, printed.fields) for part in printed.parts)
    return sorted(line for lines in parts for line in lines)


def test_ids_of_rows_and_their_snapshots_are_read(oracle: Oracle, tmp_path: Path) -> None:
    spec = {
        "fields": fields(k="INT", v="STRING", p="INT"),
        "partitionKeys": ["p"],
        "options": {**TRACKED, "deletion-vectors.enabled": "true"},
        "steps": [
            {"commit": {"rows": [{"k": k, "v": f"a{k}", "p": k % 2} for k in range(6)]}},
            {"commit": {"rows": [{"k": k, "v": f"b{k}", "p": 0} for k in range(6, 9)]}},
            {"delete": {"where": "k=2"}},
        ],
    }
    oracle.write_spec(spec, tmp_path, tmp_path)
    assert len(agree(oracle, tmp_path)) == 8
    oracle.write_spec({**spec, "existing": True, "steps": [{"compact": {}}]}, tmp_path, tmp_path)
    compacted = agree(oracle, tmp_path)
    wanted = {"where": "_ROW_ID >= 7 AND k > 0", "columns": "k,_ROW_ID"}
    found = ['{"k":7,"_ROW_ID":7}', '{"k":8,"_ROW_ID":8}']
    assert tracked_lines(open_native(tmp_path), **wanted) == found
    assert '{"k":8,"v":"b8","p":0,"_ROW_ID":8,"_SEQUENCE_NUMBER":2}' in compacted


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_columns_of_several_files_are_joined(
    oracle: Oracle, tmp_path: Path, file_format: str
) -> None:
    spec = {
        "fields": fields(k="INT", v="STRING", w="STRING"),
        "options": {**EVOLVING, "file.format": file_format},
        "steps": [
            {"commit": {"rows": [{"k": k, "v": f"a{k}"} for k in range(3)]}},
            {"commit": {"rows": [{"k": k, "v": f"b{k}", "w": "w"} for k in range(3, 6)]}},
            {"columns": {"columns": ["w"], "first": 0, "rows": [{"w": x} for x in "xyz"]}},
            {"alter": [{"op": "add", "name": "n", "type": "INT"}]},
            {"alter": [{"op": "rename", "name": "v", "to": "u"}]},
            {"columns": {"columns": ["n", "w"], "first": 3,
                         "rows": [{"n": i, "w": f"q{i}"} for i in range(3)]}},
            {"columns": {"columns": ["u"], "first": 0, "rows": [{"u": x} for x in "rst"]}},
        ],
    }  # fmt: skip
    oracle.write_spec(spec, tmp_path, tmp_path)
    assert '{"k":1,"u":"s","w":"y","n":null,"_ROW_ID":1,"_SEQUENCE_NUMBER":5}' in agree(
        oracle, tmp_path
    )
    table = open_native(tmp_path)
    for condition, count in (("w = 'q2'", 1), ("u = 'a1'", 0), ("n >= 1", 2), ("k < 2", 2)):
        predicate = parse_predicate(condition, table.schema.fields)
        assert read_table(table, predicate=predicate, columns=["w"]).num_rows == count
    assert read_table(table, columns=["n"]).column("n").to_pylist() == [None] * 3 + [0, 1, 2]
    with pytest.raises(UnsupportedError, match="its changes cannot be read"):
        next(iter_changelog(table))


def test_blob_columns_are_read(oracle: Oracle, tmp_path: Path) -> None:
    rows = [{"k": k, "b": None if k % 4 == 1 else bytes([k] * k * 9).hex()} for k in range(12)]
    spec = {
        "fields": fields(k="INT", b="BLOB", c="BLOB"),
        "options": {**EVOLVING, "blob.target-file-size": "200 b"},
        "steps": [
            {"commit": {"rows": [{**row, "c": "00ff"} for row in rows]}},
            {"columns": {"columns": ["k", "c"], "first": 0,
                         "rows": [{"k": 7, "c": "01"} for _ in rows]}},
        ],
    }  # fmt: skip
    oracle.write_spec(spec, tmp_path, tmp_path)
    assert len(agree(oracle, tmp_path)) == len(rows)
    table = open_native(tmp_path)
    blobs = [path for path in (tmp_path / "db.db/t/bucket-0").iterdir() if path.suffix == ".blob"]
    assert len(blobs) > 4
    assert read_table(table, columns=["c"]).column("c").to_pylist() == [b"\1"] * len(rows)


@pytest.mark.parametrize("stats_mode", ["none", "full"])
def test_both_write_and_compact_rows_with_ids(
    oracle: Oracle, tmp_path: Path, stats_mode: str
) -> None:
    columns = [("k", "INT"), ("v", "STRING"), ("p", "INT")]
    options = {**TRACKED, "fields.p.stats-mode": stats_mode}
    native_table(tmp_path, columns, partitions=["p"], options=options)
    for turn in range(4):
        table = open_native(tmp_path)
        put(table, [{"k": 4 * turn + i, "v": f"a{i}", "p": i % 2} for i in range(3)])
        spec = {"existing": True, "steps": [{"commit": {
            "identifier": turn + 1, "rows": [{"k": 4 * turn + 3, "v": "java", "p": 0}],
        }}]}  # fmt: skip
        oracle.write_spec(spec, tmp_path, tmp_path)
        assert ids(agree(oracle, tmp_path)) == list(range(4 * turn + 4))
    before = agree(oracle, tmp_path)
    compact_table(open_native(tmp_path), full=True, now_ms=NOW_MS)
    assert agree(oracle, tmp_path) == before
    put(open_native(tmp_path), [{"k": 99, "v": "z", "p": 1}])
    before = agree(oracle, tmp_path)
    assert ids(before)[-1] == 16
    oracle.compact(tmp_path, "db", "t")
    list(sort_compact(open_native(tmp_path), ["v"], clock_ms=lambda: NOW_MS))
    assert agree(oracle, tmp_path) == before
    table = open_native(tmp_path)
    delete_rows(table, lambda rows: rows.column("k").to_numpy() == 99, ["k"], now_ms=NOW_MS)
    assert agree(oracle, tmp_path) == before[:-1]
    assert oracle.fsck(tmp_path, "db", "t", "--all", "--orphans") == []
    assert len(oracle.read(tmp_path, "db", "t", "--filter", "k=7")) == 1


def ids(lines: list[str]) -> list[int]:
    return sorted(json.loads(line)["_ROW_ID"] for line in lines)


LONG = bool(os.environ.get("INGESTD_LONG"))
Turn = tuple[list[dict[str, Any]], set[int]]
"""The rows that a turn adds, and the keys of those that it deletes."""
INT = parse_type("INT")


MORE: list[dict[str, str]] = [
    {},
    {"deletion-vectors.bitmap64": "true"},
    {"data-file.path-directory": "some/files"},
    {"data-file.external-paths.strategy": "round-robin"},
    {"file-index.bitmap.columns": "k", "file-index.bsi.columns": "p"},
    {"file-index.range-bitmap.columns": "k", "file-index.bloom-filter.columns": "v"},
]


class TrackedLife:
    """A table with row ids that both write, by a seed; a row keeps its id and its snapshot."""

    def __init__(self, seed: int, oracle: Oracle, newer: Oracle, folder: Path) -> None:
        self.random, self.oracle, self.folder = random.Random(seed), oracle, folder
        self.newer = newer
        self.vectors = self.random.random() < 0.5
        # Java cannot read the row ids of Avro files: it counts the columns without them.
        options = {
            **TRACKED, "file.format": self.random.choice(["parquet", "orc"]),
            "metadata.stats-mode": self.random.choice(["none", "full", "truncate(16)"]),
            "deletion-vectors.enabled": str(self.vectors).lower(), "manifest.merge-min-count": "3",
            "target-file-size": self.random.choice(["1 b", "128 mb"]),
            **self.random.choice(MORE),
        }  # fmt: skip
        if "data-file.external-paths.strategy" in options:
            options["data-file.external-paths"] = f"file://{folder}/a,file://{folder}/b"
        native_table(folder, [("k", "INT"), ("v", "STRING"), ("p", "INT")], partitions=["p"],
                     options=options)  # fmt: skip
        self.known: dict[int, dict[str, Any]] = {}
        self.next_key, self.newest = 0, -1
        self.text = "v"

    def turn(self) -> None:
        turns = [self.put, self.put, self.commit, self.commit, self.compact, self.java_compacts,
                 self.sort, self.delete, self.drop, self.alter]  # fmt: skip
        before = dict(self.known)
        new, gone = self.random.choice(turns)(open_native(self.folder))
        self._compare(before, new, gone)

    def put(self, table: FileStoreTable) -> Turn:
        rows = self._rows()
        put(table, rows)
        return rows, set()

    def commit(self, table: FileStoreTable) -> Turn:
        rows = self._rows()
        self._java({"commit": {"rows": rows, "user": f"u{self.next_key}"}})
        return rows, set()

    def compact(self, table: FileStoreTable) -> Turn:
        compact_table(table, full=True, now_ms=NOW_MS)
        return [], set()

    def java_compacts(self, table: FileStoreTable) -> Turn:
        if self.known:
            self.oracle.compact(self.folder, "db", "t")
        return [], set()

    def sort(self, table: FileStoreTable) -> Turn:
        list(sort_compact(table, [self.text], clock_ms=lambda: NOW_MS))
        return [], set()

    def delete(self, table: FileStoreTable) -> Turn:
        key = self.random.choice(sorted(row["k"] for row in self.known.values()) or [-1])
        if not self.vectors:
            delete_rows(table, lambda r: r.column("k").to_numpy() == key, ["k"], now_ms=NOW_MS)
        elif self.known:
            self._java({"delete": {"where": f"k={key}"}})
        return [], {key}

    def drop(self, table: FileStoreTable) -> Turn:
        drop_partitions(table, [parse_partition_spec(table, "p=0")], now_ms=NOW_MS)
        return [], {row["k"] for row in self.known.values() if row["p"] == 0}

    def alter(self, table: FileStoreTable) -> Turn:
        new = "w" if self.text == "v" else "v"
        alter(table, RenameColumn(self.text, new), AddColumn(f"e{table.schema.id}", INT))
        self.text = new
        return [], set()

    def _rows(self) -> list[dict[str, Any]]:
        first, count = self.next_key, self.random.randint(1, 4)
        self.next_key += count
        keys = range(first, self.next_key)
        return [{"k": key, self.text: f"{key % 5}", "p": self.random.randrange(2)} for key in keys]

    def _java(self, step: dict[str, Any]) -> None:
        self.oracle.write_spec({"existing": True, "steps": [step]}, self.folder, self.folder)

    def _compare(
        self, before: dict[int, dict[str, Any]], new: list[dict[str, Any]], gone: set[int]
    ) -> None:
        lines = [json.loads(line) for line in agree(self.oracle, self.folder)]
        assert lines == [json.loads(line) for line in agree(self.newer, self.folder)]
        self.known = {line["_ROW_ID"]: _plain(line, self.text) for line in lines}
        assert len(self.known) == len(lines)
        left = {number: row for number, row in before.items() if row["k"] not in gone}
        added = self.known.keys() - left.keys()
        assert sorted(self.known[number]["k"] for number in added) == [row["k"] for row in new]
        assert {number: self.known[number] for number in left} == left
        assert all(number > self.newest for number in added)
        self.newest = max([self.newest, *added])


def _plain(line: dict[str, Any], text: str) -> dict[str, Any]:
    return {"k": line["k"], "v": line[text], "p": line["p"], "n": line["_SEQUENCE_NUMBER"]}


@pytest.mark.timeout(0 if LONG else 600)
@pytest.mark.parametrize("seed", range(300 if LONG else 3))
def test_a_row_keeps_its_id_whoever_writes_and_rewrites(
    seed: int, oracle: Oracle, oracle_2: Oracle, tmp_path: Path
) -> None:
    life = TrackedLife(seed, oracle, oracle_2, tmp_path)
    for _ in range(14):
        life.turn()
    assert oracle.fsck(tmp_path, "db", "t", "--all", "--orphans") == []
