"""Rows with given keys: which files are opened for them, and what merging makes of them."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ingestd.paimon.io.file_io import FileIO, LocalFileIO
from ingestd.paimon.spec.arrow import to_arrow_type
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.schema_change import AddColumn, RenameColumn
from ingestd.paimon.table.compact.table_compact import compact_table
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.read.point_read import PointReader
from ingestd.paimon.table.read.table_read import read_table
from tests.support.native_tables import alter, native_table, put
from tests.support.watched_file_io import WatchedFileIO

COLUMNS = [("id", "INT"), ("v", "STRING")]


class OpenedFiles(WatchedFileIO):
    """Lists the data files that are opened."""

    def __init__(self, inner: FileIO) -> None:
        self.inner = inner
        self.names: list[str] = []

    @contextlib.contextmanager
    def _call(self, operation: str, path: str) -> Iterator[None]:
        if operation == "open_input":
            self.names.append(path.rpartition("/")[2])
        yield

    def taken(self) -> int:
        """How many were opened since the last call."""
        count = len(self.names)
        self.names.clear()
        return count


@pytest.fixture
def io() -> OpenedFiles:
    return OpenedFiles(LocalFileIO(sync=False))


def _table(tmp_path: Path, io: FileIO, **options: str) -> FileStoreTable:
    return native_table(tmp_path, COLUMNS, keys=["id"], options={"bucket": "1", **options}, io=io)


def _get(table: FileStoreTable, *keys: Any, columns: Sequence[str] | None = None) -> list[Any]:
    """Rows of keys, which are tuples if the primary key has several columns."""
    rows = [key if isinstance(key, tuple) else (key,) for key in keys]
    fields = table.schema.select(table.schema.primary_keys)
    arrays = {
        f.name: pa.array([row[i] for row in rows], to_arrow_type(f.type))
        for i, f in enumerate(fields)
    }
    snapshot = latest_snapshot(table.io, table.paths)
    reader = PointReader(table, snapshot, pa.table(arrays), columns)
    return sorted((row for part in reader.rows() for row in part.to_pylist()), key=repr)


def test_the_newest_file_with_a_key_ends_the_search(tmp_path: Path, io: OpenedFiles) -> None:
    table = _table(tmp_path, io)
    for step in range(4):
        put(table, [{"id": n, "v": f"{step}"} for n in range(0, 20, step + 1)])
    io.taken()
    assert _get(table, 12) == [{"id": 12, "v": "3"}]
    assert io.taken() == 1
    assert _get(table, 12, 10, 18) == [
        {"id": 10, "v": "1"}, {"id": 12, "v": "3"}, {"id": 18, "v": "2"}
    ]  # fmt: skip
    assert io.taken() == 3
    assert _get(table, 99, -1) == []
    assert io.taken() == 0


def test_a_deletion_is_the_newest_row_of_its_key(tmp_path: Path, io: OpenedFiles) -> None:
    table = _table(tmp_path, io)
    put(table, [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}])
    put(table, [{"id": 1, "_kind": 3}])
    assert _get(table, 1, 2, 1) == [{"id": 2, "v": "b"}]


def test_a_bloom_filter_spares_files_that_the_key_range_does_not(
    tmp_path: Path, io: OpenedFiles
) -> None:
    indexed = {"file-index.bloom-filter.columns": "id", "file-index.bloom-filter.id.fpp": "0.001"}
    table = _table(tmp_path, io, **indexed)
    for first in range(5):
        put(table, [{"id": n, "v": f"{first}"} for n in range(first, 500, 5)])
    io.taken()
    assert _get(table, 203) == [{"id": 203, "v": "3"}]
    assert io.taken() == 1


@pytest.mark.parametrize(
    ("engine", "expected"),
    [
        ({"merge-engine": "partial-update"}, {"id": 1, "v": "c", "n": 5, "s": 3}),
        ({"merge-engine": "aggregation", "fields.n.aggregate-function": "sum",
          "fields.s.aggregate-function": "max"}, {"id": 1, "v": "c", "n": 8, "s": 9}),
        ({"sequence.field": "s"}, {"id": 1, "v": "b", "n": None, "s": 9}),
        ({"ignore-delete": "true"}, {"id": 1, "v": "c", "n": 5, "s": 3}),
    ],
)  # fmt: skip
def test_all_files_with_a_key_are_merged_by_other_engines(
    engine: dict[str, str], expected: dict[str, Any], tmp_path: Path, io: OpenedFiles
) -> None:
    columns = [*COLUMNS, ("n", "INT"), ("s", "INT")]
    table = native_table(tmp_path, columns, keys=["id"], options={"bucket": "1", **engine}, io=io)
    put(table, [{"id": 1, "v": "a", "n": 3, "s": 1}, {"id": 2, "v": "z"}])
    put(table, [{"id": 1, "v": "b", "s": 9}])
    put(table, [{"id": 1, "v": "c", "n": 5, "s": 3}])
    put(table, [{"id": 3, "v": "y"}])
    io.taken()
    assert _get(table, 1) == [expected]
    assert io.taken() == 3
    assert _get(table, 1, columns=["v"]) == [{"v": expected["v"]}]


def test_deletion_vectors_hide_rows_of_a_compacted_table(tmp_path: Path, io: OpenedFiles) -> None:
    table = _table(tmp_path, io, **{"deletion-vectors.enabled": "true"})
    put(table, [{"id": n, "v": "old"} for n in range(50)])
    compact_table(table, full=True, now_ms=1)
    put(table, [{"id": 7, "v": "new"}, {"id": 8, "_kind": 3}])
    assert _get(table, 7, 8, 9) == [{"id": n, "v": "old"} for n in (7, 8, 9)]
    compact_table(table, full=False, now_ms=2)
    assert _get(table, 7, 8, 9) == [{"id": 7, "v": "new"}, {"id": 9, "v": "old"}]


@pytest.mark.parametrize("options", [{}, {"deletion-vectors.enabled": "true"}], ids=["", "vectors"])
def test_the_two_zeros_are_one_key(tmp_path: Path, options: dict[str, str]) -> None:
    options = {"bucket": "1", **options}
    table = native_table(tmp_path, [("x", "DOUBLE"), ("v", "INT")], keys=["x"], options=options)
    put(table, [{"x": 0.0, "v": 1}, {"x": 1.0, "v": 1}])
    compact_table(table, full=True, now_ms=1)
    put(table, [{"x": -0.0, "v": 2}])
    compact_table(table, full=False, now_ms=2)
    assert _get(table, 0.0, 1.0) == [{"x": -0.0, "v": 2}, {"x": 1.0, "v": 1}]
    assert _get(table, -0.0) == [{"x": -0.0, "v": 2}]
    assert sorted(read_table(table)["v"].to_pylist()) == [1, 2]


def test_only_the_bucket_and_the_partition_of_a_key_are_opened(
    tmp_path: Path, io: OpenedFiles
) -> None:
    columns = [("day", "STRING"), ("id", "INT"), ("line", "INT"), ("v", "STRING")]
    table = native_table(
        tmp_path, columns, keys=["day", "id", "line"], partitions=["day"],
        options={"bucket": "4", "bucket-key": "id"}, io=io,
    )  # fmt: skip
    rows = [
        {"day": day, "id": n, "line": line, "v": f"{day}{n}.{line}"}
        for day in ("a", "b") for n in range(40) for line in (1, 2)
    ]  # fmt: skip
    put(table, rows)
    io.taken()
    assert _get(table, ("b", 17, 2), ("a", 17, 3)) == [
        {"day": "b", "id": 17, "line": 2, "v": "b17.2"}
    ]
    assert io.taken() == 2
    assert _get(table, ("c", 17, 2)) == []
    assert io.taken() == 0


def test_keys_of_a_renamed_column_are_found_in_older_files(tmp_path: Path, io: OpenedFiles) -> None:
    table = _table(tmp_path, io, **{"file-index.bloom-filter.columns": "id"})
    put(table, [{"id": n, "v": f"{n}"} for n in range(9)])
    table = alter(table, RenameColumn("v", "w"), AddColumn("n", parse_type("INT")))
    put(table, [{"id": 4, "w": "x", "n": 1}])
    assert _get(table, 3, 4) == [{"id": 3, "w": "3", "n": None}, {"id": 4, "w": "x", "n": 1}]


def test_an_empty_table_has_no_row(tmp_path: Path, io: OpenedFiles) -> None:
    assert _get(_table(tmp_path, io), 1) == []
