from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from ingestd.paimon.spec.arrow import column_of
from ingestd.paimon.spec.bucket import (
    assigner_of,
    fixed_buckets,
    hash_bytes,
    hash_columns,
    hash_row,
    mod_buckets,
)
from ingestd.paimon.spec.data_types import DataType, parse_type
from ingestd.paimon.spec.index_manifest import decode_hash_index, decode_index_manifest
from ingestd.paimon.spec.paths import TablePaths
from tests.support.format_vectors import vector_type, vector_value, vectors
from tests.support.java_tables import JavaFile, java_data_files, table_files

JAVA_FILES = java_data_files()
ROWS = [row for row in vectors("binary_rows") if row["types"]]


@pytest.mark.parametrize("row", ROWS, ids=[row["name"] for row in ROWS])
def test_columns_hash_as_java_hashes_their_rows(row: dict[str, list[str]]) -> None:
    types = [vector_type(text) for text in row["types"]]
    values = [vector_value(t, raw) for t, raw in zip(types, row["values"], strict=True)]
    columns = [column_of([arrow_cell(t, v)] * 3, t) for t, v in zip(types, values, strict=True)]
    hashes = hash_columns(columns, types)
    assert hashes.dtype == np.int32
    assert hashes.tolist() == [row["hashCode"]] * 3
    assert hash_row(types, values) == row["hashCode"]


def arrow_cell(t: DataType, value: object) -> object:
    """Arrow takes rows by name only."""
    if isinstance(value, tuple):
        return {field.name: cell for field, cell in zip(t.fields, value, strict=True)}
    return value


def test_hash_of_the_empty_row_is_the_partition_hash_of_unpartitioned_tables() -> None:
    (empty,) = [row for row in vectors("binary_rows") if not row["types"]]
    assert hash_row((), ()) == empty["hashCode"]


@pytest.mark.parametrize("row", ROWS, ids=[row["name"] for row in ROWS])
def test_fixed_buckets_are_javas(row: dict[str, dict[str, int]]) -> None:
    hashes = np.array([row["hashCode"]], np.int32)
    found = {n: int(fixed_buckets(hashes, int(n))[0]) for n in row["buckets"]}
    assert found == row["buckets"]


def test_bytes_hash_as_java_hashes_them() -> None:
    for case in vectors("murmur_hash_bytes"):
        assert hash_bytes(case["utf8"].encode()) == case["hashBytes"]


def test_mod_buckets_are_javas() -> None:
    for case in vectors("mod_bucket"):
        assert mod_buckets(pa.array([case["value"]], pa.int64()), case["n"]).tolist() == [
            case["bucket"]
        ]


def test_assigners_are_javas() -> None:
    for case in vectors("assigner"):
        keys = np.array([case["keyHash"]], np.int32)
        channels, assigners = case["numChannels"], case["numAssigners"]
        found = assigner_of(case["partitionHash"], keys, channels, assigners)
        assert found.tolist() == [case["assigner"]]


def test_the_smallest_hash_has_a_bucket() -> None:
    smallest = np.array([-(1 << 31)], np.int32)
    assert fixed_buckets(smallest, 3).tolist() == [2]
    assert fixed_buckets(smallest, 1 << 30).tolist() == [0]


def test_rows_with_and_without_variable_parts_share_a_column() -> None:
    types = [parse_type("STRING"), parse_type("DECIMAL(20, 0)"), parse_type("STRING")]
    rows = [
        ("", None, "longer than seven"),
        ("exactly8", 5, None),
        (None, -(10**19), "中文中文"),
        ("x" * 100, 0, "y" * 9),
        ("inline", None, "seven77"),
    ]
    columns = [column_of([row[i] for row in rows], t) for i, t in enumerate(types)]
    expected = [hash_row(types, [row[0], decimal(row[1]), row[2]]) for row in rows]
    assert hash_columns(columns, types).tolist() == expected


def decimal(number: int | None) -> object:
    return column_of([number], parse_type("DECIMAL(20, 0)"))[0].as_py()


def test_columns_of_another_arrow_form_hash_like_the_declared_type() -> None:
    text, number = parse_type("STRING"), parse_type("BIGINT")
    plain = hash_columns([pa.array(["a", "b"]), pa.array([1, 2])], [text, number])
    other = hash_columns(
        [pa.array(["a", "b"], pa.large_string()), pa.array([1, 2], pa.int32())], [text, number]
    )
    assert plain.tolist() == other.tolist()


def test_columns_and_types_must_match() -> None:
    with pytest.raises(ValueError, match="0 columns for 0 types"):
        hash_columns([], [])
    with pytest.raises(ValueError, match="1 column for 2 types"):
        hash_columns([pa.array([1])], [parse_type("BIGINT"), parse_type("INT")])


def key_hashes(file: JavaFile) -> list[int]:
    fields, rows = file.schema.select(file.options.bucket_keys), file.rows()
    return hash_columns([rows.column(f.name) for f in fields], [f.type for f in fields]).tolist()


@pytest.mark.parametrize("file", [f for f in JAVA_FILES if f.entry.total_buckets > 0], ids=str)
def test_rows_of_java_files_hash_to_the_bucket_that_java_chose(file: JavaFile) -> None:
    hashes = np.array(key_hashes(file), np.int32)
    assert set(fixed_buckets(hashes, file.entry.total_buckets).tolist()) == {file.entry.bucket}


@pytest.mark.parametrize("path", table_files("pk_dynamic/manifest/index-manifest-*"), ids=str)
def test_hash_indexes_of_java_hold_hashes_of_keys_of_their_bucket(path: Path) -> None:
    table = path.parent.parent
    for entry in decode_index_manifest(path.read_bytes(), path.name):
        keys = {
            key
            for file in JAVA_FILES
            if file.table == table.name and file.entry.bucket == entry.bucket
            for key in key_hashes(file)
        }
        index = Path(TablePaths(str(table)).index(entry.file_name))
        hashes = decode_hash_index(index.read_bytes(), index.name)
        assert len(hashes) == entry.row_count
        assert set(hashes.tolist()) <= keys
