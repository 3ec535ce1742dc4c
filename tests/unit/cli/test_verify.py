import json
from pathlib import Path

import pytest

from tests.support.command_line import run_command
from tests.support.native_tables import native_table, put

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    table = native_table(tmp_path, [("id", "INT"), ("v", "STRING")], keys=["id"])
    put(table, [{"id": 1, "v": "a"}])
    put(table, [{"id": 2, "v": "b"}])
    return tmp_path


def test_a_sound_table_is_zero(warehouse: Path, capsys: Capture) -> None:
    done = run_command(capsys, "verify", warehouse, "db.t")
    assert done.code == 0
    assert "sound" in done.out
    assert json.loads(run_command(capsys, "verify", warehouse, "db.t", "--json").out) == []


def test_a_damaged_table_is_one_and_names_the_file(warehouse: Path, capsys: Capture) -> None:
    victim = min((warehouse / "db.db" / "t" / "bucket-0").glob("data-*"))
    victim.unlink()
    done = run_command(capsys, "verify", warehouse, "db.t", "--json")
    assert done.code == 1
    findings = json.loads(done.out)
    assert any(victim.name in one["where"] + one["message"] for one in findings)
    assert set(findings[0]) == {"severity", "code", "where", "message"}
    text = run_command(capsys, "verify", warehouse, "db.t")
    assert text.code == 1
    assert victim.name in text.out
