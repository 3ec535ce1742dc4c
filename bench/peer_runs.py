"""The competitors, each as one run over one topic: Flink SQL, Paimon's CDC actions, Java, pypaimon.

They get the same topic, the same columns and key, and the same table options as ingestd.
"""

import hashlib
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench.figures import Figures, Moments, figures
from bench.java import PEERS, command
from bench.process import BenchError, MeteredProcess
from ingestd.dev.jars import cache_folder

LOCK = PEERS / "pypaimon.lock"
CHECKPOINT_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Task:
    """One run: from where, into which warehouse, with which table options, in which folder.

    Flink commits by time, all others for this many events.
    """

    bootstrap: str
    topic: str
    warehouse: Path
    scratch: Path
    options: Mapping[str, str]
    timeout: float
    commit_every: int = 250_000
    checkpoint_seconds: int = CHECKPOINT_SECONDS
    tables: Sequence[str] = ("orders",)

    def arguments(self, rhythm: int) -> list[str]:
        """What all programs take: `rhythm` is the seconds or events between commits."""
        place = [self.bootstrap, self.topic, str(self.warehouse), str(rhythm)]
        return [*place, *(f"{name}={value}" for name, value in self.options.items())]


def run_flink(task: Task) -> Figures:
    """Flink SQL in a mini cluster, parallelism 2."""
    arguments = task.arguments(task.checkpoint_seconds)
    return _run(task, command("flink", "FlinkWriter", arguments))


def run_action(task: Task) -> Figures:
    """Paimon's CDC action for one table or for many in a mini cluster, parallelism 2."""
    action = "kafka_sync_table" if len(task.tables) == 1 else "kafka_sync_database"
    arguments = [action, *task.arguments(task.checkpoint_seconds)]
    return _run(task, command("action", "ActionWriter", arguments))


def run_action_often(task: Task) -> Figures:
    """The same with a checkpoint a second."""
    return run_action(replace(task, checkpoint_seconds=1))


def run_java(task: Task) -> Figures:
    """kafka-clients, Jackson's streaming parser and Paimon's table API, two threads each."""
    return _run(task, command("java", "JavaWriter", task.arguments(task.commit_every)))


def run_pypaimon(task: Task) -> Figures:
    """confluent-kafka, orjson, pyarrow and pypaimon's writer in one process."""
    program = [str(pypaimon_python()), "-P", str(PEERS / "pypaimon_writer.py")]
    return _run(task, [*program, *task.arguments(task.commit_every)])


PEER_RUNS: Mapping[str, Callable[[Task], Figures]] = {
    "flink": run_flink,
    "action": run_action,
    "action-1s": run_action_often,
    "java": run_java,
    "pypaimon": run_pypaimon,
}


def pypaimon_python() -> Path:
    """The interpreter of pypaimon's own environment, made on first use from the lock file."""
    digest = hashlib.sha256(LOCK.read_bytes() + sys.version.encode()).hexdigest()[:16]
    home = cache_folder() / "peers" / f"pypaimon-{digest}"
    finished = home / "finished"
    if not finished.exists():
        shutil.rmtree(home, ignore_errors=True)
        venv.create(home, with_pip=True)
        install = ["-m", "pip", "install", "--quiet", "--require-hashes", "-r", str(LOCK)]
        subprocess.run([str(home / "bin" / "python"), *install], check=True)
        finished.touch()
    return home / "bin" / "python"


def _run(task: Task, program: list[str]) -> Figures:
    temporary = {"TMPDIR": str(task.scratch), "PYTHONPATH": ""}
    temporary["JAVA_TOOL_OPTIONS"] = f"-Djava.io.tmpdir={task.scratch}"
    log = task.scratch / "peer.log"
    with MeteredProcess(program, log, environment=temporary) as process:
        process.finish(task.timeout)
    reports = [document for document in process.documents() if "first_ms" in document]
    if not reports:
        raise BenchError(f"no report from {program[0]}:\n{process.tail()}")
    last_report = reports[-1]
    moments = Moments(last_report["first_ms"] / 1000, last_report["end_ms"] / 1000)
    return figures(process, moments, int(last_report["events"]), task.warehouse)
