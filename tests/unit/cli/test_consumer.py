import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import run_command
from tests.support.native_tables import native_table

Capture = pytest.CaptureFixture[str]


def shown(capsys: Capture, *arguments: object) -> Any:
    done = run_command(capsys, *arguments, "--json")
    assert done.code == 0, done.err
    return json.loads(done.out)


def test_a_consumer_is_put_listed_and_forgotten(tmp_path: Path, capsys: Capture) -> None:
    native_table(tmp_path, [("id", "INT")])
    place = (tmp_path, "db.t")
    assert "no consumers" in run_command(capsys, "consumer", "list", *place).out
    first = shown(capsys, "consumer", "reset", *place, "c", "--next-snapshot", 3)
    assert (first["before"], first["next_snapshot"]) == (None, 3)
    assert shown(capsys, "consumer", "reset", *place, "c", "--next-snapshot", 1)["before"] == 3
    shown(capsys, "consumer", "reset", *place, "c", "--next-snapshot", 9, "--dry-run")
    shown(capsys, "consumer", "delete", *place, "c", "--dry-run")
    listed = [{"consumer": "c", "next_snapshot": 1}]
    assert shown(capsys, "consumer", "list", *place) == listed
    assert "deleted" in run_command(capsys, "consumer", "delete", *place, "c").out
    assert run_command(capsys, "consumer", "delete", *place, "c").code == 2
