"""Long work is counted on a terminal, and an interrupt at any moment leaves a sound table."""

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from ingestd.cli import compact, expire, orphans, progress, repair, rescale, verify
from ingestd.paimon.io.file_io import FileIO
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.read.table_read import read_table
from ingestd.paimon.table.verify.table_verify import verify as verify_table
from tests.support.command_line import run_command
from tests.support.native_tables import native_table, open_native, put
from tests.support.watched_file_io import WatchedFileIO

Capture = pytest.CaptureFixture[str]
COMMANDS: dict[str, tuple[object, tuple[str, ...]]] = {
    "verify": (verify, ()),
    "compact": (compact, ("--full",)),
    "expire": (expire, ("snapshots", "--retain-max", "1")),
    "orphans": (orphans, ()),
}


@dataclass
class Interrupted(WatchedFileIO):
    """Ctrl-C comes before or after one of the calls."""

    inner: FileIO
    at: int
    after: bool
    seen: int = 0

    @contextlib.contextmanager
    def _call(self, operation: str, path: str) -> Iterator[None]:
        self.seen += 1
        now = self.seen == self.at
        if now and not self.after:
            raise KeyboardInterrupt
        yield
        if now:
            raise KeyboardInterrupt


def made(warehouse: Path) -> FileStoreTable:
    table = native_table(warehouse, [("id", "INT"), ("v", "INT")], keys=["id"])
    for turn in range(3):
        put(table, [{"id": n, "v": turn} for n in range(turn, 6)])
    return table


def words(command: str, warehouse: Path) -> list[object]:
    _, options = COMMANDS[command]
    own = [one for one in options if command == "expire" and not one.startswith("-")][:1]
    return [command, *own, warehouse, "db.t", *options[len(own) :]]


@pytest.mark.parametrize("after", [False, True], ids=["before a call", "after a call"])
@pytest.mark.parametrize("command", COMMANDS)
def test_an_interrupt_at_any_call_leaves_a_sound_table_with_the_same_rows(
    command: str, after: bool, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    module, _ = COMMANDS[command]
    for at in range(1, 2_000, 4):
        warehouse = tmp_path / str(at)
        table = made(warehouse)
        rows = read_table(table).sort_by("id")
        io = Interrupted(table.io, at, after)
        handle = replace(table, io=io)
        with monkeypatch.context() as patched:
            patched.setattr(module, "open_table", lambda *_, handle=handle: handle)
            done = run_command(capsys, *words(command, warehouse))
        if done.code == 0 and io.seen < at:
            assert at > 1
            return
        assert done.code in (0, 130), done.err
        assert done.code == 0 or "nothing is half-done" in done.err
        again = open_native(warehouse)
        # Readers look beyond a stale hint, and the next expiry mends it.
        assert [one for one in verify_table(again) if one.code != "hint"] == [], at
        assert read_table(again).sort_by("id").equals(rows), at
    raise AssertionError("it never came to its end")


class Terminal:
    """Standard error, if it were a terminal."""

    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return True


def test_a_terminal_is_told_what_was_done_so_far(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = made(tmp_path)
    terminal = Terminal()
    monkeypatch.setattr(progress.sys, "stderr", terminal)
    monkeypatch.setattr(progress, "_REFRESH_SECONDS", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    with progress.working("verifying", table) as watched:
        assert verify_table(watched) == []
        assert isinstance(watched.io, progress.CountingFileIO)
        line = watched.io.line
        assert line.read > 3
        assert (line.written, line.deleted) == (0, 0)
    assert "verifying db.t" in terminal.text


def test_a_pipe_is_told_nothing(tmp_path: Path, capsys: Capture) -> None:
    made(tmp_path)
    done = run_command(capsys, "verify", tmp_path, "db.t", "--json")
    assert (done.err, json.loads(done.out)) == ("", [])


def test_every_command_of_long_work_goes_through_it() -> None:
    for module in (compact, expire, orphans, repair, rescale, verify):
        assert module.working is progress.working  # type: ignore[attr-defined]
