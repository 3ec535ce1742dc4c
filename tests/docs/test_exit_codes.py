"""The one table of exit codes in docs/operations.md is what commands end with."""

import inspect
import re
from pathlib import Path

import pytest

from ingestd import errors
from ingestd.cli.interrupts import EXIT_CODE
from ingestd.cli.main import READER_GONE, _options
from tests.support.command_line import run_command
from tests.support.native_tables import native_table, put

Capture = pytest.CaptureFixture[str]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "operations.md"


def documented() -> dict[int, str]:
    table = PAGE.read_text("utf-8").partition("## Exit codes")[2].partition("\n## ")[0]
    return {int(code): text for code, text in re.findall(r"^\| (\d+) \| (.+)$", table, re.M)}


def test_the_table_has_every_code_and_no_other() -> None:
    kinds = [variable for variable in vars(errors).values() if inspect.isclass(variable)]
    ours = {kind.exit_code for kind in kinds if issubclass(kind, errors.IngestdError)}
    assert documented().keys() == ours | {0, EXIT_CODE, READER_GONE}


def test_help_names_the_same_codes() -> None:
    told = str(_options.__doc__).partition("Exit codes:")[2]
    assert {int(code) for code in re.findall(r"\b(\d+) [a-zA-Z]", told)} == documented().keys()


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    table = native_table(tmp_path, [("id", "INT")], keys=["id"], options={"bucket": "1"})
    put(table, [{"id": 1}])
    return tmp_path


def test_what_is_asked_for_and_done_is_zero(lake: Path, capsys: Capture) -> None:
    assert run_command(capsys, "verify", lake, "db.t").code == 0


def test_a_finding_is_one(lake: Path, capsys: Capture) -> None:
    for file in (lake / "db.db/t/bucket-0").iterdir():
        file.unlink()
    done = run_command(capsys, "verify", lake, "db.t")
    assert (done.code, "missing" in done.out) == (1, True)


def test_a_name_that_is_not_there_is_two(lake: Path, capsys: Capture) -> None:
    done = run_command(capsys, "verify", lake, "db.tt")
    assert (done.code, "did you mean 't'?" in done.err) == (2, True)


def test_a_damaged_file_is_four_and_named(lake: Path, capsys: Capture) -> None:
    (lake / "db.db/t/snapshot/snapshot-1").write_text("{")
    done = run_command(capsys, "read", lake, "db.t")
    assert (done.code, "snapshot-1" in done.err) == (4, True)
