import json
from pathlib import Path
from typing import Any

import pytest

from ingestd.paimon.spec.schema_change import SetOption
from ingestd.paimon.table.metadata.snapshot_manager import latest_snapshot
from ingestd.paimon.table.metadata.time_travel import on_branch
from ingestd.paimon.table.verify.table_verify import verify
from tests.support.command_line import run_command
from tests.support.native_tables import alter, native_table, open_native, put
from tests.support.stored_rows import forget_snapshots

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    table = native_table(tmp_path, [("id", "INT")], keys=["id"])
    for number in range(2):
        put(table, [{"id": number}])
    return tmp_path


def shown(capsys: Capture, *arguments: object) -> Any:
    done = run_command(capsys, *arguments, "--json")
    assert done.code == 0, done.err
    return json.loads(done.out)


def tags(warehouse: Path, capsys: Capture) -> dict[str, Any]:
    return {one["tag"]: one for one in shown(capsys, "tag", "list", warehouse, "db.t")}


def test_a_tag_is_made_listed_moved_and_deleted(warehouse: Path, capsys: Capture) -> None:
    made = shown(capsys, "tag", "create", warehouse, "db.t", "a", "--snapshot", "1")
    assert (made["snapshot"], made["time_retained_ms"]) == (1, None)
    assert tags(warehouse, capsys)["a"]["snapshot"] == 1
    assert run_command(capsys, "tag", "create", warehouse, "db.t", "a").code == 2
    assert shown(capsys, "tag", "create", warehouse, "db.t", "a", "--replace")["snapshot"] == 2
    done = run_command(capsys, "tag", "delete", warehouse, "db.t", "a")
    assert "tag 'a' of snapshot 2 deleted" in done.out
    assert tags(warehouse, capsys) == {}


def test_commands_that_change_a_table_keep_its_iceberg_metadata(
    tmp_path: Path, capsys: Capture
) -> None:
    options = {"metadata.iceberg.storage": "table-location", "bucket": "-1"}
    put(native_table(tmp_path, [("id", "INT")], options=options), [{"id": 1}])

    def newest() -> Any:
        (document,) = (tmp_path / "db.db/t/metadata").glob("v*.json")
        return json.loads(document.read_bytes())

    shown(capsys, "tag", "create", tmp_path, "db.t", "a")
    assert newest()["refs"]["a"]["snapshot-id"] == 1
    shown(capsys, "tag", "delete", tmp_path, "db.t", "a")
    assert newest()["refs"] == {}
    shown(capsys, "truncate", tmp_path, "db.t", "--yes")
    assert newest()["current-snapshot-id"] == 2
    put(open_native(tmp_path), [{"id": 2}])
    shown(capsys, "compact", tmp_path, "db.t")
    assert newest()["current-snapshot-id"] == 3, "it catches up with nothing to compact"
    shown(capsys, "rollback", tmp_path, "db.t", "--snapshot", "1", "--yes")
    assert newest()["current-snapshot-id"] == 1
    shown(capsys, "branch", "create", tmp_path, "db.t", "b", "--latest")
    assert newest()["refs"]["b"]["snapshot-id"] == 1
    put(on_branch(open_native(tmp_path), "b"), [{"id": 3}, {"id": 4}])
    put(open_native(tmp_path), [{"id": 5}])
    shown(capsys, "repair", tmp_path, "db.t")
    before = newest()["snapshots"][-1]["summary"]
    shown(capsys, "branch", "fast-forward", tmp_path, "db.t", "b", "--yes")
    assert newest()["current-snapshot-id"] == 2
    assert newest()["snapshots"][-1]["summary"] != before


def test_a_dry_run_changes_nothing(warehouse: Path, capsys: Capture) -> None:
    assert shown(capsys, "tag", "create", warehouse, "db.t", "a", "--dry-run")["dry_run"]
    assert tags(warehouse, capsys) == {}
    run_command(capsys, "tag", "create", warehouse, "db.t", "a", "--time-retained", "1 ms")
    for command in (["delete", warehouse, "db.t", "a"], ["expire", warehouse, "db.t"]):
        assert shown(capsys, "tag", *command, "--dry-run")["dry_run"]
    assert list(tags(warehouse, capsys)) == ["a"]


@pytest.mark.parametrize("command", [["delete", "a"], ["expire"]])
def test_a_dry_run_names_the_files_that_are_then_deleted(
    command: list[str], warehouse: Path, capsys: Capture
) -> None:
    table = open_native(warehouse)
    run_command(capsys, "tag", "create", warehouse, "db.t", "a", "--time-retained", "1 ms")
    run_command(capsys, "tag", "create", warehouse, "db.t", "b", "--time-retained", "1 ms")
    run_command(capsys, "truncate", warehouse, "db.t", "--yes")
    latest = latest_snapshot(table.io, table.paths)
    assert latest is not None
    forget_snapshots(table, *range(1, latest.id))
    name, *tag_argument = command
    arguments = ["tag", name, warehouse, "db.t", *tag_argument]
    planned = shown(capsys, *arguments, "--dry-run")
    assert list(tags(warehouse, capsys)) == ["a", "b"]
    assert all(Path(path).exists() for path in planned["deleted_files"])
    done = shown(capsys, *arguments)
    assert done["deleted_files"] == planned["deleted_files"]
    assert bool(done["deleted_files"]) == (name == "expire"), "tag b keeps the files of tag a"
    assert not any(Path(path).exists() for path in done["deleted_files"])
    assert verify(table) == []


@pytest.mark.parametrize(
    "command",
    [
        *(["expire", what] for what in ("snapshots", "changelogs", "partitions", "tags")),
        ["remove-orphans"],
    ],
)
def test_a_dry_run_writes_no_iceberg_metadata(
    command: list[str], tmp_path: Path, capsys: Capture
) -> None:
    options = {"metadata.iceberg.storage": "table-location", "partition.expiration-time": "1 d"}
    columns = [("dt", "STRING"), ("id", "INT")]
    table = native_table(tmp_path, columns, partitions=["dt"], options=options | {"bucket": "-1"})
    put(table, [{"dt": "2026-01-01", "id": 1}])
    shown(capsys, *command, tmp_path, "db.t", "--dry-run")
    assert not (tmp_path / "db.db/t/metadata").exists()


def test_tags_live_as_long_as_they_or_the_table_say(warehouse: Path, capsys: Capture) -> None:
    alter(open_native(warehouse), SetOption("tag.default-time-retained", "1 ms"))
    shown(capsys, "tag", "create", warehouse, "db.t", "short")
    shown(capsys, "tag", "create", warehouse, "db.t", "long", "--time-retained", "2 h")
    assert tags(warehouse, capsys)["long"]["retained"] == "PT2H"
    assert shown(capsys, "tag", "expire", warehouse, "db.t")["tags"] == ["short"]
    assert list(tags(warehouse, capsys)) == ["long"]


def test_an_empty_table_cannot_be_tagged(tmp_path: Path, capsys: Capture) -> None:
    native_table(tmp_path, [("id", "INT")])
    assert "no snapshot yet" in run_command(capsys, "tag", "create", tmp_path, "db.t", "a").err
    assert "no tags" in run_command(capsys, "tag", "list", tmp_path, "db.t").out
