"""Rows of one bucket written as data files."""

from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa
import pytest

from ingestd.errors import StorageError
from ingestd.paimon.format.orc import read_file as read_orc
from ingestd.paimon.format.parquet import read_file
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.arrow import FIELD_ID_KEY
from ingestd.paimon.spec.binary_row import EMPTY_ROW, deserialize_row, serialize_row
from ingestd.paimon.spec.data_file import EMPTY_STATS
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.write.commit_message import CommitMessage
from ingestd.paimon.table.write.table_write import data_file_names, write_bucket
from tests.support.native_tables import native_table, rows_table

COLUMNS = [("id", "INT"), ("v", "STRING")]


def _table(**given: Any) -> FileStoreTable:
    given.setdefault("options", {"bucket": "2"} if given.get("keys") else {})
    return native_table("/w", COLUMNS, io=MemoryFileIO(), **given)


def _write(
    table: FileStoreTable, rows: list[dict[str, Any]] | pa.Table, first: int = 0
) -> CommitMessage:
    data = rows if isinstance(rows, pa.Table) else rows_table(table.schema, rows, first)
    return write_bucket(table, EMPTY_ROW, 1, data, new_name=data_file_names(table))


def _stored(table: FileStoreTable, message: CommitMessage, number: int = 0) -> pa.Table:
    name = message.new_files[number].file_name
    return read_file(table.io, f"{table.path}/bucket-1/{name}", None)


def test_rows_are_merged_per_key_and_sorted_by_it() -> None:
    table = _table(keys=["id"])
    rows = [{"id": 3, "v": "a"}, {"id": -1, "v": "b"}, {"id": 3, "v": "c"}, {"id": 2, "_kind": 3}]
    stored = _stored(table, _write(table, rows, first=10))
    assert stored.column("id").to_pylist() == [-1, 2, 3]
    assert stored.column("v").to_pylist() == ["b", None, "c"]
    assert stored.column("_SEQUENCE_NUMBER").to_pylist() == [11, 13, 12]
    assert stored.column("_VALUE_KIND").to_pylist() == [0, 3, 0]


def test_columns_of_a_keyed_file_are_the_keys_the_system_columns_and_all_columns() -> None:
    table = _table(keys=["id"])
    schema = _stored(table, _write(table, [{"id": 1}])).schema
    assert schema.names == ["_KEY_id", "_SEQUENCE_NUMBER", "_VALUE_KIND", "id", "v"]
    ids = [int((field.metadata or {})[FIELD_ID_KEY]) for field in schema]
    assert ids == [1073741823, 2147483646, 2147483645, 0, 1]
    assert [field.nullable for field in schema] == [False, False, False, False, True]


def test_metadata_of_a_keyed_file() -> None:
    table = _table(keys=["id"])
    rows = [{"id": 5, "v": "x"}, {"id": 2, "_kind": 3}, {"id": 5, "v": "y"}, {"id": 9, "_kind": 1}]
    message = _write(table, rows, first=100)
    (file,) = message.new_files
    types = [table.schema.field("id").type]
    assert (message.partition, message.bucket, message.total_buckets) == (EMPTY_ROW, 1, 2)
    assert (file.row_count, file.delete_row_count, file.level) == (3, 2, 0)
    assert (file.min_sequence_number, file.max_sequence_number) == (101, 103)
    assert deserialize_row(types, file.min_key) == (2,)
    assert deserialize_row(types, file.max_key) == (9,)
    assert file.key_stats.min_values == serialize_row(types, [2])
    assert file.value_stats.null_counts == (0, 2)
    assert (file.schema_id, file.file_source, file.extra_files) == (0, 0, ())
    size = table.io.size(f"{table.path}/bucket-1/{file.file_name}")
    assert file.file_size == size


def test_rows_that_are_not_in_sequence_order_are_merged_by_sequence() -> None:
    table = _table(keys=["id"])
    rows = rows_table(table.schema, [{"id": 1, "v": "new"}, {"id": 1, "v": "old"}])
    at = rows.schema.get_field_index("_SEQUENCE_NUMBER")
    rows = rows.set_column(at, "_SEQUENCE_NUMBER", pa.array([7, 3]))
    assert _stored(table, _write(table, rows)).column("v").to_pylist() == ["new"]


def test_append_rows_stay_as_they_come() -> None:
    table = _table()
    message = _write(table, [{"id": 3}, {"id": 1, "v": "x"}, {"id": 3}])
    (file,) = message.new_files
    stored = _stored(table, message)
    assert stored.to_pydict() == {"id": [3, 1, 3], "v": [None, "x", None]}
    assert message.total_buckets == -1
    assert (file.min_key, file.key_stats) == (EMPTY_ROW, EMPTY_STATS)
    assert (file.min_sequence_number, file.max_sequence_number) == (0, 2)
    assert file.delete_row_count == 0


def test_append_rows_may_bring_their_sequence_numbers() -> None:
    table = _table()
    rows = rows_table(table.schema, [{"id": 1}, {"id": 2}])
    rows = rows.append_column("_SEQUENCE_NUMBER", pa.array([8, 9]))
    message = _write(table, rows)
    (file,) = message.new_files
    assert (file.min_sequence_number, file.max_sequence_number) == (8, 9)
    assert _stored(table, message).column_names == ["id", "v"]


