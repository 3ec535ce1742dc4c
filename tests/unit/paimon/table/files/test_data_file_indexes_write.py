import dataclasses
from typing import Any

import pyarrow as pa
import pytest

from ingestd.errors import FormatError, StorageError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.file_index import encode_file_index
from ingestd.paimon.spec.predicate_text import parse_predicate
from ingestd.paimon.spec.schema_change import DropColumn, RenameColumn, UpdateColumnType
from ingestd.paimon.table.files.data_file_indexes import indexes_may_match, read_file_indexes
from ingestd.paimon.table.metadata.file_store_scan import live_files
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.read.table_read import read_table
from ingestd.paimon.table.verify.content import check_file_index
from ingestd.paimon.table.verify.table_verify import verify
from ingestd.paimon.table.verify.verify_findings import VerifyFindings
from tests.support.native_tables import alter, native_table, put

COLUMNS = [("k", "INT"), ("s", "STRING"), ("x", "DOUBLE")]
INDEXES = {"file-index.bloom-filter.columns": "k,x", "file-index.bitmap.columns": "s,x"}
ROWS = [{"k": k * 2, "s": f"s{k % 3}" if k % 4 else None, "x": k * 0.0} for k in range(50)]


def _table(**options: str) -> FileStoreTable:
    table = native_table("/w", COLUMNS, options={**INDEXES, **options}, io=MemoryFileIO())
    put(table, ROWS)
    return table


def _entry(table: FileStoreTable) -> Any:
    (entry,) = live_files(table, latest_snapshot(table.io, table.paths))
    return entry


def _may_match(table: FileStoreTable, text: str) -> bool:
    entry = _entry(table)
    indexes = read_file_indexes(table, entry.partition, entry.bucket, entry.file)
    assert indexes is not None
    predicate = parse_predicate(text, table.schema.fields)
    return indexes_may_match(table, entry.file, indexes, predicate)


@pytest.mark.parametrize("threshold", ["1 mb", "1 b"], ids=["embedded", "beside"])
def test_indexes_show_what_a_file_does_not_hold(threshold: str) -> None:
    table = _table(**{"file-index.in-manifest-threshold": threshold})
    for text in ("k = 4", "s = 's1'", "s IS NULL", "x = 0", "x = -0.0", "k IN (1, 4)", "k > 500",
                 "s != 's1'", "NOT s = 'no'", "s IN ('no', 's2')", "s IS NOT NULL"):  # fmt: skip
        assert _may_match(table, text), text
    for text in ("k = 5 AND s = 'no'", "s = 'no'", "x = 3", "x IS NULL", "NOT x IS NOT NULL"):
        assert not _may_match(table, text), text
    assert verify(table) == []


@pytest.mark.parametrize(
    ("narrow", "beyond"), [("TINYINT", 1 << 7), ("SMALLINT", 1 << 15), ("INT", 1 << 31)]
)
def test_a_file_has_no_values_beyond_the_type_it_was_written_with(narrow: str, beyond: int) -> None:
    options = {"file-index.bloom-filter.columns": "k"}
    table = native_table("/w", [("k", narrow)], options=options, io=MemoryFileIO())
    put(table, [{"k": 4}])
    table = alter(table, UpdateColumnType("k", parse_type("BIGINT")))
    assert _may_match(table, "k = 4")
    assert not _may_match(table, f"k IN ({beyond}, {-beyond - 1})")


def test_indexes_follow_a_renamed_column_and_leave_a_dropped_one() -> None:
    table = alter(_table(), RenameColumn("k", "key"))
    put(table, [{"key": 5, "s": "new", "x": 1.0}])
    read = read_table(table, predicate=parse_predicate("key = 5", table.schema.fields))
    assert read["s"].to_pylist() == ["new"]
    table = alter(table, DropColumn("x"))
    put(table, [{"key": 7, "s": "newer"}])
    *_, newest = live_files(table, latest_snapshot(table.io, table.paths))
    indexes = read_file_indexes(table, newest.partition, newest.bucket, newest.file)
    assert indexes is not None
    assert set(indexes) == {"key", "s"}


def test_large_indexes_lie_beside_their_file_and_go_with_it() -> None:
    table = _table(**{"file-index.in-manifest-threshold": "1 b"})
    file = _entry(table).file
    assert file.extra_files == (f"{file.file_name}.index",)
    assert file.file_name + ".index" in table.io.list_names(f"{table.path}/bucket-0")
    table.io.delete_quietly(f"{table.path}/bucket-0/{file.extra_files[0]}")
    assert read_table(table).num_rows == len(ROWS)
    with pytest.raises(FormatError, match="is missing"):
        read_table(table, predicate=parse_predicate("k = 4", table.schema.fields))
    assert [finding.code for finding in verify(table)] == ["file-index"]


def test_reading_without_indexes_is_an_option() -> None:
    table = _table(
        **{"file-index.in-manifest-threshold": "1 b", "file-index.read.enabled": "false"}
    )
    table.io.delete_quietly(f"{table.path}/bucket-0/{_entry(table).file.extra_files[0]}")
    predicate = parse_predicate("k = 4", table.schema.fields)
    assert read_table(table, predicate=predicate).num_rows == 1


class _NoIndexes(MemoryFileIO):
    def write_new(self, path: str, data: bytes) -> None:
        if path.endswith(".index"):
            raise StorageError("disk full")
        super().write_new(path, data)


def test_a_data_file_does_not_stay_when_its_index_cannot_be_written() -> None:
    options = {**INDEXES, "file-index.in-manifest-threshold": "1 b"}
    table = native_table("/w", COLUMNS, options=options, io=_NoIndexes())
    with pytest.raises(StorageError, match="disk full"):
        put(table, ROWS)
    assert table.io.list_names(f"{table.path}/bucket-0") == []


def test_checking_finds_indexes_that_deny_values() -> None:
    table = _table(**{"file-index.in-manifest-threshold": "1 mb"})
    entry = _entry(table)
    rows = read_table(table)
    others = pa.table({name: rows.column(name).take([3] * 50) for name in rows.column_names})

    def found(given: pa.Table, **changed: Any) -> list[str]:
        findings = VerifyFindings()
        file = dataclasses.replace(entry.file, **changed)
        check_file_index(table, dataclasses.replace(entry, file=file), given, findings)
        return [one.message for one in findings.found]

    assert found(rows) == []
    assert found(others) == ["the bitmap index of s does not match its rows"]
    strange = rows.set_column(0, "k", pa.array([n * 2 + 1 for n in range(50)], pa.int32()))
    assert found(strange) == ["the bloom-filter index of k does not match its rows"]
    unknown = encode_file_index({"q": {}, "m[key]": {}})
    assert found(rows, embedded_index=unknown)[0] == "has an index of column q, which is none"
    assert "cannot be read" in found(rows, embedded_index=b"x")[0]
