"""Deletion vectors and file indexes that were written here, judged by Java Paimon."""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ingestd.paimon.casts.rows_json import sorted_json_lines
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.file_index_bitmap import has_bitmap
from ingestd.paimon.spec.file_index_bsi import has_bsi
from ingestd.paimon.spec.file_index_range import has_range_bitmap
from ingestd.paimon.spec.hash64 import is_hashable
from ingestd.paimon.spec.predicate_text import parse_predicate
from ingestd.paimon.spec.snapshot import CommitKind, encode_snapshot
from ingestd.paimon.table.commit.manifest_writer import write_index_manifest, write_manifest_list
from ingestd.paimon.table.files.deletion_vectors import write_deletion_vectors
from ingestd.paimon.table.metadata.file_store_scan import live_files, snapshot_manifests
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.index_entries import IndexEntries, index_key
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.read.table_read import TableReader, index_entries, read_table
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.every_type import COLUMNS, ROWS
from tests.support.native_tables import native_table, open_native, put
from tests.support.oracle import Oracle

pytestmark = pytest.mark.compat


def _spec(options: Mapping[str, str]) -> dict[str, Any]:
    rows = [{"k": k, "v": f"v{k}"} for k in range(200)]
    return {
        "database": "db",
        "table": "t",
        "fields": [{"name": "k", "type": "INT NOT NULL"}, {"name": "v", "type": "STRING"}],
        "primaryKey": ["k"],
        "partitionKeys": [],
        "options": {"bucket": "2", "deletion-vectors.enabled": "true", **options},
        "steps": [{"commit": {"rows": rows, "compact": "full"}}],
    }


def _delete(table: FileStoreTable, deleted: Mapping[int, list[int]]) -> None:
    """A snapshot on top in which rows (positions by bucket) of each bucket's file are deleted."""
    snapshot = latest_snapshot(table.io, table.paths)
    assert snapshot is not None
    entries = {index_key(entry): entry for entry in index_entries(table, snapshot)}
    for file in live_files(table, snapshot):
        rows = np.array(deleted[file.bucket], np.int64)
        vectors = {file.file.file_name: rows} if len(rows) else {}
        entry = write_deletion_vectors(table, file.partition, file.bucket, vectors)
        entries[index_key(entry)] = entry
    found = dataclasses.replace(
        snapshot,
        id=snapshot.id + 1,
        commit_kind=CommitKind.OVERWRITE,
        commit_user="another",
        delta_record_count=0,
        index_manifest=write_index_manifest(table, IndexEntries(entries), ()),
        **_no_changes(table, snapshot),
    )
    assert table.io.try_write_atomic(table.paths.snapshot(found.id), encode_snapshot(found))
    table.io.overwrite(table.paths.latest_hint, str(found.id).encode())


def _no_changes(table: FileStoreTable, snapshot: Any) -> dict[str, Any]:
    """A base list with all manifests, and an empty delta list."""
    base, base_size = write_manifest_list(table, snapshot_manifests(table, snapshot))
    delta, delta_size = write_manifest_list(table, [])
    return {
        "base_manifest_list": base,
        "base_manifest_list_size": base_size,
        "delta_manifest_list": delta,
        "delta_manifest_list_size": delta_size,
    }


def _agreed(oracle: Oracle, table: FileStoreTable, warehouse: Path) -> list[Any]:
    lines = sorted_json_lines(read_table(table), table.schema.fields)
    assert lines == oracle.read_lines(warehouse, "db", "t")
    assert [p for p in oracle.fsck(warehouse, "db", "t") if p["severity"] == "error"] == []
    assert verify(table) == []
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("wide", ["false", "true"], ids=["32 bits", "64 bits"])
def test_java_heeds_deletion_vectors_of_ours_and_goes_on_with_them(
    wide: str, tmp_path: Path, oracle: Oracle
) -> None:
    spec = _spec({"deletion-vectors.bitmap64": wide})
    oracle.write_spec(spec, tmp_path, tmp_path)
    table = open_native(tmp_path)
    assert len(_agreed(oracle, table, tmp_path)) == 200
    _delete(table, {0: [0, 3, 4, 5], 1: list(range(50))})
    left = _agreed(oracle, table, tmp_path)
    assert len(left) == 200 - 54
    kept = left[0]["k"]
    changes = [{"k": kept, "v": "new"}, {"k": 1000, "v": "more"}]
    oracle.append(tmp_path, "db", "t", changes, tmp_path, "--compact", "auto")
    after = {row["k"]: row["v"] for row in _agreed(oracle, table, tmp_path)}
    assert after == {**{row["k"]: row["v"] for row in left}, kept: "new", 1000: "more"}


