"""CPU of the driver for a batch of a large installation.

    python -m bench.large_driver [--tables N] [--partitions N] [--touched N] [--tasks N] [--broker]

One process holds the driver and the tasks; CPU of tasks is subtracted. `--broker` also measures
the planning of a batch, from a real broker with as many topic partitions. What Spark adds in the
driver is left out: `bench.cluster` shows it.
"""

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient, NewTopic

from bench.one_process import SOURCE, OneProcess, Spent, spent
from ingestd.dev.broker import DevBroker
from ingestd.ingest.settings.context import BatchContext
from ingestd.ingest.stages.batch_result import WriteOutcome
from ingestd.kafka.offset_ranges import BatchOffsets, OffsetRange, Offsets
from ingestd.kafka.planner import Planner
from ingestd.kafka.properties import KafkaSource

ROWS = 250
"""Rows of a table in a batch: enough that the batch is divided into tasks."""
KEYS = ("id",)
CREATED_AT_ONCE = 100


class Installation(OneProcess):
    """A pipeline of many tables; only the first partition of each topic receives records."""

    def __init__(self, folder: Path, partitions: int, tasks: int) -> None:
        super().__init__(folder, {"bucket": "1"}, (), tasks)
        self._partitions = partitions
        self._tasks_ms = 0.0

    def driver(self) -> Spent:
        """Run one batch over everything that is new; return what the driver took."""
        self._tasks_ms = 0.0
        taken = self.run()
        return Spent(taken.cpu_ms - self._tasks_ms, taken.wall_ms)

    def _offsets(self, number: int) -> BatchOffsets:
        batch = super()._offsets(number)
        idle = dict.fromkeys(range(1, self._partitions), ROWS)
        return BatchOffsets(_with(batch.start, idle), _with(batch.until, idle))

    def _stages(
        self,
        spark: object,
        context: BatchContext,
        groups: list[list[OffsetRange]],
        *others: object,
    ) -> list[WriteOutcome]:
        begun = time.process_time()
        outcomes = super()._stages(spark, context, groups, *others)
        self._tasks_ms += (time.process_time() - begun) * 1e3
        return outcomes


def _with(offsets: Offsets, idle: Mapping[int, int]) -> Offsets:
    return {
        source: {topic: {**partitions, **idle} for topic, partitions in topics.items()}
        for source, topics in offsets.items()
    }


def batched(names: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    """Yield consecutive groups of at most `size` names."""
    return (names[start : start + size] for start in range(0, len(names), size))


def batches(tables: int, partitions: int, touched: int, tasks: int, runs: int) -> list[float]:
    """Return the CPU milliseconds of the driver for each batch with rows for `touched` tables."""
    names = [f"table_{number}" for number in range(tables)]
    rows = [{"id": number, "note": f"note {number}"} for number in range(ROWS)]
    with tempfile.TemporaryDirectory(prefix="large-driver-") as folder:
        pipeline = Installation(Path(folder), partitions, tasks)
        pipeline.open()
        for some in batched(names, CREATED_AT_ONCE):
            pipeline.batch(dict.fromkeys(some, rows), KEYS)
        taken: list[float] = []
        for number in range(runs):
            first = number * touched % tables
            for name in names[first : first + touched]:
                pipeline.produce(name, rows, KEYS)
            taken.append(pipeline.driver().cpu_ms)
    return taken


def plans(topics: int, partitions: int, runs: int) -> list[float]:
    """Return the CPU milliseconds of planning each of `runs` batches, with a real broker."""
    with DevBroker() as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        names = [f"topic_{number}" for number in range(topics)]
        for some in batched(names, CREATED_AT_ONCE):
            new = [NewTopic(name, partitions, 1) for name in some]
            for created in admin.create_topics(new, request_timeout=120).values():
                created.result()
        kafka = {"bootstrap.servers": broker.bootstrap}
        source = KafkaSource(SOURCE, (), topic_pattern="topic_.*", properties=kafka)
        planner = Planner({SOURCE: source}, {}, {}, {})
        planner.next_batch({}, bounded=False)
        return [spent(lambda: planner.next_batch({}, bounded=False)).cpu_ms for _ in range(runs)]


def main() -> None:
    """Print one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=1_000)
    parser.add_argument("--partitions", type=int, default=10)
    parser.add_argument("--touched", type=int, default=200)
    parser.add_argument("--tasks", type=int, default=256)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--broker", action="store_true")
    given = parser.parse_args()
    taken = batches(given.tables, given.partitions, given.touched, given.tasks, given.runs)
    point: dict[str, Any] = {**vars(given), "batch_ms": _figures(taken)}
    point["batch_ms_per_touched_table"] = round(statistics.median(taken) / given.touched, 2)
    if given.broker:
        point["planning_ms"] = _figures(plans(given.tables, given.partitions, given.runs))
    print(json.dumps(point))


def _figures(values: Sequence[float]) -> dict[str, float]:
    median, least, most = statistics.median(values), min(values), max(values)
    return {"median": round(median, 1), "min": round(least, 1), "max": round(most, 1)}


if __name__ == "__main__":
    main()
