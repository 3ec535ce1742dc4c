import json
import os
from pathlib import Path
from typing import Any

import pytest

from ingestd.paimon.iceberg.iceberg_sync import sync_iceberg
from ingestd.paimon.spec.schema_change import SetOption
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from tests.support.code_blocks import shown
from tests.support.command_line import run_command
from tests.support.native_tables import alter, native_table, put

Capture = pytest.CaptureFixture[str]
ON = {"metadata.iceberg.storage": "table-location", "bucket": "-1"}


@pytest.fixture
def table(tmp_path: Path) -> FileStoreTable:
    """A table whose metadata is one snapshot behind."""
    made = native_table(tmp_path, [("id", "INT")], options=ON)
    put(made, [{"id": 1}])
    sync_iceberg(made)
    put(made, [{"id": 2}])
    return made


def repaired(capsys: Capture, warehouse: Path) -> Any:
    done = run_command(capsys, "repair", warehouse, "db.t", "--json")
    assert done.code == 0, done.err
    return json.loads(done.out)


def snapshots(table: FileStoreTable) -> list[int]:
    (document,) = Path(table.path, "metadata").glob("v*.json")
    return [entry["snapshot-id"] for entry in json.loads(document.read_bytes())["snapshots"]]


def test_missing_snapshots_are_added(
    table: FileStoreTable, tmp_path: Path, capsys: Capture
) -> None:
    done = run_command(capsys, "repair", tmp_path, "db.t")
    assert done.out == (
        "db.t: the Iceberg metadata shows snapshot 2; before, it showed snapshot 1.\n"
    )
    assert snapshots(table) == [1, 2]
    done = run_command(capsys, "repair", tmp_path, "db.t")
    assert done.out == "db.t: nothing was missing, the Iceberg metadata shows snapshot 2.\n"


@pytest.mark.parametrize("damage", ["lost", "damaged"])
@pytest.mark.parametrize("kind", ["*-m*.avro", "snap-*.avro", "v2.metadata.json"])
def test_lost_and_damaged_files_are_written_again(
    table: FileStoreTable, tmp_path: Path, capsys: Capture, kind: str, damage: str
) -> None:
    sync_iceberg(table)
    for path in Path(table.path, "metadata").glob(kind):
        if damage == "lost":
            path.unlink()
        else:
            path.write_bytes(b"{")
    done = repaired(capsys, tmp_path)
    assert (done["after"], done["restarted"]) == (2, True)
    assert done["before"] == (None if kind.startswith("v2") else 2)
    assert snapshots(table) == [2]
    assert repaired(capsys, tmp_path)["restarted"] is False


def test_metadata_that_lacks_a_file_of_the_snapshot_is_written_again(
    table: FileStoreTable, tmp_path: Path, capsys: Capture
) -> None:
    sync_iceberg(table)
    document = Path(table.path, "metadata", "v2.metadata.json")
    content = json.loads(document.read_bytes())
    first, second = content["snapshots"]
    second["manifest-list"] = first["manifest-list"]
    document.write_text(json.dumps(content))
    assert repaired(capsys, tmp_path) == {
        "table": "db.t", "before": 2, "after": 2, "restarted": True, "dry_run": False
    }  # fmt: skip
    assert repaired(capsys, tmp_path)["restarted"] is False


def test_the_commands_of_the_page_repair_and_clean(
    table: FileStoreTable, tmp_path: Path, capsys: Capture
) -> None:
    left = Path(table.path, "metadata", "0-m1.avro")
    left.write_bytes(b"")
    os.utime(left, (0, 0))
    for line in shown("docs/iceberg.md", "ingestd repair").text.splitlines():
        words = line.replace("WAREHOUSE", str(tmp_path)).replace("ods.orders", "db.t").split()
        assert run_command(capsys, *words[1:]).code == 0
    assert snapshots(table) == [1, 2]
    assert not left.exists()


def test_a_table_without_snapshots_and_one_without_metadata(
    tmp_path: Path, capsys: Capture
) -> None:
    made = native_table(tmp_path, [("id", "INT")], options=ON)
    assert repaired(capsys, tmp_path)["after"] is None
    alter(made, SetOption("metadata.iceberg.storage", "disabled"))
    done = run_command(capsys, "repair", tmp_path, "db.t")
    assert done.code == 2
    assert "option 'metadata.iceberg.storage' is not set" in done.err
