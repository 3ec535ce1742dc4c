import json

import pytest

from ingestd.errors import ConfigError, FormatError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.system.system_tables import (
    SYSTEM_TABLES,
    parse_reference,
    read_system_table,
    system_table,
)
from tests.support.native_tables import native_table, put


def _table() -> FileStoreTable:
    table = native_table(
        "/w", [("d", "DATE"), ("k", "INT"), ("v", "STRING")], keys=["d", "k"], partitions=["d"],
        options={"bucket": "2"}, io=MemoryFileIO(),
    )  # fmt: skip
    put(table, [{"d": d, "k": 1, "v": "x"} for d in (0, 1)])
    put(table, [{"d": 1, "k": 1, "v": "y"}])
    return table


def _rows(table: FileStoreTable, view: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = read_system_table(
        table, view, latest_snapshot(table.io, table.paths)
    ).to_pylist()
    return found


def test_views_show_what_a_table_is_made_of() -> None:
    table = _table()
    snapshots = _rows(table, "snapshots")
    assert [(row["snapshot_id"], row["total_record_count"]) for row in snapshots] == [
        (1, 2),
        (2, 3),
    ]
    files = _rows(table, "files")
    assert sorted((row["partition"], row["min_key"], row["min_value_stats"]) for row in files) == [
        ("{1970-01-01}", "[1]", "{d=0, k=1, v=x}"),
        ("{1970-01-02}", "[1]", "{d=1, k=1, v=x}"),
        ("{1970-01-02}", "[1]", "{d=1, k=1, v=y}"),
    ]
    counts = [(row["partition"], row["file_count"]) for row in _rows(table, "partitions")]
    assert counts == [("d=1970-01-01", 1), ("d=1970-01-02", 2)]
    assert [row["record_count"] for row in _rows(table, "buckets")] == [1, 2]
    assert [row["num_added_files"] for row in _rows(table, "manifests")] == [2, 1]
    assert _rows(table, "options") == [{"key": "bucket", "value": "2"}]
    (schema,) = _rows(table, "schemas")
    assert json.loads(str(schema["primary_keys"])) == ["d", "k"]


def test_views_of_an_empty_table_have_no_rows_of_files() -> None:
    table = native_table("/w", [("k", "INT")], io=MemoryFileIO())
    for view, made in SYSTEM_TABLES.items():
        rows = read_system_table(table, view, None)
        assert rows.column_names == [field.name for field in made.fields]
        assert rows.num_rows == (1 if view in ("schemas", "aggregation_fields") else 0)


def test_tags_and_consumers_come_from_their_files() -> None:
    table = _table()
    document = json.loads(table.io.read_bytes(table.paths.snapshot(1)))
    document |= {"tagCreateTime": [2024, 2, 29, 1, 2, 3, 500_000_000], "tagTimeRetained": 5400.0}
    table.io.write_new(f"{table.paths.tag_dir}/tag-a", json.dumps(document).encode())
    (tag,) = read_system_table(table, "tags", None).to_pylist()
    assert (tag["tag_name"], tag["snapshot_id"], tag["time_retained"]) == ("a", 1, "PT1H30M")
    assert tag["create_time"].isoformat() == "2024-02-29T01:02:03.500000"
    path = f"{table.paths.consumer_dir}/consumer-me"
    table.io.write_new(path, b'{"nextSnapshot" : 7}')
    assert _rows(table, "consumers") == [{"consumer_id": "me", "next_snapshot_id": 7}]
    table.io.overwrite(path, b"{}")
    with pytest.raises(FormatError, match="consumer-me cannot be read"):
        _rows(table, "consumers")


def test_names_are_taken_apart() -> None:
    assert parse_reference("db.t") == ("db.t", None, None)
    assert parse_reference("db.t$files") == ("db.t", None, "files")
    assert parse_reference("db.t$branch_b") == ("db.t", "b", None)
    assert parse_reference("db.t$branch_b$files") == ("db.t", "b", "files")
    for wrong in ("db.t$a$b", "$files", "db.t$", "db.t$branch_"):
        with pytest.raises(ConfigError, match="write database"):
            parse_reference(wrong)
    with pytest.raises(ConfigError, match=r"did you mean '\$files'"):
        system_table("filez")
