import json

import pytest

from ingestd.errors import FormatError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.system.analyze import analyze_table
from ingestd.paimon.table.system.system_tables import read_system_table
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.native_tables import NOW_MS, native_table, put


def test_the_view_shows_the_newest_statistics() -> None:
    table = native_table("/w", [("id", "INT")], keys=["id"], io=MemoryFileIO())
    put(table, [{"id": 1}])
    newest = latest_snapshot(table.io, table.paths)
    assert read_system_table(table, "statistics", newest).num_rows == 0
    assert read_system_table(table, "statistics", None).num_rows == 0
    analyze_table(table, now_ms=NOW_MS)
    newest = latest_snapshot(table.io, table.paths)
    (row,) = read_system_table(table, "statistics", newest).to_pylist()
    assert (row["snapshot_id"], row["mergedRecordCount"]) == (1, 1)
    assert json.loads(row["colstat"])["id"]["max"] == "1"


def test_a_missing_file_is_named_and_found_by_checking() -> None:
    table = native_table("/w", [("id", "INT")], keys=["id"], io=MemoryFileIO())
    put(table, [{"id": 1}])
    _, result = analyze_table(table, [], now_ms=NOW_MS)
    assert result.snapshot is not None
    path = table.paths.statistics(str(result.snapshot.statistics))
    table.io.delete_quietly(path)
    with pytest.raises(FormatError, match=r"statistics/stat-.* is missing"):
        read_system_table(table, "statistics", result.snapshot)
    assert [(one.code, one.where) for one in verify(table)] == [("unreadable", "statistics")]
