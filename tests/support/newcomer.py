"""Plays the newcomer: an empty folder, a clone, and the README's commands, copied from the clone.

`python -m tests.support.newcomer FOLDER [--source REPOSITORY]` needs nothing but Python, git, Java
and make; everything else is what the README makes. Outputs are compared, in shape, with those that
the README shows. `make test` is left out: it is what CI runs. Then the tutorial is played.
"""

import argparse
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ORDERS = 30
PATIENCE_SECONDS = 300
JOB = """flink run x.jar kafka_sync_database --warehouse /lake --database ods \
--kafka_conf properties.bootstrap.servers=broker-0:9092 --kafka_conf topic=shop.public.orders \
--kafka_conf value.format=debezium-json
"""
_NUMBER = re.compile(r"\d[\d,.]*")
_BROKER = """
import json, sys
from confluent_kafka import Producer
from ingestd.dev.broker import DevBroker

with DevBroker() as broker:
    broker.create_topic("shop.public.orders", 1)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    print(broker.bootstrap, flush=True)
    for line in sys.stdin:
        key, value = json.loads(line)
        producer.produce("shop.public.orders", value, key)
        producer.flush(30)
        print("sent", flush=True)
"""


class Disappointed(Exception):  # noqa: N818  (what a newcomer is)
    """The README has promised something else."""


def section(page: str, title: str) -> str:
    """The text under a heading."""
    return page.partition(f"## {title}\n")[2].partition("\n## ")[0]


def fenced(page: str, title: str, language: str) -> str:
    """The first fenced block of a language under a heading."""
    found = re.search(rf"```{language}\n(.*?)```", section(page, title), re.DOTALL)
    if not found:
        raise Disappointed(f"no {language} under {title}")
    return found[1]


def typed(page: str, title: str) -> list[str]:
    """The command lines under a heading, without their comments."""
    lines = re.findall(r"^    ((?:git|make|ingestd) .*)$", section(page, title), re.MULTILINE)
    return [re.split(r"\s+#", line)[0].strip() for line in lines]


def first_commands(page: str) -> list[str]:
    """The commands that make the project and show it."""
    return typed(page, "Quick start")


def shape(line: str) -> re.Pattern[str]:
    """A line with any numbers where it has some, and any folder where it has DEMO."""
    parts = (re.escape(part) for part in _NUMBER.split(line.rstrip()))
    return re.compile(_NUMBER.pattern.join(parts).replace("DEMO", r"\S+"))


def compare(shown: str, printed: str) -> None:
    """Disappointed if the README shows lines that nothing printed is like."""
    lines = [line.rstrip() for line in printed.splitlines()]
    wanted = [line for line in shown.splitlines() if line.strip()]
    wrong = [line for line in wanted if not any(map(shape(line).fullmatch, lines))]
    if wrong:
        raise Disappointed("\n".join(["the README shows", *wrong, "and this is printed", printed]))


class Shell:
    """A terminal in a folder, in which `ingestd` is that of the clone."""

    def __init__(self, folder: Path, clone: Path) -> None:
        self.folder = folder
        path = f"{clone / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
        gone = ("VIRTUAL_ENV", "PYTHONPATH", "PYTEST_ADDOPTS")
        kept = {name: value for name, value in os.environ.items() if name not in gone}
        self.environment = {**kept, "PATH": path}

    def run(self, line: str, **more: str) -> str:
        """What a line prints; Disappointed when it fails."""
        begin = time.monotonic()
        done = subprocess.run(
            ["sh", "-c", line],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            env={**self.environment, **more},
        )
        print(f"{time.monotonic() - begin:7.1f} s  {line}", flush=True)
        if done.returncode:
            raise Disappointed(f"{line}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def start(self, line: str, **more: str) -> subprocess.Popen[str]:
        """A line in the background; what it prints is in ``background.log``."""
        print(f"           {line} &", flush=True)
        with (self.folder / "background.log").open("w") as log:
            return subprocess.Popen(
                ["sh", "-c", f"exec {line}"],
                cwd=self.folder,
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
                env={**self.environment, **more},
            )


def look_first(folder: Path, source: str) -> tuple[Path, str]:
    """Clone and demo, and where to look next; the clone and its page."""
    demo, _ = first_commands((ROOT / "README.md").read_text("utf-8"))
    clone = folder / "ingestd"
    Shell(folder, clone).run(f"git clone --quiet {source} ingestd")
    page = (clone / "README.md").read_text("utf-8")
    shell = Shell(clone, clone)
    printed = shell.run(demo)
    compare(fenced(page, "Quick start", "text"), printed)
    for line in re.findall(r"^  ((?:ingestd|cat) .*)$", printed, re.MULTILINE):
        if not shell.run(line).strip():
            raise Disappointed(f"{line} prints nothing")
    return clone, page


def tutorial(clone: Path) -> None:
    """The tutorial, with a PostgreSQL, a Debezium and a broker of this machine."""
    Shell(clone, clone).run("python -m pytest -q tests/live/test_tutorial.py")


def own_pipeline(folder: Path, clone: Path, page: str) -> None:
    """The README's first pipeline with orders of one's own, then all ways of reading them."""
    own = folder / "own"
    own.mkdir()
    shell = Shell(own, clone)
    command = [str(clone / ".venv" / "bin" / "python"), "-c", _BROKER]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=shell.environment
    ) as broker:
        assert broker.stdin
        assert broker.stdout
        places = {"broker-0:9092": broker.stdout.readline().strip(), "/data": str(own)}
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            listen = f"127.0.0.1:{probe.getsockname()[1]}"
        try:
            first_pipeline(shell, page, places, listen, Orders(broker))
            read_back(shell, page, places)
        finally:
            broker.stdin.close()


