import json
from pathlib import Path

import pytest

from tests.support.command_line import run_command
from tests.support.native_tables import native_table, put

Capture = pytest.CaptureFixture[str]


def test_orphans_are_shown_first_and_deleted_then(tmp_path: Path, capsys: Capture) -> None:
    put(native_table(tmp_path, [("id", "INT")], keys=["id"]), [{"id": 1}])
    lost = tmp_path / "db.db/t/manifest/manifest-lost"
    lost.write_bytes(b"123")
    assert "there are no orphan files" in run_command(capsys, "orphans", tmp_path, "db.t").out
    given = ("orphans", tmp_path, "db.t", "--older-than", "0 ms", "--json")
    planned = json.loads(run_command(capsys, *given, "--dry-run").out)
    assert [one["file"] for one in planned["files"]] == [str(lost)]
    assert (planned["bytes"], planned["dry_run"]) == (3, True)
    assert lost.exists()
    assert json.loads(run_command(capsys, *given).out)["bytes"] == 3
    assert not lost.exists()
    assert json.loads(run_command(capsys, *given).out)["files"] == []
    assert run_command(capsys, "verify", tmp_path, "db.t").code == 0


def test_an_age_that_is_none_is_refused(tmp_path: Path, capsys: Capture) -> None:
    put(native_table(tmp_path, [("id", "INT")], keys=["id"]), [{"id": 1}])
    done = run_command(capsys, "orphans", tmp_path, "db.t", "--older-than", "a while")
    assert done.code == 2
    assert "older-than" in done.err
