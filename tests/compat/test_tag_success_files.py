"""`tag.create-success-file`: success files of tags are those of Java, and no tags."""

import json
from pathlib import Path

import pytest

from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import read_snapshot
from ingestd.paimon.table.metadata.time_travel import tag_names
from ingestd.paimon.table.retention.maintenance import run_maintenance
from ingestd.paimon.table.retention.orphans import find_orphans
from ingestd.paimon.table.retention.tags import create_tag, delete_tags
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.native_tables import NOW_MS, open_native, put
from tests.support.oracle import Oracle

pytestmark = pytest.mark.compat


def java_table(folder: Path, oracle: Oracle) -> FileStoreTable:
    """A table of Java with a tag `t1` of its first snapshot."""
    spec = {
        "fields": [{"name": "k", "type": "INT NOT NULL"}],
        "primaryKey": ["k"],
        "options": {"bucket": "1", "tag.create-success-file": "true"},
        "steps": [{"commit": {"rows": [{"k": 1}]}}, {"tag": {"name": "t1", "snapshot": 1}}],
    }
    oracle.write_spec(spec, folder, folder)
    return open_native(folder)


def success_files(table: FileStoreTable) -> dict[str, dict[str, int]]:
    folder = Path(table.path, "tag", "tag-success-file")
    return {path.name: json.loads(path.read_text()) for path in folder.iterdir()}


def test_a_table_of_java_with_success_files_is_continued(tmp_path: Path, oracle: Oracle) -> None:
    table = java_table(tmp_path, oracle)
    (java,) = success_files(table).values()
    assert tag_names(table.io, table.paths) == ["t1"]
    put(table, [{"k": 2}])
    create_tag(table, "t2", read_snapshot(table.io, table.paths, 2), now_ms=NOW_MS)
    created = success_files(table)
    assert set(created) == {"t1_SUCCESS", "t2_SUCCESS"}
    assert created["t2_SUCCESS"] == {"creationTime": NOW_MS, "modificationTime": NOW_MS}
    assert set(java) == set(created["t2_SUCCESS"])
    run_maintenance(table, NOW_MS)
    assert verify(table) == []
    assert find_orphans(table, older_than_ms=2**62).files == ()
    assert oracle.fsck(tmp_path, "db", "t", "--all", "--orphans") == []
    assert oracle.read(tmp_path, "db", "t", "--tag", "t2") == [{"k": 1}, {"k": 2}]
    assert delete_tags(table, "t1") == []
    assert set(success_files(table)) == {"t2_SUCCESS"}
    steps = [{"deleteTag": "t2"}, {"tag": {"name": "t3", "snapshot": 2}}]
    oracle.write_spec({"existing": True, "steps": steps}, tmp_path, tmp_path)
    assert tag_names(table.io, table.paths) == ["t3"]
    assert set(success_files(table)) == {"t3_SUCCESS"}
