import json
from pathlib import Path

import pytest

from tests.support.command_line import run_command
from tests.support.native_tables import native_table, open_native, put

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    table = native_table(
        tmp_path, [("id", "INT"), ("v", "STRING")], keys=["id"], options={"bucket": "2"}
    )
    put(table, [{"id": n, "v": f"v{n}"} for n in range(6)])
    put(table, [{"id": 1, "v": "new"}, {"id": 2, "_kind": 3}])
    table.io.write_new(
        f"{table.paths.tag_dir}/tag-first", table.io.read_bytes(table.paths.snapshot(1))
    )
    return tmp_path


def rows(
    capsys: Capture, warehouse: Path, name: str, *arguments: object
) -> list[dict[str, object]]:
    done = run_command(capsys, "read", warehouse, name, *arguments)
    assert done.code == 0, done.err
    return [json.loads(line) for line in done.out.splitlines()]


def ids(found: list[dict[str, object]]) -> list[object]:
    return [row["id"] for row in found]


def test_conditions_and_columns(warehouse: Path, capsys: Capture) -> None:
    found = rows(capsys, warehouse, "db.t", "--where", "v like 'v%' and id < 4", "--columns", "id")
    assert found == [{"id": 0}, {"id": 3}]
    found = rows(capsys, warehouse, "db.t", "--where", "id = 1", "--columns", "v,id")
    assert found == [{"v": "new", "id": 1}]


def test_points_in_time(warehouse: Path, capsys: Capture) -> None:
    assert ids(rows(capsys, warehouse, "db.t")) == [0, 1, 3, 4, 5]
    assert len(rows(capsys, warehouse, "db.t", "--tag", "first")) == 6
    assert len(rows(capsys, warehouse, "db.t", "--as-of", "2030-01-01")) == 5
    assert len(rows(capsys, warehouse, "db.t", "--snapshot", 1)) == 6


def test_what_snapshots_brought(warehouse: Path, capsys: Capture) -> None:
    assert rows(capsys, warehouse, "db.t", "--from", 2) == [{"id": 1, "v": "new"}]
    changes = rows(
        capsys, warehouse, "db.t", "--changelog", "--from", 2, "--where", "rowkind = '-D'"
    )
    assert changes == [{"_snapshot": 2, "rowkind": "-D", "id": 2, "v": None}]


@pytest.mark.parametrize("asked", [["db.t$audit_log"], ["db.t", "--audit-log"]])
def test_audit_logs_hold_deletions(asked: list[str], warehouse: Path, capsys: Capture) -> None:
    found = rows(capsys, warehouse, *asked)
    assert {(row["rowkind"], row["id"]) for row in found} == {
        ("+I", 0), ("+I", 1), ("-D", 2), ("+I", 3), ("+I", 4), ("+I", 5),
    }  # fmt: skip


def test_views(warehouse: Path, capsys: Capture) -> None:
    found = rows(capsys, warehouse, "db.t$snapshots", "--columns", "snapshot_id,commit_kind")
    assert found == [
        {"snapshot_id": 1, "commit_kind": "APPEND"},
        {"snapshot_id": 2, "commit_kind": "APPEND"},
    ]
    files = rows(capsys, warehouse, "db.t$files", "--where", "record_count > 1")
    assert files
    assert all(int(str(row["record_count"])) > 1 for row in files)
    assert len(rows(capsys, warehouse, "db.t$files", "--snapshot", 1)) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["db.t", "--where", "w = 1"], "unknown column 'w'"),
        (["db.t", "--columns", "w"], "has no column w"),
        (["db.t$files", "--columns", "w"], "db.t$files has no column w"),
        (["db.t$snapshots", "--changelog"], "$snapshots is not a table with changes"),
        (["db.t$nothing"], "unknown system table '$nothing'"),
        (["db.t$branch_b"], "has no branch 'b'"),
        (["db.t", "--tag", "x", "--snapshot", "1"], "give one"),
        (["db.t", "--tag", "x"], "has no tag 'x'; its tags: first"),
        (["db.t", "--as-of", "2001-01-01"], "no snapshot at or before that time"),
        (["db.t", "--as-of", "soon"], "'soon' is no time: write ISO 8601"),
        (["db.t", "--from", "1", "--tag", "first"], "--from and --to exclude"),
        (["db.t", "--changelog", "--audit-log"], "leave out --audit-log"),
    ],
)
def test_mistakes_are_explained(
    arguments: list[str], message: str, warehouse: Path, capsys: Capture
) -> None:
    done = run_command(capsys, "read", warehouse, *arguments)
    assert done.code == 2
    assert message in done.err.replace("\n", " ")


def test_a_binlog_has_an_update_in_one_row(warehouse: Path, capsys: Capture) -> None:
    put(open_native(warehouse), [{"id": 9, "_kind": 3}, {"id": 4, "v": "x", "_kind": 2}])
    found = rows(capsys, warehouse, "db.t$binlog", "--where", "id = 1 or id = 9")
    kinds = sorted((one["rowkind"], one["id"]) for one in found)
    assert kinds == [("+I", [1]), ("-D", [9])]
    changes = rows(capsys, warehouse, "db.t$binlog", "--changelog", "--from", 3)
    assert sorted((change["rowkind"], change["id"], change["v"]) for change in changes) == [
        ("+U", [4], ["x"]), ("-D", [9], [None]),
    ]  # fmt: skip
    done = run_command(capsys, "read", warehouse, "db.t$binlog", "--changelog", "--columns", "id")
    assert done.code == 2
    assert "rowkind" in done.err


def test_the_read_optimized_view_has_what_is_compacted(warehouse: Path, capsys: Capture) -> None:
    assert rows(capsys, warehouse, "db.t$ro") == []
    done = run_command(capsys, "read", warehouse, "db.t$ro", "--changelog")
    assert done.code == 2
    assert "no changes" in done.err