def test_files_roll_at_the_target_size() -> None:
    table = _table(keys=["id"], options={"bucket": "2", "target-file-size": "8 kb"})
    rows = [{"id": n, "v": f"{n * 7919 % 10007:05}" * 4} for n in range(4000)]
    files = _write(table, rows).new_files
    assert len(files) > 2
    assert all(file.file_size < 3 * 8192 for file in files)
    types = [table.schema.field("id").type]
    edges = [deserialize_row(types, key)[0] for f in files for key in (f.min_key, f.max_key)]
    assert edges == sorted(edges, key=lambda edge: int(str(edge)))
    assert sum(file.row_count for file in files) == 4000
    assert len({file.file_name for file in files}) == len(files)


@pytest.mark.parametrize("keys", [[], ["id"]], ids=["append", "keyed"])
@pytest.mark.parametrize("target", ["1 kb", "1 mb"])
def test_cells_beside_null_rows_are_their_own_in_orc_files_of_cut_rows(
    target: str, keys: list[str]
) -> None:
    nested = {"type": "ROW", "fields": [{"id": 5, "name": "x", "type": "INT"}]}
    options = {"file.format": "orc", "target-file-size": target, "bucket": "2" if keys else "-1"}
    columns = [("id", "INT"), ("v", nested)]
    table = native_table("/w", columns, keys=keys, io=MemoryFileIO(), options=options)
    cells = [None if n % 7 == 3 else (n * 7919 % 10007,) for n in range(2000)]
    rows = rows_table(table.schema, [{"id": n, "v": cell} for n, cell in enumerate(cells)], 0)
    files = _write(table, rows.slice(1000)).new_files
    assert (len(files) > 1) == (target == "1 kb")
    parts = [read_orc(table.io, f"{table.path}/bucket-1/{file.file_name}", ["v"]) for file in files]
    found = pa.concat_tables(parts).column("v").to_pylist()
    assert found == [cell and {"x": cell[0]} for cell in cells[1000:]]


def test_no_rows_make_no_file() -> None:
    table = _table(keys=["id"])
    assert _write(table, []).is_empty


def test_partition_directory_follows_from_its_values() -> None:
    table = native_table(
        "/w", [("day", "DATE"), ("id", "INT")], keys=["day", "id"], partitions=["day"],
        io=MemoryFileIO(),
    )  # fmt: skip
    rows = rows_table(table.schema, [{"day": 19_000, "id": 1}])
    partition = serialize_row(table.partition_types, (19_000,))
    message = write_bucket(table, partition, 4, rows, new_name=lambda: "data-x-0.parquet")
    assert table.io.exists(f"{table.path}/day=19000/bucket-4/data-x-0.parquet")
    assert message.partition == partition


def test_names_of_files_are_distinct_and_show_the_format() -> None:
    names = data_file_names(_table(options={"data-file.prefix": "part-"}))
    first, second = names(), names()
    assert first.startswith("part-")
    assert (first[:-10], first[-10:], second[-10:]) == (second[:-10], "-0.parquet", "-1.parquet")


def _without(rows: pa.Table, name: str) -> pa.Table:
    return rows.drop_columns([name])


@pytest.mark.parametrize(
    ("problem", "change"),
    [
        ("v is missing", lambda rows: _without(rows, "v")),
        ("_VALUE_KIND", lambda rows: _without(rows, "_VALUE_KIND")),
        ("int64 instead of int32", lambda rows: rows.set_column(0, "id", pa.array([1]))),
        ("NOT NULL", lambda rows: rows.set_column(0, "id", pa.array([None], pa.int32()))),
    ],
)
def test_rows_that_are_not_the_tables_are_refused(problem: str, change: Any) -> None:
    table = _table(keys=["id"])
    with pytest.raises(ValueError, match=problem):
        _write(table, change(rows_table(table.schema, [{"id": 1}])))


def test_an_append_table_takes_no_deletes() -> None:
    table = _table()
    rows = rows_table(table.schema, [{"id": 1}])
    with pytest.raises(ValueError, match="retractions"):
        _write(table, rows.append_column("_VALUE_KIND", pa.array([3], pa.int8())))


def test_files_of_a_write_that_fails_are_deleted_again() -> None:
    table = _table(options={"target-file-size": "1 kb"})
    names = iter(["data-1-0.parquet", "data-1-0.parquet"])
    rows = rows_table(table.schema, [{"id": n, "v": str(n) * 50} for n in range(1000)])
    with pytest.raises(StorageError):
        write_bucket(table, EMPTY_ROW, 0, rows, new_name=lambda: next(names))
    assert table.io.list_names(str(PurePosixPath(table.path) / "bucket-0")) == []


def test_statistics_follow_the_options_of_the_table() -> None:
    table = _table(keys=["id"], options={"bucket": "2", "fields.v.stats-mode": "none"})
    (file,) = _write(table, [{"id": 1, "v": "x"}]).new_files
    assert file.value_stats_cols == ("id",)
    plain = _table(
        keys=["id"],
        options={
            "bucket": "2",
            "fields.v.stats-mode": "none",
            "metadata.stats-dense-store": "false",
        },
    )
    (file,) = _write(plain, [{"id": 1, "v": "x"}]).new_files
    assert (file.value_stats_cols, file.value_stats.null_counts) == (None, (0, None))


def test_files_have_the_format_of_level_0() -> None:
    """The level of the files that a compaction has not seen."""
    for changelog in ("none", "input"):
        options = {"bucket": "2", "file.format.per.level": "0:avro,1:orc"}
        table = _table(keys=["id"], options={**options, "changelog-producer": changelog})
        (file,) = _write(table, [{"id": 1}]).new_files
        assert file.file_name.endswith(".avro")
