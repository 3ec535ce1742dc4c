import json
from pathlib import Path
from typing import Any

import pytest

from ingestd.paimon.table.metadata.time_travel import on_branch
from tests.support.command_line import run_command
from tests.support.native_tables import native_table, open_native, put

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    put(native_table(tmp_path, [("id", "INT")], keys=["id"]), [{"id": 1}])
    return tmp_path


def shown(capsys: Capture, *arguments: object) -> Any:
    done = run_command(capsys, *arguments, "--json")
    assert done.code == 0, done.err
    return json.loads(done.out)


def rows(capsys: Capture, warehouse: Path, name: str) -> list[int]:
    done = run_command(capsys, "read", warehouse, name)
    return [json.loads(line)["id"] for line in done.out.splitlines()]


def test_a_branch_is_made_written_read_forwarded_and_deleted(
    warehouse: Path, capsys: Capture
) -> None:
    shown(capsys, "tag", "create", warehouse, "db.t", "one")
    made = shown(capsys, "branch", "create", warehouse, "db.t", "fix", "--tag", "one")
    assert made["snapshot"] == 1
    put(on_branch(open_native(warehouse), "fix"), [{"id": 2}])
    assert shown(capsys, "branch", "list", warehouse, "db.t") == [
        {"branch": "fix", "schema_id": 0, "snapshot": 2}
    ]
    assert rows(capsys, warehouse, "db.t$branch_fix") == [1, 2]
    assert rows(capsys, warehouse, "db.t") == [1]
    forwarded = shown(capsys, "branch", "fast-forward", warehouse, "db.t", "fix", "--yes")
    assert forwarded["snapshots_deleted"] == [1]
    assert rows(capsys, warehouse, "db.t") == [1, 2]
    assert "deleted" in run_command(capsys, "branch", "delete", warehouse, "db.t", "fix").out
    assert "no branches" in run_command(capsys, "branch", "list", warehouse, "db.t").out


def test_a_dry_run_changes_nothing(warehouse: Path, capsys: Capture) -> None:
    assert shown(capsys, "branch", "create", warehouse, "db.t", "fix", "--dry-run")["dry_run"]
    assert shown(capsys, "branch", "list", warehouse, "db.t") == []
    shown(capsys, "branch", "create", warehouse, "db.t", "fix", "--latest")
    for command in ("delete", "fast-forward"):
        assert shown(capsys, "branch", command, warehouse, "db.t", "fix", "--dry-run")["dry_run"]
    assert len(shown(capsys, "branch", "list", warehouse, "db.t")) == 1


def test_a_dry_run_of_fast_forward_has_the_result_of_the_real_one(
    warehouse: Path, capsys: Capture
) -> None:
    shown(capsys, "branch", "create", warehouse, "db.t", "fix", "--latest")
    put(open_native(warehouse), [{"id": 2}])
    forward = ("branch", "fast-forward", warehouse, "db.t", "fix")
    assert shown(capsys, *forward, "--dry-run")["snapshots_deleted"] == [1, 2]
    assert rows(capsys, warehouse, "db.t") == [1, 2]
    assert shown(capsys, *forward, "--yes")["snapshots_deleted"] == [1, 2]
    shown(capsys, "branch", "create", warehouse, "db.t", "empty")
    refused = run_command(capsys, *forward[:-1], "empty", "--dry-run")
    assert (refused.code, "no snapshot to forward to" in refused.err) == (2, True)


def test_a_dry_run_refuses_what_the_real_run_would_refuse(warehouse: Path, capsys: Capture) -> None:
    shown(capsys, "tag", "create", warehouse, "db.t", "one")
    shown(capsys, "branch", "create", warehouse, "db.t", "fix", "--tag", "one")
    create = ("branch", "create", warehouse, "db.t")
    for name, reason in (("fix", "already"), ("12", "a number"), ("main", "main")):
        for options in (["--dry-run"], ["--latest"]):
            done = run_command(capsys, *create, name, *options)
            assert (done.code, reason in done.err) == (2, True), done.err
    tags = shown(capsys, "tag", "list", warehouse, "db.t")
    assert [tag["tag"] for tag in tags] == ["one"], "a refused branch leaves no tag"


def test_a_branch_that_an_option_names_is_kept_in_a_dry_run_too(
    tmp_path: Path, capsys: Capture
) -> None:
    options = {"scan.fallback-branch": "fix"}
    put(native_table(tmp_path, [("id", "INT")], keys=["id"], options=options), [{"id": 1}])
    shown(capsys, "branch", "create", tmp_path, "db.t", "fix")
    done = run_command(capsys, "branch", "delete", tmp_path, "db.t", "fix", "--dry-run")
    assert (done.code, "scan.fallback-branch" in done.err) == (2, True), done.err


def test_a_branch_that_is_not_there_is_a_mistake(warehouse: Path, capsys: Capture) -> None:
    for command in ("delete", "fast-forward"):
        done = run_command(capsys, "branch", command, warehouse, "db.t", "none", "--dry-run")
        assert (done.code, "no branch 'none'" in done.err) == (2, True)


def test_a_branch_off_a_snapshot_gets_a_tag_of_its_name(warehouse: Path, capsys: Capture) -> None:
    put(open_native(warehouse), [{"id": 2}])
    for name, where, there in (("a", ["--snapshot", 1], [1]), ("b", ["--latest"], [1, 2])):
        made = shown(capsys, "branch", "create", warehouse, "db.t", name, *where)
        assert (made["tag"], made["snapshot"]) == (name, there[-1])
        assert rows(capsys, warehouse, f"db.t$branch_{name}") == there
    both = ["--latest", "--tag", "a"]
    assert run_command(capsys, "branch", "create", warehouse, "db.t", "c", *both).code == 2
