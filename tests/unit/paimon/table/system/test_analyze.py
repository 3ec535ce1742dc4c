import json
from decimal import Decimal
from typing import Any

import pytest

from ingestd.errors import ConfigError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.schema_change import AddColumn
from ingestd.paimon.spec.snapshot import CommitKind
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.system.analyze import analyze_table
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.native_tables import NOW_MS, alter, native_table, put

COLUMNS: list[tuple[str, Any]] = [
    ("id", "INT"),
    ("name", "STRING"),
    ("price", "DECIMAL(10, 2)"),
    ("day", "DATE"),
    ("at", "TIMESTAMP(3)"),
    ("raw", "BYTES"),
    ("ratio", "DOUBLE"),
    ("tags", {"type": "ARRAY", "element": "STRING"}),
]


def new_table() -> FileStoreTable:
    return native_table("/w", COLUMNS, keys=["id"], options={"bucket": "1"}, io=MemoryFileIO())


def cells(number: int, **given: Any) -> dict[str, Any]:
    whole = {
        "id": number,
        "name": "é" * number,
        "price": Decimal(number),
        "day": number,
        "at": number,
        "raw": b"x" * number,
        "ratio": number / 2,
        "tags": ["a"],
    }
    return {**whole, **given}


def test_figures_are_those_of_the_merged_rows() -> None:
    table = new_table()
    put(table, [cells(n) for n in range(1, 5)])
    put(table, [cells(4, name=None, price=None), {"id": 3, "_kind": 3}])
    found, result = analyze_table(table, now_ms=NOW_MS)
    columns = {column.name: column.document() for column in found.columns}
    assert found.merged_record_count == 3
    assert columns["id"] == {
        "colId": 0, "distinctCount": 3, "min": "1", "max": "4", "nullCount": 0,
        "avgLen": 4, "maxLen": 4,
    }  # fmt: skip
    assert columns["name"] == {
        "colId": 1, "distinctCount": 2, "nullCount": 1, "avgLen": 2, "maxLen": 2,
    }  # fmt: skip
    assert (columns["price"]["min"], columns["price"]["max"]) == ("1.00", "2.00")
    assert (columns["day"]["min"], columns["day"]["max"]) == ("1", "4")
    assert columns["at"]["max"] == "1970-01-01 00:00:00.004"
    assert (columns["raw"]["avgLen"], columns["raw"]["maxLen"]) == (3, 4)
    assert columns["ratio"]["max"] == "2.0"
    assert columns["tags"] == {"colId": 7, "nullCount": 0}
    assert result.snapshot is not None
    assert result.snapshot.commit_kind == CommitKind.ANALYZE
    assert result.snapshot.delta_record_count == 0
    assert verify(table) == []


def test_the_size_is_what_merging_leaves_of_the_files() -> None:
    table = new_table()
    put(table, [cells(1)])
    put(table, [cells(1)])
    found, _ = analyze_table(table, [], now_ms=NOW_MS)
    assert found.columns == ()
    assert found.merged_record_count == 1
    assert 0 < (found.merged_record_size or 0) < 10_000


def test_the_file_says_what_the_snapshot_points_to() -> None:
    table = new_table()
    put(table, [cells(1)])
    found, result = analyze_table(table, ["id"], now_ms=NOW_MS)
    assert result.snapshot is not None
    name = str(result.snapshot.statistics)
    assert json.loads(table.io.read_bytes(table.paths.statistics(name))) == found.document()
    assert name.startswith("stat-")
    assert name.endswith("-0")


def test_later_snapshots_keep_the_statistics_until_the_columns_change() -> None:
    table = new_table()
    put(table, [cells(1)])
    _, result = analyze_table(table, ["id"], now_ms=NOW_MS)
    assert result.snapshot is not None
    kept = put(table, [cells(2)]).snapshot
    assert kept is not None
    assert kept.statistics == result.snapshot.statistics
    altered = alter(table, AddColumn("new", parse_type("INT")))
    lost = put(altered, [cells(3)]).snapshot
    assert lost is not None
    assert lost.statistics is None


def test_what_is_not_there_cannot_be_analyzed() -> None:
    table = new_table()
    with pytest.raises(ConfigError, match="no snapshot"):
        analyze_table(table, now_ms=NOW_MS)
    put(table, [cells(1)])
    with pytest.raises(ConfigError, match="no column nope"):
        analyze_table(table, ["id", "nope"], now_ms=NOW_MS)
    snapshot = latest_snapshot(table.io, table.paths)
    assert snapshot is not None
    assert snapshot.id == 1
