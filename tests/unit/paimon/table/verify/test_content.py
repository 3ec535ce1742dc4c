"""Checking data files against their metadata."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from ingestd.paimon.format.parquet import read_file
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.binary_row import EMPTY_ROW, serialize_row
from ingestd.paimon.spec.data_file import SimpleStats
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.table.commit.table_commit import commit
from ingestd.paimon.table.files.data_files import live_path
from ingestd.paimon.table.metadata.file_store_scan import live_files
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.verify.table_verify import verify
from ingestd.paimon.table.write.commit_message import ManifestCommittable
from ingestd.paimon.table.write.table_write import write_file
from tests.support.moving_keys import taken_back
from tests.support.native_tables import NOW_MS, native_table, put, rows_table, write

ROWS = [{"id": 1, "v": "a"}, {"id": 2, "_kind": 3}, {"id": 5, "v": "c"}]


def _table(**given: Any) -> FileStoreTable:
    given.setdefault("keys", ["id"])
    given.setdefault("options", {"bucket": "1"})
    return native_table("/w", [("id", "INT"), ("v", "STRING")], io=MemoryFileIO(), **given)


def _put_claiming(table: FileStoreTable, **claims: Any) -> None:
    """Commit files whose metadata claim something else than they hold."""
    state = load_state(table)
    (message,) = write(table, state, rows_table(table.schema, ROWS, 10))
    files = tuple(replace(file, **claims) for file in message.new_files)
    changed = replace(message, new_files=files)
    committable = ManifestCommittable(1, (changed,))
    commit(table, "u", committable, state=state, now_ms=NOW_MS)


def _found(table: FileStoreTable) -> set[str]:
    return {f"{finding.code}: {finding.message}" for finding in verify(table)}


def _key(number: int) -> bytes:
    return serialize_row([DataType("INT")], [number])


@pytest.mark.parametrize(
    ("claims", "finding"),
    [
        ({"min_key": _key(0)}, "min-key: is not that of row 0"),
        ({"max_key": _key(9)}, "max-key: is not that of row 2"),
        ({"delete_row_count": 0}, "delete-row-count: has 1, not 0"),
        (
            {"max_sequence_number": 13},
            "sequence: has the sequence numbers 10..12, expected 10..13",
        ),
        (
            {"key_stats": SimpleStats(_key(2), _key(5), (0,))},
            "stats: id: 1 is below the bound 2",
        ),
        ({"value_stats_cols": ("id", "w")}, "stats: statistics of unknown columns {'w'}"),
    ],
)
def test_wrong_claims_about_a_file_are_found(claims: dict[str, Any], finding: str) -> None:
    table = _table()
    _put_claiming(table, **claims)
    assert _found(table) == {finding}


def test_a_wrong_number_of_rows_is_found() -> None:
    table = _table()
    _put_claiming(table, row_count=4)
    assert "row-count: has 3 rows, not 4" in _found(table)


def test_a_wrong_size_is_found() -> None:
    table = _table()
    _put_claiming(table, file_size=1)
    (found,) = _found(table)
    assert found.startswith("file-size: ")


def test_unknown_metadata_are_no_finding() -> None:
    table = _table()
    _put_claiming(table, delete_row_count=None)
    assert _found(table) == set()


def _tamper(table: FileStoreTable, change: Any) -> str:
    """Rewrite the rows of the table's only file; its name."""
    (entry,) = live_files(table, latest_snapshot(table.io, table.paths))
    path = live_path(table, entry.partition, entry.bucket, entry.file)
    rows = change(read_file(table.io, path, None))
    table.io.delete_quietly(path)
    write_file(table.io, path, rows, table.options)
    return entry.file.file_name


