"""`ingestd compact` of a table whose rows wait for their bucket."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import run_command
from tests.support.java_fixtures import JavaFixture, unpack
from tests.support.stored_rows import stored_rows

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def fixture(tmp_path: Path) -> JavaFixture:
    """Rows of Java in buckets, and five that wait."""
    return unpack("postpone_compacted", tmp_path)


def _shown(capsys: Capture, *arguments: object) -> Any:
    done = run_command(capsys, *arguments, "--json")
    assert done.code == 0, done.err
    return json.loads(done.out)


def test_waiting_rows_are_put_into_buckets_before_these_are_compacted(
    fixture: JavaFixture, capsys: Capture
) -> None:
    before = {row["k"] for row in stored_rows(fixture.table)}
    planned = _shown(capsys, "compact", fixture.warehouse, "db.t", "--dry-run")
    assert (planned["waiting_rows"], planned["dry_run"]) == (5, True)
    assert {row["k"] for row in stored_rows(fixture.table)} == before
    done = _shown(capsys, "compact", fixture.warehouse, "db.t", "--full")
    assert (done["waiting_rows"], done["status"], len(done["buckets"])) == (5, "compacted", 3)
    assert {row["k"] for row in stored_rows(fixture.table)} == before - {40} | {2, 7, 13}
    again = run_command(capsys, "compact", fixture.warehouse, "db.t")
    assert again.out.strip() == "db.t: nothing to compact."


def test_the_output_states_how_many_rows_waited(fixture: JavaFixture, capsys: Capture) -> None:
    done = run_command(capsys, "compact", fixture.warehouse, "db.t", "--full")
    assert "db.t: 5 waiting rows put into buckets; 6 files became 3" in done.out
