"""Reading tables."""

from typing import Any

import pyarrow as pa
import pytest

from ingestd.errors import ConfigError, FormatError, UnsupportedError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.binary_row import serialize_row
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.predicate_text import parse_predicate
from ingestd.paimon.spec.schema_change import AddColumn
from ingestd.paimon.table.buckets.bucket_assigner import assign_fixed
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import read_snapshot
from ingestd.paimon.table.read.table_read import iter_buckets, read_table
from tests.support.moving_keys import taken_back
from tests.support.native_tables import alter, native_table, put

COLUMNS = [("p", "INT"), ("id", "INT"), ("v", "STRING")]


def _table(**given: Any) -> FileStoreTable:
    given.setdefault("options", {"bucket": "2"})
    return native_table(
        "/w", COLUMNS, keys=["p", "id"], partitions=["p"], io=MemoryFileIO(), **given
    )


def _found(rows: pa.Table) -> dict[tuple[int, int], str]:
    return {(row["p"], row["id"]): row["v"] for row in rows.to_pylist()}


def _rows(*given: tuple[int, int, str]) -> list[dict[str, Any]]:
    return [{"p": p, "id": number, "v": v} for p, number, v in given]


def test_newest_rows_win_and_deleted_ones_are_gone() -> None:
    table = _table()
    put(table, _rows((0, 1, "a"), (0, 2, "b"), (1, 1, "c")))
    put(table, [*_rows((0, 2, "B"), (1, 1, "C")), {"p": 0, "id": 1, "_kind": 3}])
    put(table, [{"p": 1, "id": 1, "_kind": 1}, *_rows((1, 1, "again"))])
    assert _found(read_table(table)) == {(0, 2): "B", (1, 1): "again"}


@pytest.mark.parametrize("kind", ["bloom-filter", "bitmap", "range-bitmap"])
def test_a_row_that_a_delete_left_without_partition_is_found_by_the_partition_of_its_file(
    kind: str,
) -> None:
    options = {"merge-engine": "aggregation", f"file-index.{kind}.columns": "day"}
    columns = [("day", "STRING"), ("id", "INT"), ("n", "INT")]
    table = native_table(
        "/w", columns, keys=["id"], partitions=["day"], options=options, io=MemoryFileIO()
    )
    taken_back(table)
    found = {}
    for day in ("a", "b"):
        predicate = parse_predicate(f"day = '{day}'", table.schema.fields)
        found[day] = read_table(table, predicate=predicate).to_pylist()
    assert found == {"a": [{"day": "a", "id": 1, "n": None}], "b": []}


def test_a_table_without_snapshot_has_no_rows_but_columns() -> None:
    found = read_table(_table(), columns=["v", "p"])
    assert (found.num_rows, found.column_names) == (0, ["v", "p"])
    assert list(iter_buckets(_table())) == []


def test_only_wanted_columns_come_in_the_order_asked_for() -> None:
    table = _table()
    put(table, _rows((0, 1, "a")))
    put(table, _rows((0, 1, "b")))
    assert read_table(table, columns=["v", "p"]).to_pydict() == {"v": ["b"], "p": [0]}


def test_unknown_columns_are_named() -> None:
    with pytest.raises(ConfigError, match="no column w; its columns are p, id, v"):
        read_table(_table(), columns=["w"])


def test_older_snapshots_are_as_they_were() -> None:
    table = _table()
    put(table, _rows((0, 1, "a")))
    put(table, _rows((0, 1, "b"), (0, 2, "b")))
    assert _found(read_table(table, snapshot_id=1)) == {(0, 1): "a"}


def test_old_snapshots_come_in_the_columns_of_the_handle_or_of_their_time() -> None:
    table = _table()
    put(table, _rows((0, 1, "a")))
    newer = alter(table, AddColumn("w", parse_type("INT")))
    put(newer, [{"p": 0, "id": 2, "w": 5}])
    assert read_table(newer, snapshot_id=1).to_pylist() == [{"p": 0, "id": 1, "v": "a", "w": None}]
    then = newer.at_schema(read_snapshot(newer.io, newer.paths, 1).schema_id)
    assert read_table(then, snapshot_id=1).column_names == ["p", "id", "v"]


