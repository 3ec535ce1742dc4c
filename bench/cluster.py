"""How the stages scale with workers of a Spark cluster, and how little passes through the driver.

    python -m bench.cluster [--events N]

The daemon ingests one topic with one and with more executors. On a machine with as many cores as
executors the rate tells of scaling; on a smaller one the bytes still do.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import yaml

from bench.event_log import SETTINGS, driver_traffic
from bench.ingestd_run import COMMAND, byte_compile
from bench.load import Load
from bench.spark_cluster import SparkCluster
from bench.topics import Topics
from ingestd.dev.broker import DevBroker

TOPIC = "bench.shop.orders"
LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
EXECUTORS = {"spark.executor.memory": "512m", "spark.executor.cores": "1"}
MASTERS = ("local[1,4]", "local[2,4]", "standalone 1", "standalone 2", "local-cluster[2,1,1024]")


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


def measure(events: int = 400_000, masters: tuple[str, ...] = MASTERS) -> list[ClusterPoint]:
    """One run for each master, all over the same topic."""
    load = Load(events=events, keys=events * 2 // 5)
    points: list[ClusterPoint] = []
    with DevBroker() as broker:
        Topics(broker).filled(TOPIC, load)
        for master in masters:
            with tempfile.TemporaryDirectory(prefix="cluster-") as folder:
                points.append(_run(load, broker, Path(folder), master))
    return points


def _run(load: Load, broker: DevBroker, folder: Path, master: str) -> ClusterPoint:
    events = folder / "events"
    events.mkdir()
    with _master(master, folder / "cluster") as url:
        spark = {
            "spark.master": url,
            **SETTINGS,
            "spark.eventLog.dir": events.as_uri(),
            **EXECUTORS,
        }
        config = folder / "bench.yaml"
        config.write_text(yaml.safe_dump(_document(load, broker, folder, {**spark, **LOOPBACK})))
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
    traffic = driver_traffic(events)
    return ClusterPoint(
        master=master,
        tasks=traffic.tasks,
        cores=_cores(master),
        records_per_second=_warm_rate(log),
        bytes_through_driver=traffic.through_driver,
        result_bytes=traffic.results,
        closure_bytes=traffic.closures,
        shuffled_bytes=traffic.shuffled,
    )


@contextmanager
def _master(master: str, folder: Path) -> Iterator[str]:
    if not master.startswith("standalone"):
        yield master
        return
    folder.mkdir()
    with SparkCluster(folder, workers=_cores(master), cores=1) as running:
        yield running.url


def _cores(master: str) -> int:
    return int("".join(one for one in master.partition(",")[0] if one.isdigit()))


def _document(
    load: Load, broker: DevBroker, folder: Path, spark: dict[str, str]
) -> dict[str, object]:
    return {
        "pipeline": {"name": "bench", "trigger": "10ms"},
        "warehouse": {"path": str(folder / "warehouse"), "database": "bench", "shared": True},
        "sources": {
            "bench": {
                "kafka": {"bootstrap.servers": broker.bootstrap},
                "topics": [TOPIC],
                "format": "debezium-json",
                "max-offsets-per-trigger": max(load.events // 5, 1),
            }
        },
        "spark": spark,
        "http": {"listen": "127.0.0.1:0"},
    }


def _warm_rate(log: Path) -> float:
    batches = []
    for line in log.read_text().splitlines():
        if '"batch_finished"' in line:
            batches.append(json.loads(line))
    warm = batches[1:] or batches
    records = sum(int(one["records"]) for one in warm)
    return records / sum(float(one["seconds"]) for one in warm)


def main() -> None:
    """Print one JSON line for each run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=400_000)
    begun = time.monotonic()
    for point in measure(parser.parse_args().events):
        print(json.dumps(asdict(point)), flush=True)
    print(f"{time.monotonic() - begun:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