def test_java_takes_a_bucket_whose_deletion_vectors_are_gone(
    tmp_path: Path, oracle: Oracle
) -> None:
    oracle.write_spec(_spec({}), tmp_path, tmp_path)
    table = open_native(tmp_path)
    _delete(table, {0: [1], 1: [2]})
    assert len(_agreed(oracle, table, tmp_path)) == 198
    _delete(table, {0: [], 1: []})
    assert len(_agreed(oracle, table, tmp_path)) == 200


# Java cannot turn the earliest microseconds that there are into its own timestamps and back.
PLAIN = [(name, t) for name, text in COLUMNS if ((t := parse_type(text)).precision or 0) <= 3]
INDEXED = [name for name, t in PLAIN if is_hashable(t)]
BITMAPS = [name for name, t in PLAIN if has_bitmap(t)]
NUMBERS = [name for name, t in PLAIN if has_bsi(t)]
RANKED = [name for name, t in PLAIN if has_range_bitmap(t)]


@pytest.mark.parametrize("threshold", ["1 mb", "1 b"], ids=["embedded", "beside"])
@pytest.mark.parametrize("keys", [["id"], []], ids=["primary key", "append"])
def test_java_finds_no_fault_with_file_indexes_of_ours(
    threshold: str, keys: list[str], tmp_path: Path, oracle: Oracle
) -> None:
    options = {
        "file-index.bloom-filter.columns": ",".join(INDEXED),
        "file-index.bitmap.columns": ",".join(BITMAPS),
        "file-index.bsi.columns": ",".join(NUMBERS),
        "file-index.range-bitmap.columns": ",".join(RANKED),
        "file-index.in-manifest-threshold": threshold,
        **({"bucket": "1"} if keys else {}),
    }
    table = native_table(tmp_path, COLUMNS, keys=keys, options=options)
    put(table, ROWS)
    (entry,) = live_files(table, latest_snapshot(table.io, table.paths))
    assert (entry.file.embedded_index is None) == (threshold == "1 b")
    assert len(entry.file.extra_files) == (1 if threshold == "1 b" else 0)
    assert oracle.fsck(tmp_path, "db", "t", "--orphans") == []
    assert verify(table) == []


@pytest.mark.parametrize("kind", ["bloom-filter", "bitmap"])
def test_java_skips_files_by_indexes_of_ours_and_finds_all_rows(
    kind: str, tmp_path: Path, oracle: Oracle
) -> None:
    columns = [
        ("k", "INT"),
        ("s", "STRING"),
        ("b", "BIGINT"),
        ("t", "TIMESTAMP(6)"),
        ("f", "FLOAT"),
    ]
    options = {
        f"file-index.{kind}.columns": "k,s,b,t,f",
        "file-index.in-manifest-threshold": "1 mb",
        "metadata.stats-mode": "none",
    }
    table = native_table(tmp_path, columns, options=options)
    for part in range(3):
        rows = [
            {
                "k": n * 7,
                "s": f"s{n % 9}" if n % 5 else None,
                "b": n % 11,
                "t": n * 10**6,
                "f": n / 4,
            }
            for n in range(part * 100, part * 100 + 100)
        ]
        put(table, rows)
    assert oracle.fsck(tmp_path, "db", "t") == []
    for text in ("k=714", "k=5", "s=s3", "s=nope", "b=4", "s=null", "f=30.25", "f=30.3"):
        column, value = text.split("=")
        where = f"{column} IS NULL" if value == "null" else f"{column} = '{value}'"
        predicate = parse_predicate(where, table.schema.fields)
        found = read_table(table, predicate=predicate)
        lines = sorted_json_lines(found, table.schema.fields)
        assert lines == oracle.read_lines(tmp_path, "db", "t", "--filter", text), text
    snapshot = latest_snapshot(table.io, table.paths)
    assert snapshot is not None
    plan = TableReader(table, predicate=parse_predicate("k = 714", table.schema.fields)).plan(
        snapshot
    )
    assert (plan.files_read, dict(plan.files_skipped)) == (1, {"file index": 2})
