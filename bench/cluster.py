"""Rate, CPU and bytes of the stages on a local master and on clusters of Spark.

    python -m bench.cluster [--events N] [--runs N] [--masters NAME ...] [--spark NAME=VALUE ...]

The daemon ingests one topic with one and with more executors. Rates of several executors need a
machine with as many cores; CPU by group of processes and bytes do not. A master "standalone 2" has
two executors of one core, "standalone 1x2" one executor of two cores.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from bench.cluster_cpu import GROUPS, GroupMeter, metered
from bench.event_log import SETTINGS, driver_traffic
from bench.ingestd_run import COMMAND, byte_compile
from bench.load import Load
from bench.spark_cluster import SparkCluster
from bench.topics import Topics
from ingestd.dev.broker import DevBroker

TOPIC = "bench.shop.orders"
LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
EXECUTORS = {"spark.executor.memory": "512m", "spark.executor.cores": "1"}
_SAMPLE_SECONDS = 0.2
LOCAL, TWO_EXECUTORS, TWO_WORKERS = "local[2,4]", "local-cluster[2,1,1024]", "standalone 2"
MASTERS = ("local[1,4]", LOCAL, "standalone 1", TWO_WORKERS, TWO_EXECUTORS)


@dataclass(frozen=True, slots=True)
class ClusterPoint:
    """One run; `records_per_second` leaves out the first batch, with which executors start."""

    master: str
    tasks: int
    cores: int
    records_per_second: float
    bytes_through_driver: int
    result_bytes: int
    closure_bytes: int
    shuffled_bytes: int
    """Bytes from stage 1 to stage 2 on a standalone cluster: exchange files and Spark's shuffle."""
    cpu_us: dict[str, float]
    """CPU microseconds for each record after the first batch, by group of processes."""


def measure(
    events: int = 400_000,
    masters: Sequence[str] = MASTERS,
    runs: int = 1,
    spark: Mapping[str, str] | None = None,
    batches: int = 5,
) -> Iterator[ClusterPoint]:
    """Yield one point for each run and master, all over the same topic, masters in turn.

    `spark` are more settings of Spark. The first of the `batches` is not counted.
    """
    load = Load(events=events, keys=events * 2 // 5)
    with DevBroker() as broker:
        Topics(broker).filled(TOPIC, load)
        for master in [*masters] * runs:
            with tempfile.TemporaryDirectory(prefix="cluster-") as folder:
                yield _run(load, broker, Path(folder), master, spark or {}, batches)


def _run(
    load: Load,
    broker: DevBroker,
    folder: Path,
    master: str,
    more: Mapping[str, str],
    batches: int,
) -> ClusterPoint:
    events = folder / "events"
    events.mkdir()
    with (
        _master(master, folder / "cluster") as url,
        metered(os.getpid()) as meter,
        _exchange_files(folder / "cluster") as sizes,
    ):
        spark = {
            "spark.master": url,
            **SETTINGS,
            "spark.eventLog.dir": events.as_uri(),
            **EXECUTORS,
            "spark.executor.cores": str(_executor_cores(master)),
            **more,
        }
        config = folder / "bench.yaml"
        pipeline = document(load.events // batches, broker, folder, {**spark, **LOOPBACK})
        config.write_text(yaml.safe_dump(pipeline))
        byte_compile()
        log = folder / "bench.log"
        with log.open("wb") as out:
            code = subprocess.run(
                [*COMMAND, "run", "-c", str(config), "--until-latest"],
                stdout=out,
                stderr=subprocess.STDOUT,
                check=False,
                env=os.environ | {"SPARK_WORKER_DIR": str(folder / "work")},
            ).returncode
    if code:
        raise AssertionError(f"{master}: exit code {code}\n{log.read_text()[-4000:]}")
    traffic, finished = driver_traffic(events), finished_batches(log)
    return ClusterPoint(
        master=master,
        tasks=traffic.tasks,
        cores=_cores(master),
        records_per_second=_warm_rate(finished),
        bytes_through_driver=traffic.through_driver,
        result_bytes=traffic.results,
        closure_bytes=traffic.closures,
        shuffled_bytes=traffic.shuffled + sum(sizes.values()),
        cpu_us=_warm_cpu(meter, finished),
    )


@contextmanager
def _exchange_files(folder: Path) -> Iterator[dict[Path, int]]:
    """Yield the sizes of all exchange files below a folder, which are removed during the block."""
    sizes: dict[Path, int] = {}
    end = threading.Event()

    def watch() -> None:
        while not end.wait(_SAMPLE_SECONDS):
            for path in folder.glob("local/**/ingestd-exchange/*/*"):
                with suppress(OSError):  # removed meanwhile
                    sizes[path] = path.stat().st_size

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield sizes
    finally:
        end.set()
        watcher.join()


@contextmanager
def _master(master: str, folder: Path) -> Iterator[str]:
    if not master.startswith("standalone"):
        yield master
        return
    folder.mkdir()
    cores = _executor_cores(master)
    with SparkCluster(folder, workers=_cores(master) // cores, cores=cores) as running:
        yield running.url


def _cores(master: str) -> int:
    first = int(re.findall(r"\d+", master)[0])
    return first * _executor_cores(master)


def _executor_cores(master: str) -> int:
    return int(master.partition("x")[2] or 1) if master.startswith("standalone") else 1


def document(
    limit: int, broker: DevBroker, folder: Path, spark: dict[str, str]
) -> dict[str, object]:
    """Return a pipeline of `limit` records a batch into a warehouse in a folder."""
    return {
        "pipeline": {"name": "bench", "trigger": "10ms"},
        "warehouse": {"path": str(folder / "warehouse"), "database": "bench", "shared": True},
        "sources": {
            "bench": {
                "kafka": {"bootstrap.servers": broker.bootstrap},
                "topics": [TOPIC],
                "format": "debezium-json",
                "max-offsets-per-trigger": max(limit, 1),
            }
        },
        "spark": spark,
        "http": {"listen": "127.0.0.1:0"},
    }


def finished_batches(log: Path) -> list[dict[str, Any]]:
    """Return the log events of finished batches."""
    return [json.loads(line) for line in log.read_text().splitlines() if '"batch_finished"' in line]


def _warm_rate(batches: Sequence[Mapping[str, Any]]) -> float:
    warm = batches[1:] or batches
    records = sum(int(batch["records"]) for batch in warm)
    return records / sum(float(batch["seconds"]) for batch in warm)


def _warm_cpu(meter: GroupMeter, batches: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return CPU microseconds for each record between the ends of the first and the last batch."""
    first, last = (datetime.fromisoformat(batches[index]["ts"]).timestamp() for index in (0, -1))
    records = sum(int(batch["records"]) for batch in batches[1:]) or 1
    used = {
        group: 1e6 * (meter.cpu_at(group, last) - meter.cpu_at(group, first)) / records
        for group in GROUPS
    }
    return {"all": round(sum(used.values()), 3)} | {g: round(us, 3) for g, us in used.items()}


def main() -> None:
    """Print one JSON line for each run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=400_000)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--batches", type=int, default=5)
    parser.add_argument("--masters", nargs="+", default=MASTERS)
    parser.add_argument("--spark", nargs="+", default=(), metavar="NAME=VALUE")
    given = parser.parse_args()
    begun = time.monotonic()
    spark = dict(setting.split("=", 1) for setting in given.spark)
    for point in measure(given.events, given.masters, given.runs, spark, given.batches):
        print(json.dumps(asdict(point)), flush=True)
    print(f"{time.monotonic() - begun:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
