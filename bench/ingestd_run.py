"""`ingestd run` under measurement, with the settings that a user picks for throughput.

As many records a batch as all programs commit at a time, the next batch at once, everything else
as it comes.
"""

import compileall
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import yaml

import ingestd
from bench.figures import Figures, Moments, figures, snapshot, snapshot_files
from bench.load import COLUMN_TYPES
from bench.peer_runs import Task
from bench.process import BenchError, MeteredProcess

COMMAND = (sys.executable, "-c", "from ingestd.cli.main import main; main()")
DATABASE, TABLE = "bench", "orders"


def configuration(
    task: Task, *, topics: Sequence[str] = (), spark: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The pipeline of a task; `topics` instead of the task's own, `spark` for its settings."""
    return {
        "pipeline": {"name": "bench", "trigger": "0s"},
        "warehouse": {"path": str(task.warehouse), "database": DATABASE},
        "sources": {
            "shop": {
                "kafka": {"bootstrap.servers": task.bootstrap},
                "topics": list(topics or [task.topic]),
                "format": "debezium-json",
                "max-offsets-per-trigger": task.commit_every,
            }
        },
        "tables": {
            name: {"options": dict(task.options), "schema": {"column-types": dict(COLUMN_TYPES)}}
            for name in task.tables
        },
        "http": {"listen": "127.0.0.1:0"},
        "restart": {"max-attempts": 0},
        "logging": {"format": "json"},
        "spark": dict(spark or {}),
    }


@cache
def byte_compile() -> None:
    """Give the package the byte code that an installed one has.

    Where Python may not write byte code, each start would compile a source tree again.
    """
    compileall.compile_dir(Path(ingestd.__file__).parent, quiet=2)


def start(task: Task, document: Mapping[str, Any], *flags: str) -> MeteredProcess:
    """Start the daemon; its log is in the scratch folder."""
    byte_compile()
    file = task.scratch / "ingestd.yaml"
    file.write_text(yaml.safe_dump(dict(document)), encoding="utf-8")
    log = task.scratch / "ingestd.log"
    log.unlink(missing_ok=True)
    temporary = {"TMPDIR": str(task.scratch)}
    return MeteredProcess(
        [*COMMAND, "run", "-c", str(file), *flags],
        log,
        folder=task.scratch,
        environment=temporary,
    )


def run_ingestd(task: Task) -> tuple[Figures, dict[str, Any]]:
    """Ingest a topic up to its ends; the figures, and what only ingestd tells."""
    with start(task, configuration(task), "--until-latest") as process:
        process.finish(task.timeout)
    batches = finished_batches(process)
    if not batches:
        raise BenchError(f"no batch was run:\n{process.tail()}")
    files = [
        snapshot_file
        for snapshot_file in snapshot_files(task.warehouse)
        if snapshot_file.stat().st_mtime > process.started
    ]
    commits = [file.stat().st_mtime for file in files if snapshot(file)["commitKind"] != "COMPACT"]
    moments = Moments(begin(batches[0]), files[-1].stat().st_mtime)
    events = sum(batch["records"] for batch in batches)
    result = figures(process, moments, events, task.warehouse)
    return result, {"batches": len(batches), **_warm(batches, commits), **_phases(batches)}


def finished_batches(process: MeteredProcess) -> list[dict[str, Any]]:
    """The daemon's own lines about batches with records, in order."""
    lines = process.documents()
    return [line for line in lines if line.get("event") == "batch_finished" and line.get("records")]


def begin(batch: Mapping[str, Any]) -> float:
    """When a batch began, from its line in the log: seconds since 1970."""
    return ended(batch) - float(batch["seconds"])


def ended(batch: Mapping[str, Any]) -> float:
    """When the line was written."""
    return datetime.fromisoformat(batch["ts"]).timestamp()


def _warm(batches: Sequence[Mapping[str, Any]], commits: Sequence[float]) -> dict[str, float]:
    """The rate after the first commit, which has the start of the workers in it."""
    if len(batches) < 2 or len(commits) != len(batches):
        return {}
    records = sum(int(batch["records"]) for batch in batches[1:])
    return {"warm_per_s": round(records / (commits[-1] - commits[0]), 1)}


def _phases(batches: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    seconds: dict[str, float] = {}
    for batch in batches:
        for name, spent in batch.get("phases", {}).items():
            seconds[name] = round(seconds.get(name, 0.0) + float(spent), 3)
    return {"phases": seconds}
