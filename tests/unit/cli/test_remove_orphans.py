import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from ingestd.cli import remove_orphans as command
from ingestd.errors import FencedError
from ingestd.ingest.tables.leadership import Leadership
from ingestd.paimon.io.local import LocalFileIO
from ingestd.paimon.table.retention.orphans import Orphans
from tests.support.command_line import run_command
from tests.support.native_tables import native_table, put

Capture = pytest.CaptureFixture[str]


def test_orphans_are_shown_first_and_deleted_then(tmp_path: Path, capsys: Capture) -> None:
    put(native_table(tmp_path, [("id", "INT")], keys=["id"]), [{"id": 1}])
    lost = tmp_path / "db.db/t/manifest/manifest-lost"
    lost.write_bytes(b"123")
    assert (
        "there are no orphan files" in run_command(capsys, "remove-orphans", tmp_path, "db.t").out
    )
    given = ("remove-orphans", tmp_path, "db.t", "--older-than", "0 ms", "--json", "--yes")
    planned = json.loads(run_command(capsys, *given, "--dry-run").out)
    assert [file["file"] for file in planned["files"]] == [str(lost)]
    assert (planned["bytes"], planned["dry_run"]) == (3, True)
    assert lost.exists()
    assert json.loads(run_command(capsys, *given).out)["bytes"] == 3
    assert not lost.exists()
    assert json.loads(run_command(capsys, *given).out)["files"] == []
    assert run_command(capsys, "verify", tmp_path, "db.t").code == 0


def test_an_age_that_is_none_is_refused(tmp_path: Path, capsys: Capture) -> None:
    put(native_table(tmp_path, [("id", "INT")], keys=["id"]), [{"id": 1}])
    done = run_command(capsys, "remove-orphans", tmp_path, "db.t", "--older-than", "a while")
    assert done.code == 2
    assert "older-than" in done.err


def littered(folder: Path) -> Path:
    put(native_table(folder, [("id", "INT")], keys=["id"]), [{"id": 1}])
    lost = folder / "db.db/t/bucket-0/data-lost.parquet"
    lost.parent.mkdir(parents=True, exist_ok=True)
    lost.write_bytes(b"123")
    return lost


def daemon(warehouse: Path, pipeline: str) -> Leadership:
    """A process that leads a pipeline of the warehouse."""
    folder = f"{warehouse}/.ingestd/{pipeline}"
    leads = Leadership(LocalFileIO(), folder, pipeline, f"node:{pipeline}")
    leads.claim()
    return leads


def test_the_clock_of_this_machine_makes_no_file_old(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = littered(tmp_path)
    right = time.time
    monkeypatch.setattr(time, "time", lambda: right() + 25 * 3600)
    assert (
        "there are no orphan files" in run_command(capsys, "remove-orphans", tmp_path, "db.t").out
    )
    assert lost.exists()
    monkeypatch.setattr(time, "time", lambda: right() - 365 * 24 * 3600)
    os.utime(lost, (right() - 25 * 3600,) * 2)
    assert "1 orphan file " in run_command(capsys, "remove-orphans", tmp_path, "db.t").out
    assert not lost.exists()


def test_young_files_go_only_if_somebody_agrees_that_daemons_end(
    tmp_path: Path, capsys: Capture
) -> None:
    lost = littered(tmp_path)
    leads = [daemon(tmp_path, name) for name in ("shop", "users")]
    young = ("remove-orphans", tmp_path, "db.t", "--older-than", "5 h")
    done = run_command(capsys, *young)
    assert done.code == 2
    assert "the daemons of shop, users are stopped" in done.err
    assert "--yes" in done.err
    assert "1 orphan file" not in run_command(capsys, *young, "--dry-run").out
    for lead in leads:
        lead.check()
    now = ("remove-orphans", tmp_path, "db.t", "--older-than", "0 s", "--yes", "--json")
    done = run_command(capsys, *now)
    assert (done.code, json.loads(done.out)["stopped_pipelines"]) == (0, ["shop", "users"])
    assert not lost.exists()
    for one in leads:
        with pytest.raises(FencedError, match="another daemon has taken over"):
            one.check()


def test_six_hours_are_old_enough_for_daemons_to_go_on(tmp_path: Path, capsys: Capture) -> None:
    littered(tmp_path)
    leads = daemon(tmp_path, "shop")
    assert run_command(capsys, "remove-orphans", tmp_path, "db.t", "--older-than", "6 h").code == 0
    leads.check()


def test_a_daemon_that_starts_meanwhile_keeps_its_files(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = littered(tmp_path)
    daemon(tmp_path, "shop")
    right = command.find_orphans

    def slow(*arguments: Any, **named: Any) -> Orphans:
        Leadership(LocalFileIO(), f"{tmp_path}/.ingestd/shop", "shop", "node:again").claim()
        return right(*arguments, **named)

    monkeypatch.setattr(command, "find_orphans", slow)
    done = run_command(capsys, "remove-orphans", tmp_path, "db.t", "--older-than", "0 s", "--yes")
    assert done.code == 6
    assert "another daemon has taken over (node:again)" in done.err
    assert lost.exists()


def test_external_paths_are_searched_if_asked_and_confirmed(
    tmp_path: Path, capsys: Capture
) -> None:
    outside = tmp_path / "outside"
    options = {
        "bucket": "1",
        "data-file.external-paths": f"file://{outside}",
        "data-file.external-paths.strategy": "round-robin",
    }
    put(native_table(tmp_path / "w", [("id", "INT")], keys=["id"], options=options), [{"id": 1}])
    lost = outside / "bucket-0/data-lost.parquet"
    lost.write_bytes(b"123")
    given = ("remove-orphans", tmp_path / "w", "db.t", "--older-than", "0 ms")
    assert "there are no orphan files" in run_command(capsys, *given, "--yes").out
    refused = run_command(capsys, *given, "--external-paths")
    assert refused.code == 2
    assert "Files of other tables" in refused.err
    assert lost.exists()
    assert run_command(capsys, *given, "--external-paths", "--yes").code == 0
    assert [path.suffix for path in outside.rglob("data-*")] == [".parquet"]
    assert not lost.exists()
    assert run_command(capsys, "verify", tmp_path / "w", "db.t").code == 0