def test_a_missing_snapshot_is_an_error_with_those_that_exist() -> None:
    table = _table()
    put(table, _rows((0, 1, "a")))
    with pytest.raises(ConfigError, match="snapshots 1 to 1 exist"):
        read_table(table, snapshot_id=2)


def test_partition_filters_by_row_or_by_predicate() -> None:
    table = _table()
    put(table, _rows((0, 1, "a"), (1, 1, "b"), (2, 1, "c")))
    row = serialize_row(table.partition_types, (2,))
    assert set(_found(read_table(table, partition_filter=[row]))) == {(2, 1)}
    irregular = read_table(table, partition_filter=lambda values: values == (1,))
    assert set(_found(irregular)) == {(1, 1)}


@pytest.mark.parametrize("options", [{"bucket": "3"}, {"dynamic-bucket.target-row-num": "5"}])
def test_key_filter_gives_the_newest_rows_of_these_keys_only(options: dict[str, str]) -> None:
    table = _table(options=options)
    put(table, _rows(*((n % 2, n, "old") for n in range(40))))
    put(table, [*_rows((1, 7, "new")), {"p": 0, "id": 8, "_kind": 3}])
    keys = pa.table({"p": [1, 0, 0, 1, 0], "id": [7, 8, 10, 10, 999]}).cast(
        pa.schema([("p", pa.int32()), ("id", pa.int32())])
    )
    found = read_table(table, key_filter=keys, columns=["p", "id", "v"])
    assert _found(found) == {(1, 7): "new", (0, 10): "old"}
    both = read_table(table, key_filter=keys, partition_filter=lambda values: values == (0,))
    assert _found(both) == {(0, 10): "old"}


def test_key_filter_opens_no_bucket_without_the_keys() -> None:
    table = _table(options={"bucket": "4"})
    put(table, _rows(*((0, n, "x") for n in range(40))))
    keys = pa.table({"p": pa.array([0], pa.int32()), "id": pa.array([3], pa.int32())})
    files: dict[str, bytes] = table.io.files  # type: ignore[attr-defined]
    (holder,) = assign_fixed(table, keys).tolist()
    others = [path for path in files if "/p=0/" in path and f"/bucket-{holder}/" not in path]
    for path in others:
        del files[path]
    assert len(others) == 3
    assert _found(read_table(table, key_filter=keys)) == {(0, 3): "x"}


def test_no_keys_find_no_rows() -> None:
    table = _table()
    put(table, _rows((0, 1, "a")))
    none = pa.table({"p": pa.array([], pa.int32()), "id": pa.array([], pa.int32())})
    assert read_table(table, key_filter=none).num_rows == 0


def test_a_bucket_is_read_at_a_time() -> None:
    table = _table()
    put(table, _rows(*((n % 3, n, "x") for n in range(60))))
    parts = list(iter_buckets(table))
    assert len(parts) == 6
    assert sum(part.num_rows for part in parts) == 60


def test_append_tables_give_every_row() -> None:
    table = native_table("/w", [("v", "INT")], io=MemoryFileIO())
    put(table, [{"v": 1}, {"v": 1}])
    put(table, [{"v": 1}, {"v": None}])
    assert read_table(table).to_pydict() == {"v": [1, 1, 1, None]}


def test_a_missing_data_file_is_a_format_error_that_names_it() -> None:
    table = native_table("/w", [("v", "INT")], io=MemoryFileIO())
    result = put(table, [{"v": 1}])
    assert result.snapshot is not None
    (name,) = table.io.list_names(f"{table.path}/bucket-0")
    table.io.delete_quietly(f"{table.path}/bucket-0/{name}")
    with pytest.raises(FormatError, match=name):
        read_table(table)


def test_a_table_that_is_laid_out_otherwise_is_refused() -> None:
    table = _table(options={"bucket": "1", "pk-clustering-override": "true"})
    with pytest.raises(UnsupportedError, match="pk-clustering-override"):
        read_table(table)


def test_partition_values_come_from_the_manifest_even_if_null() -> None:
    table = native_table("/w", [("p", "STRING"), ("v", "INT")], partitions=["p"], io=MemoryFileIO())
    put(table, [{"p": None, "v": 1}, {"p": "", "v": 2}, {"p": " ", "v": 3}])
    found = {row["v"]: row["p"] for row in read_table(table).to_pylist()}
    assert found == {1: None, 2: "", 3: " "}