class Orders:
    """Sends orders to the topic, one change after the other."""

    def __init__(self, broker: subprocess.Popen[str]) -> None:
        self._broker = broker
        self.events: list[str] = []

    def send(self, first: int, last: int) -> None:
        """Orders of a range of ids, as Debezium tells of them."""
        for number in range(first, last):
            row = {"id": number, "status": "open", "amount": 8.0 + number}
            source = {"connector": "postgresql", "db": "shop", "schema": "public"}
            source |= {"table": "orders", "lsn": number + 1, "ts_ms": 1}  # type: ignore[dict-item]  # numbers
            event = {"before": None, "after": row, "source": source, "op": "c", "ts_ms": 1}
            self.events.append(json.dumps(event))
            assert self._broker.stdin
            assert self._broker.stdout
            message = [json.dumps({"id": number}), self.events[-1]]
            self._broker.stdin.write(json.dumps(message) + "\n")
            self._broker.stdin.flush()
            self._broker.stdout.readline()


def first_pipeline(
    shell: Shell, page: str, places: dict[str, str], listen: str, orders: Orders
) -> None:
    """The file, every command on it, and a daemon that has brought all orders."""
    orders.send(0, 6)
    (shell.folder / "messages.jsonl").write_text("\n".join(orders.events) + "\n")
    (shell.folder / "kafka_sync_database.sh").write_text(JOB)
    text = put_in(fenced(page, "First pipeline", "yaml"), places)
    told = {"INGESTD__HTTP__LISTEN": listen}
    daemon: subprocess.Popen[str] | None = None
    try:
        for line in typed(page, "First pipeline"):
            verb = line.split()[1]
            if verb == "run":
                daemon = shell.start(line, **told)
                bring_orders(shell, daemon, orders)
                continue
            (shell.folder / "ingestd.yaml").write_text(text)
            if verb == "init":  # it asks on a terminal; here it is given another file to write
                line = put_in(line.replace(" init", " init proposed.yaml"), places)
            if verb == "watch":
                line = f"{line} http://{listen} --count 2"
            printed = shell.run(line, **told)
            if verb == "plan":
                compare(fenced(page, "First pipeline", "text"), printed)
    finally:
        if daemon:
            daemon.terminate()
            daemon.wait(PATIENCE_SECONDS)


def bring_orders(shell: Shell, daemon: subprocess.Popen[str], orders: Orders) -> None:
    """Send orders until the table has five snapshots."""
    table = shell.folder / "warehouse" / "ods.db" / "orders" / "snapshot"
    end = time.monotonic() + PATIENCE_SECONDS
    for wanted in range(1, 6):
        while not (table / f"snapshot-{wanted}").exists():
            if daemon.poll() is not None or time.monotonic() > end:
                log = (shell.folder / "background.log").read_text()
                raise Disappointed(f"no snapshot {wanted}:\n{log[-4000:]}")
            time.sleep(0.2)
        orders.send(6 + 4 * (wanted - 1), 6 + 4 * wanted)


def read_back(shell: Shell, page: str, places: dict[str, str]) -> None:
    """Every command and the program under "Reading tables"."""
    for line in typed(page, "Reading tables"):
        if not shell.run(put_in(line, places)).strip():
            raise Disappointed(f"{line} prints nothing")
    (shell.folder / "program.py").write_text(
        put_in(fenced(page, "Reading tables", "python"), places)
    )
    shell.run("python -m pip install --quiet pandas polars duckdb")
    shell.run("python program.py")


def put_in(text: str, places: dict[str, str]) -> str:
    """A text with the newcomer's own address and folder."""
    for word, real in places.items():
        text = text.replace(word, real)
    return text


def main(words: Sequence[str] | None = None) -> int:
    """Exit code 1, and what the README has wrong, when a promise is not kept."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("folder", type=Path, help="an empty folder, or one to be made")
    arguments.add_argument("--source", default=str(ROOT), help="what is cloned")
    chosen = arguments.parse_args(words)
    folder = chosen.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        print(f"{folder} is not empty", file=sys.stderr)
        return 2
    if not shutil.which("git"):
        print("git is not found", file=sys.stderr)
        return 2
    try:
        clone, page = look_first(folder, chosen.source)
        own_pipeline(folder, clone, page)
        tutorial(clone)
    except Disappointed as error:
        print(error, file=sys.stderr)
        return 1
    print("the README and the tutorial keep what they promise")
    return 0


if __name__ == "__main__":
    sys.exit(main())
