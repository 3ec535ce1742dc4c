"""End-to-end records per second, and the floors under them, in one run.

    python -m bench.run [--events N] [--bucket N] [--keep FOLDER]

A real broker, a topic of change events, `ingestd run --until-latest` as a process of its own, then
the floors one by one on the same topic. The final table is compared with what the load must end in.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
import yaml
from confluent_kafka import Producer

from bench.floors import Floor, floors
from bench.generate import INTEGERS, KEY, Load, events, expected
from bench.usage import SessionUsage
from ingestd.dev.broker import DevBroker
from ingestd.paimon.catalog.base import Identifier, load_catalog
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.table.read import read_table
from ingestd.paimon.table.snapshot_manager import read_snapshot, snapshot_ids

COMMAND = (sys.executable, "-c", "from ingestd.cli.main import main; main()")
TABLE = Identifier("bench", "orders")


@dataclass(frozen=True, slots=True)
class EndToEnd:
    """One run of the daemon: totals include its start; warm leaves the first batch out."""

    records: int
    seconds: float
    cpu_seconds: float
    peak_megabytes: float
    warm_per_second: float
    snapshots: int
    rows: int
    correct: bool


def produce(load: Load, broker: DevBroker) -> float:
    """Create the topic and fill it; megabytes of values."""
    broker.create_topic(load.topic, load.partitions)
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "enable.idempotence": True,
            "log_level": 3,
            "linger.ms": 50,
            "compression.type": "lz4",
            "queue.buffering.max.messages": 500_000,
            "queue.buffering.max.kbytes": 1 << 20,
        }
    )
    size = 0
    for partition, key, value, timestamp in events(load):
        size += len(value)
        while True:
            try:
                producer.produce(load.topic, value, key, partition, timestamp=timestamp)
                break
            except BufferError:
                producer.poll(0.05)
    if producer.flush(120):
        raise AssertionError("the broker did not take the load")
    return size / 1e6


def run_daemon(load: Load, broker: DevBroker, folder: Path, bucket: int) -> EndToEnd:
    """Ingest the topic once, in batches of a quarter of it."""
    document = {
        "pipeline": {"name": "bench", "checkpoint": str(folder / "checkpoint"), "trigger": "1s"},
        "warehouse": {"path": str(folder / "warehouse"), "database": TABLE.database},
        "sources": {
            "bench": {
                "kafka": {"bootstrap.servers": broker.bootstrap},
                "topics": [load.topic],
                "format": "debezium-json",
                "max-offsets-per-trigger": max(load.events // 4, 1),
            }
        },
        "defaults": {"options": {"bucket": str(bucket)}},
        "http": {"listen": "127.0.0.1:0"},
    }
    file = folder / "bench.yaml"
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    begun = time.perf_counter()
    with (folder / "bench.log").open("wb") as log:
        process = subprocess.Popen(
            [*COMMAND, "run", "-c", str(file), "--until-latest"],
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        with SessionUsage(process.pid) as usage:
            status = process.wait()
    seconds = time.perf_counter() - begun
    if status:
        raise AssertionError(
            f"the daemon failed; the end of its log:\n{tail(folder / 'bench.log')}"
        )
    table = load_catalog("filesystem", str(folder / "warehouse")).get_table(TABLE)
    snapshots = [
        read_snapshot(table.io, table.paths, n) for n in snapshot_ids(table.io, table.paths)
    ]
    rows = read_table(table)
    return EndToEnd(
        load.events,
        seconds,
        usage.cpu_seconds,
        usage.peak_bytes / 1e6,
        warm_rate(snapshots, load.events),
        len(snapshots),
        rows.num_rows,
        correct(rows, load),
    )


def warm_rate(snapshots: list[Snapshot], records: int) -> float:
    """Records a second after the first of equal batches."""
    seconds = (snapshots[-1].time_millis - snapshots[0].time_millis) / 1000
    return records * (1 - 1 / len(snapshots)) / seconds if seconds else 0.0


def correct(rows: pa.Table, load: Load) -> bool:
    """Whether the table holds what the load ends in, every value."""
    wanted = expected(load)
    names = wanted.column_names
    got = rows.select(names).sort_by(KEY).combine_chunks()
    return all(same_column(got, wanted, name) for name in names)


def same_column(got: pa.Table, wanted: pa.Table, name: str) -> bool:
    """Equality of one column, whatever width integers have."""
    left, right = got.column(name), wanted.column(name)
    if name in INTEGERS:
        left, right = left.cast(pa.int64()), right.cast(pa.int64())
    return bool(left.equals(right.cast(left.type)))


def tail(path: Path) -> str:
    """The last lines of a log."""
    return "\n".join(path.read_text(errors="replace").splitlines()[-30:])


def report(result: EndToEnd, parts: list[Floor], cores: int) -> str:
    """The figures as lines for people."""
    total = sum(part.cpu_micros for part in parts)
    own = result.cpu_seconds / result.records * 1e6
    lines = [
        f"end to end, start included   {result.records / result.seconds:>12,.0f} records/s",
        f"end to end, first batch left out {result.warm_per_second:>8,.0f} records/s",
        f"CPU, all processes, start included{own:>7.2f} us/record",
        f"memory, all processes, peak  {result.peak_megabytes:>12,.0f} MB",
    ]
    lines += [
        f"floor {part.name:<8} one thread    {part.per_second:>12,.0f} records/s"
        f"{part.cpu_micros:>9.2f} us/record"
        for part in parts
    ]
    ceiling = cores * 1e6 / total if total else 0.0
    lines += [
        f"floors together              {total:>12.2f} us/record, so at most {ceiling:,.0f}"
        f" records/s on {cores} cores",
        f"CPU of the pipeline / floors {own / total if total else 0:>12.2f}",
        f"warm rate / ceiling          {result.warm_per_second / ceiling if ceiling else 0:>12.2f}",
        f"table: {result.rows:,} rows in {result.snapshots} snapshots, "
        + ("as expected" if result.correct else "WRONG"),
    ]
    return "\n".join(lines)


def main() -> int:
    """Run once and print; status 1 when the table is wrong."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--events", type=int, default=1_000_000)
    arguments.add_argument("--bucket", type=int, default=-1, help="-1: dynamic buckets")
    arguments.add_argument("--keep", type=Path, help="keep warehouse and logs in this folder")
    chosen = arguments.parse_args()
    load = Load(events=chosen.events, keys=chosen.events * 2 // 5)
    with tempfile.TemporaryDirectory() as scratch, DevBroker() as broker:
        folder = chosen.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        print(f"producing {load.events:,} events ...", flush=True)
        megabytes = produce(load, broker)
        print(f"{megabytes:,.0f} MB; running the daemon ...", flush=True)
        result = run_daemon(load, broker, folder, chosen.bucket)
        print("measuring the floors ...", flush=True)
        parts = floors(load, broker.bootstrap, folder)
    cores = len(os.sched_getaffinity(0))
    print(report(result, parts, cores))
    machine = {"machine": platform.machine(), "cores": cores, "load": os.getloadavg()[0]}
    figures = {"end_to_end": asdict(result), "floors": [asdict(part) for part in parts]}
    print(json.dumps({**machine, **figures}))
    return 0 if result.correct else 1


if __name__ == "__main__":
    sys.exit(main())
