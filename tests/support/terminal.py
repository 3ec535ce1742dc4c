"""Command lines of ingestd in a real terminal, and what people see of them, kept for review.

`python -m tests.support.terminal --write` writes tests/golden/terminal anew; its diff is what to
review. Without --write it names what differs.
"""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

import ingestd.paimon as paimon
from tests.support.screen import Screen

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "terminal"
COLUMNS, LINES = 80, 24
TIMEOUT = 120
PIPELINE = """\
pipeline:
  name: shop
  checkpoint: checkpoints
warehouse:
  path: lake
  database: shop
sources:
  shop:
    kafka:
      bootstrap.servers: broker-0:9092
    topics: [shop.public.orders]
    format: debezium-json
"""
_SPINNER = re.compile("[\u2800-\u28ff]")
_ELAPSED = re.compile(r"\b\d+:\d\d:\d\d\b")
_COUNT = re.compile(r"\b[\d,]+ (files|written|deleted)")


@dataclass(frozen=True, slots=True)
class Scene:
    """A command line and how it is looked at.

    `pipe` is instead of a terminal, `marks` keeps styles, `ends` keeps so many lines at both ends.
    """

    words: tuple[str, ...]
    marks: bool = False
    pipe: bool = False
    ends: int | None = None
    environment: tuple[tuple[str, str], ...] = ()


SCENES: Mapping[str, Scene] = {
    "help": Scene(("--help",)),
    "help-run": Scene(("run", "--help")),
    "help-compact": Scene(("compact", "--help")),
    "help-verify": Scene(("verify", "--help")),
    "help-dlq": Scene(("dlq", "--help")),
    "help-init": Scene(("init", "--help")),
    "no-such-command": Scene(("compct",)),
    "validate": Scene(("validate", "-c", "ingestd.yaml"), ends=12),
    "fault-of-configuration": Scene(("validate", "-c", "fault.yaml"), marks=True),
    "fault-without-colour": Scene(
        ("validate", "-c", "fault.yaml"), marks=True, environment=(("NO_COLOR", "1"),)
    ),
    "fault-in-a-pipe": Scene(("validate", "-c", "fault.yaml"), pipe=True),
    "no-such-table": Scene(("read", "lake", "shop.ordres"), marks=True),
    "rows": Scene(("read", "lake", "shop.orders", "--format", "table"), marks=True),
    "verify": Scene(("verify", "lake", "shop.orders"), marks=True),
    "verify-in-a-pipe": Scene(("verify", "lake", "shop.orders"), pipe=True),
}


def set_stage(folder: Path) -> None:
    """The files that the scenes are about: two configurations and a warehouse with a table."""
    (folder / "ingestd.yaml").write_text(PIPELINE)
    (folder / "fault.yaml").write_text(PIPELINE.replace("checkpoint:", "chekpoint:"))
    columns: dict[str, pa.DataType] = {"id": pa.int64(), "status": pa.string()}
    lake = paimon.open_warehouse(str(folder / "lake"))
    table = lake.create("shop.orders", pa.schema(columns), primary_keys=["id"])
    for turn in range(3):
        table.write([{"id": turn, "status": "open"}])


def environment(extra: Sequence[tuple[str, str]]) -> dict[str, str]:
    """A newcomer's terminal: nothing of the machine's own taste."""
    plain = {name: os.environ[name] for name in ("PATH", "HOME", "JAVA_HOME") if name in os.environ}
    taste = {"TERM": "xterm-256color", "LANG": "C.UTF-8", "PYTHONPATH": str(GOLDEN.parents[2])}
    return plain | taste | dict(extra)


def command(words: Sequence[str]) -> list[str]:
    """The words of a process that runs this command line."""
    return [sys.executable, "-m", "ingestd.cli.main", *words]


def in_terminal(scene: Scene, folder: Path) -> tuple[Screen, int]:
    """Run a scene with a pseudo-terminal of a fixed size; its screen and exit code."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    with subprocess.Popen(
        command(scene.words),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=folder,
        env=environment(scene.environment),
        start_new_session=True,
    ) as process:
        os.close(theirs)
        try:
            written = _all_of(ours)
        finally:
            os.close(ours)
        code = process.wait(TIMEOUT)
    screen = Screen(COLUMNS)
    screen.feed(written.decode())
    return screen, code


def look(scene: Scene, folder: Path) -> str:
    """What is kept of a scene: the command, what was seen in the end and before, the exit code."""
    head = f"$ ingestd {' '.join(scene.words)}"
    if scene.pipe:
        done = subprocess.run(
            command(scene.words),
            cwd=folder,
            env=environment(scene.environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
        parts = [f"{head} | cat", done.stdout.rstrip("\n"), "--- standard error", done.stderr]
        return _text([*parts, f"--- exit code {done.returncode}"])
    screen, code = in_terminal(scene, folder)
    shown = screen.marked() if scene.marks else screen.plain()
    shown = _ends(shown.splitlines(), scene.ends)
    variables = "".join(f"{name}={value} " for name, value in scene.environment)
    parts = [head.replace("$ ", f"$ {variables}"), shown, *_meanwhile(screen)]
    return _text([*parts, f"--- exit code {code}"])


def _meanwhile(screen: Screen) -> list[str]:
    """Each line that was shown and taken back, once, without what depends on the moment."""
    lines = (_SPINNER.sub("*", line) for line in screen.taken_back)
    lines = (_COUNT.sub(r"N \1", _ELAPSED.sub("0:00:00", line)) for line in lines)
    seen = list(dict.fromkeys(" ".join(line.split()) for line in lines))
    return ["--- shown while it worked", *seen] if seen else []


def _ends(lines: Sequence[str], count: int | None) -> str:
    """All lines, or so many of the first and the last."""
    if count is None or len(lines) <= 2 * count:
        return "\n".join(lines)
    return "\n".join([*lines[:count], "...", *lines[-count:]])


def _text(parts: Sequence[str]) -> str:
    return "\n".join(part.rstrip("\n") for part in parts if part) + "\n"


def _all_of(terminal: int) -> bytes:
    """Everything a terminal is given until its last program has gone."""
    read = b""
    while True:
        try:
            piece = os.read(terminal, 1 << 16)
        except OSError:  # how Linux says that the other side is closed
            return read
        if not piece:
            return read
        read += piece


def main(arguments: Sequence[str]) -> int:
    """Write what is kept, or name what differs."""
    GOLDEN.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        set_stage(Path(folder))
        stale = []
        for name, scene in SCENES.items():
            kept, now = GOLDEN / f"{name}.txt", look(scene, Path(folder))
            if not kept.exists() or kept.read_text("utf-8") != now:
                stale.append(name)
                if "--write" in arguments:
                    kept.write_text(now, "utf-8")
    verb = "written" if "--write" in arguments else "differs"
    sys.stdout.write("".join(f"{verb}: {name}\n" for name in stale))
    return 1 if stale and "--write" not in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
