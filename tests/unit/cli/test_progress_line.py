"""Long work is counted on a terminal, and silent in a pipe."""

import io
import json
import sys
from contextlib import redirect_stderr
from pathlib import Path

import pytest

from ingestd.cli import (
    compact,
    dlq,
    expire,
    progress_line,
    read,
    rebuild_index,
    remove_orphans,
    rescale,
    rollback,
    table_commands,
    verify,
)
from ingestd.cli.progress_line import CountingFileIO
from ingestd.errors import FormatError
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.verify.table_verify import verify as verify_table
from tests.support.command_line import run_command
from tests.support.native_tables import native_table, put

Capture = pytest.CaptureFixture[str]


class Terminal(io.StringIO):
    """Standard error, if it were a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setattr(progress_line, "_REFRESH_SECONDS", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    return Terminal()


def made(warehouse: Path) -> FileStoreTable:
    table = native_table(warehouse, [("id", "INT"), ("v", "INT")], keys=["id"])
    for turn in range(3):
        put(table, [{"id": n, "v": turn} for n in range(turn, 6)])
    return table


def test_a_terminal_shows_what_was_done_so_far(tmp_path: Path, terminal: Terminal) -> None:
    with redirect_stderr(terminal), progress_line.working("verifying", made(tmp_path)) as watched:
        assert verify_table(watched) == []
        assert isinstance(watched.io, CountingFileIO)
        counts = watched.io.counts
        assert (counts.data_files, counts.written, counts.deleted) == (3, 0, 0)
    assert "verifying db.t" in terminal.getvalue()


def test_a_bar_is_full_when_every_data_file_was_read(tmp_path: Path, terminal: Terminal) -> None:
    files = progress_line.live_count()
    with (
        redirect_stderr(terminal),
        progress_line.working("verifying", made(tmp_path), files=files) as watched,
    ):
        assert verify_table(watched) == []
    assert "3/3 files" in terminal.getvalue()
    assert progress_line.live_count(1)(made(tmp_path / "other")) == 1


def test_a_table_whose_files_cannot_be_counted_has_no_bar(
    tmp_path: Path, terminal: Terminal
) -> None:
    def count(_: FileStoreTable) -> int:
        raise FormatError("damaged")

    table = made(tmp_path)
    with redirect_stderr(terminal), progress_line.working("verifying", table, files=count):
        pass
    assert "verifying db.t" in terminal.getvalue()
    assert "files" not in terminal.getvalue()


def test_what_a_command_prints_meanwhile_stays_out_of_the_line(
    tmp_path: Path, terminal: Terminal, capsys: Capture
) -> None:
    with redirect_stderr(terminal), progress_line.line_of("reading", made(tmp_path)):
        sys.stdout.write("a row\n")
    assert capsys.readouterr().out == "a row\n"
    assert "a row" not in terminal.getvalue()


def test_waiting_is_reported_on_a_terminal_and_ends(terminal: Terminal) -> None:
    with redirect_stderr(terminal), progress_line.waiting("looking [at] brokers"):
        pass
    assert "looking [at] brokers" in terminal.getvalue()


def test_a_pipe_gets_no_progress(tmp_path: Path, capsys: Capture) -> None:
    made(tmp_path)
    done = run_command(capsys, "verify", tmp_path, "db.t", "--json")
    assert (done.err, json.loads(done.out)) == ("", [])
    with progress_line.waiting("in vain"):
        pass
    assert capsys.readouterr().err == ""


def test_every_command_of_long_work_goes_through_it() -> None:
    for module in (compact, dlq, expire, table_commands, remove_orphans, rebuild_index,
                   rescale, rollback, verify):  # fmt: skip
        assert module.working is progress_line.working  # type: ignore[attr-defined]
    assert read.line_of is progress_line.line_of  # type: ignore[attr-defined]
