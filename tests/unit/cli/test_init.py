"""`ingestd init` before it asks a broker; with one it is in tests/integration."""

from pathlib import Path

import pytest

from tests.support.command_line import run_command

Capture = pytest.CaptureFixture[str]


def test_a_file_that_is_there_stays(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("mine")
    done = run_command(capsys, "init", file, "--bootstrap", "nowhere:1")
    assert (done.code, file.read_text()) == (2, "mine")
    assert "--force" in done.err


def test_without_a_terminal_the_missing_option_is_named(tmp_path: Path, capsys: Capture) -> None:
    done = run_command(capsys, "init", tmp_path / "new.yaml")
    assert (done.code, "--bootstrap" in done.err) == (2, True)


def test_a_property_without_a_value_is_refused_and_not_repeated(capsys: Capture) -> None:
    done = run_command(capsys, "init", "-", "--bootstrap", "x:1", "--kafka", "password")
    assert done.code == 2
    assert "NAME=VALUE" in done.err
