"""Command lines of ingestd in a real terminal, and what people see of them, kept for review.

`python -m tests.support.terminal --write` writes tests/golden/terminal again; its diff is what to
review. Without --write it names what differs.
"""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

import ingestd.paimon as paimon
from ingestd.daemon.status import Status
from ingestd.errors import SourceError
from ingestd.ingest.batch_events import BatchSummary, TableCommit
from ingestd.ingest.values.counts import Counts
from ingestd.kafka.offset_ranges import OffsetRange, SourcePartition
from tests.support.screen import Screen
from tests.support.scripted_http import Reply, ScriptedServer
from tests.support.tmux import TIMEOUT, Tmux

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "terminal"
PIPELINE = """\
pipeline:
  name: shop
  trigger: 1s
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
_OF_THE_MOMENT = (
    (re.compile("[\u2800-\u28ff]"), ""),
    (re.compile("[━╸╺]+"), "━━━━"),
    (re.compile(r"\b\d+:\d\d:\d\d\b"), "0:00:00"),
    (re.compile(r"\b[\d,]+/"), "N/"),
    (re.compile(r": (N|[\d,]+ (read|written|deleted)(, )?)+"), ""),
    (re.compile(r"\^C"), ""),
)
"""How a spinner, a bar, a clock and counts are kept."""


DAEMON = "http://127.0.0.1:8080"


@dataclass(frozen=True, slots=True)
class Scene:
    """A command line and how it is looked at.

    `pipe` is instead of a terminal, `marks` keeps styles, `ends` lines are kept at both ends.
    `talk` are words to wait for, each with the keys to press then. Without `line` nothing is kept
    of the lines that were taken back.
    """

    words: tuple[str, ...]
    marks: bool = False
    pipe: bool = False
    ends: int | None = None
    environment: tuple[tuple[str, str], ...] = ()
    talk: tuple[tuple[str, ...], ...] = ()
    line: bool = True


SCENES: Mapping[str, Scene] = {
    "help": Scene(("--help",)),
    "help-run": Scene(("run", "--help")),
    "help-compact": Scene(("compact", "--help")),
    "help-verify": Scene(("verify", "--help")),
    "help-compare": Scene(("compare", "--help")),
    "help-dlq": Scene(("dlq", "--help")),
    "help-init": Scene(("init", "--help")),
    "help-read": Scene(("read", "--help")),
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
    "rollback-refused": Scene(
        ("rollback", "lake", "shop.orders", "--snapshot", "1"),
        talk=(("[y/N]", "n", "Enter"),),
    ),
    "read-interrupted": Scene(
        ("read", "lake", "shop.orders", "-o", "unread"),
        talk=(("reading shop.orders", "C-c"),),
    ),
    "watch": Scene(
        ("watch", DAEMON, "--interval", "0.2"),
        talk=(("records/s", "C-c"),),
        line=False,
    ),
    "watch-sorted": Scene(
        ("watch", DAEMON, "--interval", "0.2"),
        talk=(("records/s", "s"), ("snapshot *", "q")),
        line=False,
    ),
    "watch-one-table": Scene(
        ("watch", DAEMON, "--interval", "0.2"),
        talk=(("records/s", "Down", "Enter"), ("last result", "q")),
        line=False,
    ),
    "verify-in-a-pipe": Scene(("verify", "lake", "shop.orders"), pipe=True),
}


def set_stage(folder: Path) -> None:
    """The files that the scenes are about: two configurations and a warehouse with a table."""
    (folder / "ingestd.yaml").write_text(PIPELINE)
    (folder / "fault.yaml").write_text(PIPELINE.replace("trigger:", "triger:"))
    columns: dict[str, pa.DataType] = {"id": pa.int64(), "status": pa.string()}
    os.mkfifo(folder / "unread")
    lake = paimon.open_warehouse(str(folder / "lake"))
    table = lake.create("shop.orders", pa.schema(columns), primary_keys=["id"])
    for turn in range(3):
        table.write([{"id": turn, "status": "open"}])


@contextmanager
def daemon() -> Iterator[Mapping[str, str]]:
    """Where something answers as a daemon in the middle of its work does, always the same."""
    status = Status("shop", "1.2.3", ["shop"], lambda: 1_700_000_000.0)
    status.enter("running")
    status.source_answered("shop", {"shop.public.orders": {0: 300, 1: 280}})
    status.batch_started("7", [OffsetRange("shop", "shop.public.orders", 0, 0, 200)])
    counts = Counts()
    counts.records[SourcePartition("shop", "shop.public.orders", 0)] = 200
    commits = (
        TableCommit("shop.orders", "committed", 3, 200, 0.1),
        TableCommit("shop.clicks", "committed", 12, 40, 0.1),
    )
    ends = {"shop": {"shop.public.orders": {0: 200, 1: 280}}}
    seconds = {"read": 0.9, "commit": 0.3, "total": 1.4}
    status.batch_finished(BatchSummary("7", ends, commits, counts, seconds=seconds))
    status.failed(SourceError("source shop: broker-0:9092 did not respond"))
    with ScriptedServer([Reply(200, status.document())] * 10_000) as server:
        yield {DAEMON: server.uri}


def environment(extra: Sequence[tuple[str, str]]) -> dict[str, str]:
    """A newcomer's terminal: nothing of the machine's own taste."""
    plain = {name: os.environ[name] for name in ("PATH", "HOME", "JAVA_HOME") if name in os.environ}
    taste = {"TERM": "xterm-256color", "LANG": "C.UTF-8", "PYTHONPATH": str(GOLDEN.parents[2])}
    return plain | taste | dict(extra)


def command(words: Sequence[str]) -> list[str]:
    """The words of a process that runs this command line."""
    return [sys.executable, "-m", "ingestd.cli.main", *words]


def look(scene: Scene, folder: Path, tmux: Tmux, places: Mapping[str, str] | None = None) -> str:
    """What is kept of a scene: the command, what was seen in the end and before, the exit code.

    `places` are where things really are that have other names in what is kept.
    """
    head = f"$ ingestd {' '.join(scene.words)}"
    really = dict(places or {})
    words = command([really.get(word, word) for word in scene.words])
    settings = environment(scene.environment)
    if scene.pipe:
        done = subprocess.run(
            words,
            cwd=folder,
            env=settings,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
        parts = [f"{head} | cat", done.stdout.rstrip("\n"), "--- standard error", done.stderr]
        return kept_text([*parts, f"--- exit code {done.returncode}"])
    window = tmux.run(words, cwd=folder, env=settings)
    for awaited, *keys in scene.talk:
        window.wait_for(awaited)
        window.press(*(really.get(key, key) for key in keys))
    code = window.code()
    screen = window.screen()
    shown = screen.marked() if scene.marks else screen.plain()
    shown = _ends(shown.splitlines(), scene.ends)
    variables = "".join(f"{name}={value} " for name, value in scene.environment)
    parts = [head.replace("$ ", f"$ {variables}"), shown, *_meanwhile(screen, scene.line)]
    text = kept_text([*parts, f"--- exit code {code}"])
    for name, real in really.items():
        text = text.replace(real, name)
    return text


def _meanwhile(screen: Screen, wanted: bool) -> list[str]:
    """Each line that was shown and taken back, once, without what depends on the moment."""
    lines = screen.taken_back if wanted else []
    for what, instead in _OF_THE_MOMENT:
        lines = [what.sub(instead, line) for line in lines]
    seen = list(dict.fromkeys(" ".join(line.split()) for line in lines))
    return ["--- shown while it worked", *seen] if seen else []


def _ends(lines: Sequence[str], count: int | None) -> str:
    """Return all lines, or the first and last `ends` ones."""
    if count is None or len(lines) <= 2 * count:
        return "\n".join(lines)
    return "\n".join([*lines[:count], "...", *lines[-count:]])


def kept_text(parts: Sequence[str]) -> str:
    """The parts below each other, without what is empty."""
    return "\n".join(part.rstrip("\n") for part in parts if part) + "\n"


def main(arguments: Sequence[str]) -> int:
    """Write what is kept, or name what differs."""
    GOLDEN.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        Tmux(Path(folder)) as tmux,
        daemon() as places,
    ):
        set_stage(Path(folder))
        stale = []
        for name, scene in SCENES.items():
            kept, now = GOLDEN / f"{name}.txt", look(scene, Path(folder), tmux, places)
            if not kept.exists() or kept.read_text("utf-8") != now:
                stale.append(name)
                if "--write" in arguments:
                    kept.write_text(now, "utf-8")
    verb = "written" if "--write" in arguments else "differs"
    sys.stdout.write("".join(f"{verb}: {name}\n" for name in stale))
    return 1 if stale and "--write" not in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