def _with(rows: pa.Table, name: str, values: list[Any]) -> pa.Table:
    at = rows.schema.get_field_index(name)
    return rows.set_column(at, name, pa.array(values, rows.schema.field(name).type))


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda rows: rows.take([2, 1, 0]), "key-order"),
        (lambda rows: rows.take([0, 0, 2]), "key-order"),
        (lambda rows: _with(rows, "_KEY_id", [1, 2, 4]), "key-value"),
        (lambda rows: _with(rows, "_VALUE_KIND", [0, 0, 0]), "delete-row-count"),
        (lambda rows: _with(rows, "v", [None, None, None]), "stats"),
        (lambda rows: _with(rows, "v", ["a", None, "zz"]), "stats"),
        (lambda rows: rows.drop(["_SEQUENCE_NUMBER"]), "columns"),
    ],
)
def test_rows_that_are_not_as_promised_are_found(change: Any, code: str) -> None:
    table = _table()
    put(table, ROWS)
    name = _tamper(table, change)
    assert (code, name) in {(finding.code, finding.where) for finding in verify(table)}


def test_nulls_in_a_key_are_found() -> None:
    table = native_table("/w", [("id", "INT NOT NULL"), ("v", "INT")], io=MemoryFileIO())
    put(table, [{"id": 1}])

    def nulled(rows: pa.Table) -> pa.Table:
        return pa.table({"id": pa.array([None], pa.int32()), "v": rows.column("v")})

    _tamper(table, nulled)
    assert "null: column id is NOT NULL and has nulls" in _found(table)


def test_rows_of_another_bucket_are_found() -> None:
    table = _table(options={"bucket": "4"})
    state = load_state(table)
    messages = list(write(table, state, rows_table(table.schema, ROWS)))
    wrong = replace(messages[0], bucket=(messages[0].bucket + 1) % 4)
    source = live_path_of(table, messages[0].bucket, messages[0].new_files[0].file_name)
    target = live_path_of(table, wrong.bucket, wrong.new_files[0].file_name)
    table.io.write_new(target, table.io.read_bytes(source))
    commit(table, "u", ManifestCommittable(1, (wrong,)), state=state, now_ms=NOW_MS)
    assert {finding.code for finding in verify(table)} == {"bucket"}


def live_path_of(table: FileStoreTable, bucket: int, name: str) -> str:
    return table.paths.data_file("", bucket, name)


def test_a_partition_of_nan_is_correct() -> None:
    columns = [("p", "DOUBLE"), ("v", "INT")]
    table = native_table("/w", columns, partitions=["p"], io=MemoryFileIO())
    put(table, [{"p": float("nan"), "v": 1}, {"p": None, "v": 2}])
    assert verify(table) == []


def test_rows_of_another_partition_are_found() -> None:
    table = native_table("/w", [("p", "INT"), ("v", "INT")], partitions=["p"], io=MemoryFileIO())
    put(table, [{"p": 1, "v": 1}])

    def moved(rows: pa.Table) -> pa.Table:
        return _with(rows, "p", [2])

    _tamper(table, moved)
    assert "partition: has rows of another partition than p=1" in _found(table)


def test_a_row_whose_partition_a_delete_took_back_is_correct() -> None:
    columns = [("day", "STRING"), ("id", "INT"), ("n", "INT")]
    options = {"merge-engine": "aggregation"}
    table = native_table(
        "/w", columns, keys=["id"], partitions=["day"], options=options, io=MemoryFileIO()
    )
    taken_back(table)
    assert verify(table) == []


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1" + b"\xff" * 100 + b"PAR1"])
def test_a_damaged_file_is_a_finding_that_names_it(data: bytes) -> None:
    table = _table()
    put(table, ROWS)
    (entry,) = live_files(table, latest_snapshot(table.io, table.paths))
    table.io.overwrite(live_path(table, EMPTY_ROW, 0, entry.file), data)
    findings = verify(table)
    assert {finding.code for finding in findings} == {"file-size", "unreadable"}
    assert {finding.where for finding in findings} == {entry.file.file_name}


def test_a_missing_file_is_a_finding_that_names_it() -> None:
    table = _table()
    put(table, ROWS)
    (entry,) = live_files(table, latest_snapshot(table.io, table.paths))
    table.io.delete_quietly(live_path(table, EMPTY_ROW, 0, entry.file))
    (finding,) = verify(table)
    assert (finding.code, finding.where) == ("missing-file", entry.file.file_name)
