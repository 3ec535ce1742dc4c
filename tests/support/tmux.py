"""A real terminal for one program at a time: tmux, with a server of its own.

with Tmux(folder) as tmux:
    window = tmux.run(["python", "-c", "input('name? ')"], cwd=folder, env={})
    window.wait_for("name?")
    window.press("someone", "Enter")
    shown, code = window.screen(), window.code()
"""

import shlex
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.closing import Closing
from tests.support.screen import Screen

COLUMNS, LINES = 80, 24
TIMEOUT = 120
_POLL = 0.02
_INSIDE = 'trap : INT; while [ ! -e {0}.on ]; do sleep 0.01; done; "$@"; echo $? >{0}.ended'
"""Waits until it is recorded; the trap keeps the shell alive when the program is interrupted."""
_END = "mv {0}.ended {0}.code; sleep 600"


def has_tmux() -> bool:
    """Whether this machine has it."""
    return shutil.which("tmux") is not None


@dataclass(frozen=True, slots=True)
class Window:
    """A program in a window of 80 columns and 24 lines."""

    server: "Tmux"
    name: str

    @property
    def _file(self) -> Path:
        return self.server.folder / self.name

    def text(self) -> str:
        """What is shown now, and what has scrolled away."""
        return self._capture().plain()

    def screen(self) -> Screen:
        """What is shown, with its styles, and the lines that the program took back."""
        shown, written = self._capture(), Screen(COLUMNS)
        self.server.ask("pipe-pane", "-t", self.name)  # without a command: the recording ends
        self._await_file(".recorded")
        written.feed(self._file.with_suffix(".raw").read_bytes().decode())
        shown.taken_back = written.taken_back
        return shown

    def wait_for(self, words: str) -> None:
        """Until the words are shown; AssertionError with the screen if they never are."""
        end = time.monotonic() + TIMEOUT
        while words not in self.text():
            assert time.monotonic() < end, f"never shown: {words!r} in\n{self.text()}"
            time.sleep(_POLL)

    def press(self, *keys: str) -> None:
        """Keys as tmux calls them (`Enter`, `C-c`); other words are typed."""
        self.server.ask("send-keys", "-t", self.name, *keys)

    def code(self) -> int:
        """The exit code of the program, which is waited for."""
        return int(self._await_file(".code").read_text())

    def _await_file(self, suffix: str) -> Path:
        end, file = time.monotonic() + TIMEOUT, self._file.with_suffix(suffix)
        while not file.exists():
            assert time.monotonic() < end, f"it does not end:\n{self.text()}"
            time.sleep(_POLL)
        return file

    def _capture(self) -> Screen:
        screen = Screen(COLUMNS)
        shown = self.server.ask("capture-pane", "-p", "-e", "-S", "-", "-t", self.name)
        screen.feed(shown.replace("\n", "\r\n"))
        return screen


class Tmux(Closing):
    """A server of its own in a folder; it ends with the block of `with`, and every program too."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._made = 0

    def start(self) -> None:
        """Begin the server."""
        size = ("-x", str(COLUMNS), "-y", str(LINES))
        self.ask("new-session", "-d", *size, "-s", "keep", "sleep 3600")
        for name, value in (("history-limit", "5000"), ("default-terminal", "xterm-256color")):
            self.ask("set-option", "-g", name, value)

    def close(self) -> None:
        """End the server with every program."""
        self.ask("kill-server")

    def run(self, words: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> Window:
        """Run a program in a window of its own; it sees no other variables than these."""
        self._made += 1
        name = f"w{self._made}"
        file = shlex.quote(str(self.folder / name))
        script = f"{_INSIDE}; {_END}".format(file)
        settings = [f"{name}={value}" for name, value in env.items()]
        inside = shlex.join(["env", "-i", *settings, "sh", "-c", script, "sh", *words])
        self.ask("new-window", "-d", "-n", name, "-c", str(cwd), inside)
        self.ask("pipe-pane", "-t", name, f"cat >{file}.raw; : >{file}.recorded")
        (self.folder / f"{name}.on").touch()
        return Window(self, name)

    def ask(self, *words: str) -> str:
        """One command to the server; what it prints."""
        socket = ("-S", str(self.folder / "tmux"))
        done = subprocess.run(
            ["tmux", "-f", "/dev/null", *socket, *words],
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
        assert done.returncode == 0, f"tmux {words[0]}: {done.stderr}"
        return done.stdout
