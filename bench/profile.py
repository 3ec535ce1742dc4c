"""Where each microsecond of a record goes: CPU by process, thread and step, wall time, bytes.

    python -m bench.profile [--events N] [--batch N] [--json] [--publish]

A broker, a topic, and `ingestd run` over it with watches in its workers. The first batch, which
has the start of everything in it, is left out. Watches cost a little themselves, so rates are those
of another run; what counts here is where the time goes.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.event_log import SETTINGS, driver_traffic
from bench.ingestd_run import configuration, ended, finished_batches, start
from bench.load import Load
from bench.peer_runs import Task
from bench.process import BenchError, end_all_on_signals
from bench.profile_page import markdown, store
from bench.profile_threads import ThreadMeter
from bench.profile_worker import BLOBS, FOLDER
from bench.report import load_sessions, write
from bench.topics import Topics
from bench.verify import rows_read_by_java, same_rows
from ingestd.dev.broker import DevBroker

TIMEOUT = 1200.0
LEAST_MICROS = 0.005
_DAEMON = "bench.profile_worker"


def measure(
    events: int = 2_000_000, batch: int = 500_000, folder: Path | None = None
) -> dict[str, Any]:
    """The profile of a run over this many events, as a JSON document; microseconds a record."""
    load = Load(events=events, keys=events * 2 // 5)
    with tempfile.TemporaryDirectory() as scratch, DevBroker() as broker:
        topics = Topics(broker)
        task = Task(
            bootstrap=broker.bootstrap,
            topic=topics.filled("profile", load),
            warehouse=Path(folder or scratch, "warehouse"),
            scratch=Path(folder or scratch),
            options={"bucket": "-1"},
            timeout=TIMEOUT,
            commit_every=batch,
        )
        found = _run(task, broker_process(broker))
        if not same_rows(
            rows_read_by_java(task.warehouse, task.scratch, load.schema), topics.expected(load)
        ):
            raise BenchError("the table is wrong, so its profile is worth nothing")
    today = datetime.now(UTC).date().isoformat()
    cores = len(os.sched_getaffinity(0))
    return {"events": events, "batch": batch, "cores": cores, "date": today, **found}


def _run(task: Task, broker: int | None) -> dict[str, Any]:
    events = task.scratch / "events"
    events.mkdir(parents=True)
    spark = {
        **SETTINGS,
        "spark.eventLog.dir": events.as_uri(),
        "spark.python.daemon.module": _DAEMON,
    }
    os.environ[FOLDER] = str(task.scratch)
    with start(task, configuration(task, spark=spark), "--until-latest") as process:
        meter = ThreadMeter(process.pid, broker)
        meter.start()
        try:
            process.finish(task.timeout)
        finally:
            meter.stop()
    batches = finished_batches(process)
    if len(batches) < 2:
        raise BenchError(f"a profile needs several batches:\n{process.tail()}")
    first, last = ended(batches[0]), ended(batches[-1])
    records = sum(batch["records"] for batch in batches[1:])
    processes, threads = meter.between(first, last)
    traffic = driver_traffic(events)
    return {
        "records": records,
        "warm_per_s": round(records / (last - first)),
        "processes": _micros(processes, records),
        "threads": _micros({f"{a}: {b}": spent for (a, b), spent in threads.items()}, records),
        **_steps(task.scratch, first, records),
        "timeline": _timeline(batches),
        "borders": {
            "broker to workers, values": sum(batch["bytes"] for batch in batches[1:]) / records,
            "stage 1 to stage 2, blobs": _worker_bytes(task.scratch, first) / records,
            "through Spark's shuffle": traffic.shuffled / task_records(batches),
            "results to the driver": traffic.results / task_records(batches),
        },
        "memory": {**_memory(task.scratch), "peak of all, PSS": process.meter.peak_pss_bytes},
    }


def task_records(batches: Sequence[Mapping[str, Any]]) -> int:
    """Records of all batches, the first one included, as in Spark's own sums."""
    return sum(int(batch["records"]) for batch in batches)


