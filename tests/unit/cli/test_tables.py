import json
from pathlib import Path
from typing import Any

import pytest

from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.schema_change import AddColumn
from tests.support.command_line import run_command
from tests.support.native_tables import alter, native_table, put

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    table = native_table(
        tmp_path,
        [("id", "INT"), ("dt", "STRING"), ("v", "STRING")],
        keys=["id", "dt"],
        partitions=["dt"],
        options={"bucket": "2"},
    )
    put(table, [{"id": 1, "dt": "a", "v": "x"}, {"id": 2, "dt": "b", "v": "y"}])
    table = alter(table, AddColumn("w", parse_type("DECIMAL(5, 1)")))
    put(table, [{"id": 1, "dt": "a", "v": "z", "w": None}])
    return tmp_path


def shown(capsys: Capture, *arguments: object) -> Any:
    done = run_command(capsys, *arguments, "--json")
    assert done.code == 0, done.err
    return json.loads(done.out)


def test_tables_show_keys_buckets_and_the_newest_snapshot(warehouse: Path, capsys: Capture) -> None:
    assert shown(capsys, "tables", warehouse) == [
        {
            "table": "db.t",
            "primary_keys": ["id", "dt"],
            "partition_keys": ["dt"],
            "bucket": "2",
            "schema_id": 1,
            "snapshot_id": 2,
            "records": 3,
            "committed_at": "2023-11-14T22:13:20.000Z",
        }
    ]
    assert shown(capsys, "tables", warehouse, "db")[0]["table"] == "db.t"
    assert "db.t" in run_command(capsys, "tables", warehouse).out


def test_a_database_that_does_not_exist_is_an_error(warehouse: Path, capsys: Capture) -> None:
    assert run_command(capsys, "tables", warehouse, "dbx").code == 2


def test_snapshots_come_oldest_first_with_all_they_hold(warehouse: Path, capsys: Capture) -> None:
    first, second = shown(capsys, "snapshots", warehouse, "db.t")
    assert (first["id"], second["id"]) == (1, 2)
    assert first["commit_kind"] == "APPEND"
    assert second["schema_id"] == 1
    assert "properties" in first
    assert "native" in run_command(capsys, "snapshots", warehouse, "db.t").out


def test_files_are_those_of_the_snapshot(warehouse: Path, capsys: Capture) -> None:
    newest = shown(capsys, "files", warehouse, "db.t")
    oldest = shown(capsys, "files", warehouse, "db.t", "--snapshot", 1)
    assert len(newest) == 3
    assert len(oldest) == 2
    assert {one["partition"] for one in oldest} == {"dt=a", "dt=b"}
    assert all((warehouse / "db.db" / "t").rglob(one["file"]) for one in newest)
    assert "dt=a" in run_command(capsys, "files", warehouse, "db.t").out


def test_partitions_of_files_are_named_as_other_commands_take_them(
    tmp_path: Path, capsys: Capture
) -> None:
    columns = [("v", "INT"), ("p", "BOOLEAN")]
    table = native_table(tmp_path, columns, partitions=["p"], options={"bucket": "-1"})
    put(table, [{"v": 1, "p": True}, {"v": 2, "p": None}])
    found = {one["partition"] for one in shown(capsys, "files", tmp_path, "db.t")}
    assert found == {"p=true", "p=__DEFAULT_PARTITION__"}


def test_a_schema_is_shown_as_its_file_has_it(warehouse: Path, capsys: Capture) -> None:
    newest = shown(capsys, "schema", warehouse, "db.t")
    file = json.loads((warehouse / "db.db/t/schema/schema-1").read_text())
    assert newest == file
    oldest = shown(capsys, "schema", warehouse, "db.t", "--id", 0)
    assert [field["name"] for field in oldest["fields"]] == ["id", "dt", "v"]
    text = run_command(capsys, "schema", warehouse, "db.t").out
    assert "DECIMAL(5, 1)" in text
    assert "primary, partition" in text


def test_a_schema_that_does_not_exist_is_an_error(warehouse: Path, capsys: Capture) -> None:
    assert run_command(capsys, "schema", warehouse, "db.t", "--id", 9).code == 2


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("db.tt", "did you mean 't'?"),
        ("t", "write database.table"),
        ("a/b.t", "slash"),
    ],
)
def test_a_table_that_does_not_exist_says_what_there_is(
    warehouse: Path, capsys: Capture, name: str, message: str
) -> None:
    for command in ("snapshots", "files", "schema", "read", "verify"):
        done = run_command(capsys, command, warehouse, name)
        assert done.code == 2
        assert message in done.err
        assert done.out == ""


def test_a_table_without_snapshots_has_nothing_to_show(tmp_path: Path, capsys: Capture) -> None:
    native_table(tmp_path, [("id", "INT")], keys=["id"])
    assert shown(capsys, "snapshots", tmp_path, "db.t") == []
    assert shown(capsys, "files", tmp_path, "db.t") == []
    assert shown(capsys, "tables", tmp_path)[0]["snapshot_id"] is None
    assert "no snapshots" in run_command(capsys, "snapshots", tmp_path, "db.t").out


def test_the_warehouse_may_be_relative(
    warehouse: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(warehouse.parent)
    assert shown(capsys, "tables", warehouse.name)[0]["table"] == "db.t"
