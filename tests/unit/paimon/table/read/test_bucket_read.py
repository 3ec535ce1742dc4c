"""Sections of a bucket: files that have to be merged with each other."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.binary_row import comparable_key, serialize_row
from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.table.metadata.file_store_scan import live_files
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.read.bucket_read import BucketReader, is_ordered_by_age
from ingestd.paimon.table.read.scan_plan import group_by_bucket, sections
from tests.support.metadata_tables import data_file
from tests.support.native_tables import native_table, put

INT = [DataType("INT")]


def _file(name: str, low: int, high: int, newest: int = 0) -> DataFileMeta:
    return replace(
        data_file(name),
        min_key=serialize_row(INT, [low]),
        max_key=serialize_row(INT, [high]),
        max_sequence_number=newest,
    )


def _names(groups: list[list[DataFileMeta]]) -> list[list[str]]:
    return [[file.file_name for file in group] for group in groups]


def test_files_without_common_keys_are_sections_of_their_own() -> None:
    files = [_file("c", 20, 30), _file("a", -5, 3), _file("b", 4, 19)]
    assert _names(sections(INT, files)) == [["a"], ["b"], ["c"]]


def test_files_that_touch_are_one_section_from_old_to_new() -> None:
    files = [_file("new", 3, 9, 7), _file("old", 0, 3, 2), _file("apart", 10, 11, 1)]
    assert _names(sections(INT, files)) == [["old", "new"], ["apart"]]


def test_a_wide_file_holds_a_section_together() -> None:
    files = [_file("wide", 0, 100, 3), _file("a", 1, 2, 1), _file("b", 50, 60, 2)]
    assert _names(sections(INT, files)) == [["a", "b", "wide"]]


def test_files_of_equal_sequence_numbers_stay_in_commit_order() -> None:
    files = [_file("first", 0, 5), _file("second", 0, 5)]
    assert _names(sections(INT, files)) == [["first", "second"]]


def test_no_files_have_no_sections() -> None:
    assert sections(INT, []) == []


@pytest.mark.parametrize(
    ("root", "smaller", "greater"),
    [("STRING", "\uffff", "𝄞"), ("DOUBLE", 5.0, float("nan")), ("BYTES", b"\x7f", b"\x80")],
)
def test_keys_compare_as_in_files(root: str, smaller: Any, greater: Any) -> None:
    types = [DataType(root)]
    low, high = (serialize_row(types, [value]) for value in (smaller, greater))
    assert comparable_key(types, low) < comparable_key(types, high)


def test_a_bucket_comes_section_by_section() -> None:
    table = native_table(
        "/w", [("id", "INT"), ("v", "INT")], keys=["id"], options={"bucket": "1"}, io=MemoryFileIO()
    )
    put(table, [{"id": n, "v": 0} for n in range(5)])
    put(table, [{"id": n, "v": 1} for n in range(10, 15)])
    put(table, [{"id": 12, "v": 2}])
    (bucket,) = group_by_bucket(live_files(table, latest_snapshot(table.io, table.paths)))
    parts = list(BucketReader(table, table.schema.fields).read(bucket))
    assert [part.column("v").to_pylist() for part in parts] == [[0] * 5, [1, 1, 2, 1, 1]]
    assert all(isinstance(part, pa.Table) for part in parts)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ([(5, 0, 9), (0, 10, 19), (0, 20, 29)], True),
        ([(0, 0, 9), (0, 9, 19)], False),
        ([(0, 5, 9), (0, 0, 19)], False),
        ([(5, 0, 8), (5, 2, 9), (4, 10, 12), (0, 13, 13)], True),
        ([(5, 0, 8), (4, 2, 9)], False),
        ([(5, 0, 3), (0, 4, 5), (5, 1, 6)], False),
        ([(1, 0, 9)], True),
    ],
)
def test_files_show_the_age_of_rows_if_none_reaches_into_another(
    files: list[tuple[int, int, int]], expected: bool
) -> None:
    metas = [
        replace(data_file("f"), level=level, min_sequence_number=low, max_sequence_number=high)
        for level, low, high in files
    ]
    assert is_ordered_by_age(metas) is expected


def test_rows_are_merged_by_their_numbers_where_files_do_not_show_it() -> None:
    columns = [("id", "INT"), ("v", "STRING")]
    table = native_table("/w", columns, keys=["id"], io=MemoryFileIO())
    put(table, [{"id": 1, "v": "old"}, {"id": 2, "v": "kept"}])
    put(table, [{"id": 1, "v": "new"}])
    snapshot = latest_snapshot(table.io, table.paths)
    (bucket,) = group_by_bucket(live_files(table, snapshot))
    (rows,) = BucketReader(table, table.schema.fields).read(bucket)
    hidden = [replace(file, min_sequence_number=0) for file in bucket.files]
    (again,) = BucketReader(table, table.schema.fields).read(replace(bucket, files=tuple(hidden)))
    assert rows.to_pylist() == again.to_pylist() == [
        {"id": 1, "v": "new"}, {"id": 2, "v": "kept"},
    ]  # fmt: skip
