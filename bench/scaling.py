"""Rate of one pipeline with 1, 2, 4 and 8 executors, on a machine with fewer cores.

    python -m bench.scaling [--executors N ...] [--percent N] [--batch N] [--batches N] [--runs N]

Each executor with its Python worker, and the driver with its JVM, is held by a control group to
the same small part of a core; the broker is free. Processes start without limits, which are set at
the end of the first batch; rates are measured from the end of the second one. The model beside the
rate: a batch takes the CPU of the driver, which no executor can take over, and then that of the
executors divided by their number, both as measured with the first number of executors. Needs
control groups of version 1, as root. Compaction is off.
"""

import argparse
import json
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from bench.cluster import EXECUTORS, LOOPBACK, TOPIC, document, finished_batches
from bench.control_groups import ControlGroup
from bench.ingestd_run import COMMAND, byte_compile
from bench.load import Load
from bench.plots import lines
from bench.process import BenchError, end_all_on_signals
from bench.spark_cluster import SparkCluster
from bench.topics import Topics
from bench.usage import descendants
from ingestd.dev.broker import DevBroker

_UNMEASURED = 2
"""The first batches: one without limits, and one in which they are set."""
_POLL_SECONDS = 0.05
_ALL_EXECUTORS = {
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "180s",
}
"""Settings with which no task runs before all executors are there."""


@dataclass(frozen=True, slots=True)
class ScalingRun:
    """One run: records/s, and CPU microseconds for each record in the measured batches.

    `driver_use` and `executor_use` are the parts of their limits that were used.
    """

    executors: int
    records_per_second: float
    driver_us: float
    executors_us: float
    driver_use: float
    executor_use: float


@dataclass(frozen=True, slots=True)
class Settings:
    """Sizes of the runs; `share` is the part of a core of each group, `batch` is in records."""

    share: float
    batch: int
    batches: int


def measure(executors: Sequence[int], settings: Settings, runs: int) -> Iterator[ScalingRun]:
    """Yield one run after the other, numbers of executors in turn, all over the same topic."""
    load = Load(events=settings.batch * (settings.batches + _UNMEASURED), keys=settings.batch)
    with DevBroker() as broker:
        Topics(broker).filled(TOPIC, load)
        for count in [*executors] * runs:
            with tempfile.TemporaryDirectory(prefix="scaling-") as folder:
                yield _run(broker, Path(folder), count, settings)


def predicted_ratio(first: ScalingRun, executors: int) -> float:
    """Return the rate with a number of executors divided by that of `first`, by the model."""
    driver, tasks = first.driver_us, first.executors_us
    return (driver + tasks / first.executors) / (driver + tasks / executors)


def plot(runs: Sequence[ScalingRun]) -> str:
    """Return a plot of the rates and of the model, which knows the first run only."""
    first = runs[0]
    rates = {run.executors: run.records_per_second for run in runs}
    model = {n: first.records_per_second * predicted_ratio(first, n) for n in rates}
    series = {"measured": sorted(rates.items()), "model": sorted(model.items())}
    return lines("rate by executors", "executors", "records/s", series)


def _run(broker: DevBroker, folder: Path, count: int, settings: Settings) -> ScalingRun:
    (folder / "cluster").mkdir()
    with SparkCluster(folder / "cluster", workers=count, cores=1) as cluster, ExitStack() as stack:
        log = folder / "bench.log"
        spark = {**EXECUTORS, **LOOPBACK, **_ALL_EXECUTORS, "spark.master": cluster.url}
        daemon = _start(document(settings.batch, broker, folder, spark), folder, log)
        stack.callback(_end, daemon)
        _wait_for_batches(daemon, log, 1)
        driver = stack.enter_context(ControlGroup("driver", settings.share))
        driver.add([daemon.pid, *descendants(daemon.pid)])
        groups = [
            stack.enter_context(ControlGroup("executor", settings.share)) for _ in range(count)
        ]
        for group, worker in zip(groups, cluster.worker_pids, strict=True):
            group.add([worker, *descendants(worker)])
        _wait_for_batches(daemon, log, _UNMEASURED)
        at_first = driver.cpu_seconds(), _cpu_seconds(groups)
        done = _wait_for_batches(daemon, log, _UNMEASURED + settings.batches)
        at_last = driver.cpu_seconds(), _cpu_seconds(groups)
    ends = [datetime.fromisoformat(str(batch["ts"])).timestamp() for batch in done]
    records = sum(int(batch["records"]) for batch in done[_UNMEASURED:])
    seconds = ends[-1] - ends[_UNMEASURED - 1]
    driver_cpu, executors_cpu = (
        last - first for first, last in zip(at_first, at_last, strict=True)
    )
    return ScalingRun(
        executors=count,
        records_per_second=round(records / seconds),
        driver_us=round(1e6 * driver_cpu / records, 3),
        executors_us=round(1e6 * executors_cpu / records, 3),
        driver_use=round(driver_cpu / seconds / settings.share, 2),
        executor_use=round(executors_cpu / seconds / settings.share / count, 2),
    )


def _start(pipeline: dict[str, object], folder: Path, log: Path) -> "subprocess.Popen[bytes]":
    config = folder / "bench.yaml"
    config.write_text(yaml.safe_dump(pipeline | {"compaction": {"mode": "off"}}))
    byte_compile()
    with log.open("wb") as out:
        command = [*COMMAND, "run", "-c", str(config), "--until-latest"]
        return subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)


def _end(daemon: "subprocess.Popen[bytes]") -> None:
    """Kill a daemon, whose JVM and workers then end by themselves."""
    daemon.kill()
    daemon.wait()


def _wait_for_batches(
    daemon: "subprocess.Popen[bytes]", log: Path, count: int
) -> list[dict[str, Any]]:
    """Return the log events of the first `count` batches once they have finished."""
    while len(done := finished_batches(log)) < count:
        if daemon.poll() is not None:
            raise BenchError(f"exit code {daemon.returncode}:\n{log.read_text()[-4000:]}")
        time.sleep(_POLL_SECONDS)
    return done[:count]


def _cpu_seconds(groups: Sequence[ControlGroup]) -> float:
    return sum(group.cpu_seconds() for group in groups)


def main() -> None:
    """Print one JSON line for each run, with its ratio to the first run and the model's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--executors", type=int, nargs="+", default=(1, 2, 4, 8))
    parser.add_argument("--percent", type=float, default=10, help="of a core, for each group")
    parser.add_argument("--batch", type=int, default=500_000, help="records of a batch")
    parser.add_argument("--batches", type=int, default=3, help="measured batches")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--plot", type=Path, help="file for the rates and the model as SVG")
    given = parser.parse_args()
    end_all_on_signals()
    settings = Settings(given.percent / 100, given.batch, given.batches)
    done: list[ScalingRun] = []
    for run in measure(given.executors, settings, given.runs):
        done.append(run)
        ratios = {
            "ratio": round(run.records_per_second / done[0].records_per_second, 2),
            "predicted": round(predicted_ratio(done[0], run.executors), 2),
        }
        print(json.dumps(asdict(run) | ratios), flush=True)
    if given.plot:
        given.plot.write_text(plot(done))


if __name__ == "__main__":
    main()