def broker_process(broker: DevBroker) -> int | None:
    """The process of a broker on this machine, found by its port in its settings."""
    port = broker.bootstrap.rpartition(":")[2]
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = path.joinpath("cmdline").read_bytes().decode(errors="replace").split("\0")
            if not (words[0].endswith("java") and "kafka.Kafka" in words):
                continue
            if f"127.0.0.1:{port}" in Path(words[-2]).read_text():
                return int(path.name)
        except OSError:
            continue
    return None


def _micros(seconds: Mapping[str, float], records: int) -> dict[str, float]:
    micros = {name: round(spent / records * 1e6, 3) for name, spent in seconds.items()}
    kept = {name: spent for name, spent in micros.items() if abs(spent) >= LEAST_MICROS}
    return dict(sorted(kept.items(), key=lambda item: -item[1]))


def _reports(folder: Path) -> list[list[dict[str, Any]]]:
    """The reports of each worker, in order."""
    files = sorted(folder.glob("worker-*.jsonl"))
    return [[json.loads(line) for line in file.read_text().splitlines()] for file in files]


def _growth(samples: Sequence[Mapping[str, Any]], since: float, key: str) -> dict[str, float]:
    """How much the sums of a worker grew after a moment."""
    before = [one for one in samples if one["at"] <= since]
    start = before[-1][key] if before else {}
    return {name: total - start.get(name, 0) for name, total in samples[-1][key].items()}


def _steps(folder: Path, since: float, records: int) -> dict[str, Any]:
    cpu: dict[str, float] = {}
    system = issues = 0.0
    for report in _reports(folder):
        for step, spent in _growth(report, since, "cpu").items():
            cpu[step] = cpu.get(step, 0.0) + spent
        before = [one for one in report if one["at"] <= since]
        system += report[-1]["system"] - (before[-1]["system"] if before else 0)
        issues += report[-1]["faults"] - (before[-1]["faults"] if before else 0)
    return {
        "steps": _micros(cpu, records),
        "workers_system": round(system / records * 1e6, 3),
        "page_faults_per_1000": round(issues / records * 1000, 1),
    }


def _worker_bytes(folder: Path, since: float) -> float:
    return sum(_growth(report, since, "bytes").get(BLOBS, 0) for report in _reports(folder))


def _memory(folder: Path) -> dict[str, int]:
    last = [report[-1] for report in _reports(folder) if report]
    return {
        "Arrow in a worker, peak": max(one["arrow_peak"] for one in last),
        "a worker, peak RSS": max(one["resident_peak"] for one in last),
    }


def _timeline(batches: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Wall milliseconds of the mean warm batch, by phase; `gap` lies between two batches."""
    warm = batches[1:]
    phases: dict[str, float] = {}
    for one in warm:
        for name, spent in one["phases"].items():
            phases[name] = phases.get(name, 0.0) + float(spent)
    total = phases.pop("total")
    gaps = ended(warm[-1]) - ended(batches[0]) - sum(float(one["seconds"]) for one in warm)
    phases["other"] = total - sum(phases.values())
    phases["gap"] = gaps
    return {name: round(spent / len(warm) * 1000, 1) for name, spent in phases.items()}


def main() -> int:
    """Measure and print, and publish if asked."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--events", type=int, default=2_000_000)
    arguments.add_argument("--batch", type=int, default=500_000)
    arguments.add_argument("--json", action="store_true", help="print the JSON document instead")
    arguments.add_argument("--publish", action="store_true", help="keep it, and renew the page")
    chosen = arguments.parse_args()
    end_all_on_signals()
    found = measure(chosen.events, chosen.batch)
    print(json.dumps(found, indent=1) if chosen.json else markdown(found))
    if chosen.publish:
        store(found)
        write(load_sessions())
    return 0


if __name__ == "__main__":
    sys.exit(main())
