"""Spark's Python workers with a stop watch at each step of both stages; for the profile only.

A module that Spark starts its workers from (`spark.python.daemon.module`). Steps are functions of
the product, wrapped when they are loaded; the product knows nothing of it. A step that runs inside
another one is taken off the outer one. After each task a worker appends its sums to a file.
"""

import functools
import gc
import importlib
import json
import os
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, TypeVar

import pyarrow as pa

from ingestd.ingest.rows.blobs import Blob
from ingestd.spark.startup import python_daemon

P = ParamSpec("P")
R = TypeVar("R")

FOLDER = "BENCH_PROFILE_FOLDER"
REST = "worker: rest of a task"
GARBAGE = "garbage collection"
BLOBS = "blobs"


class Step(NamedTuple):
    """A function of the product, and the step that its time counts for."""

    place: str
    step: str


STEPS = (
    Step("ingestd.kafka.native_reader:NativeKafkaReader.read", "fetch: client"),
    Step("ingestd.kafka.python_reader:PythonReader.read", "fetch: client"),
    Step("ingestd.kafka.records:RecordColumns.add", "fetch: columns"),
    Step("ingestd.kafka.records:RecordColumns.take", "fetch: columns"),
    Step("ingestd.ingest.stages.decode_stage:drop_oversized", "decode: bounds, counts"),
    Step("ingestd.ingest.stages.findings:Findings.note_chunk", "decode: bounds, counts"),
    Step("ingestd.cdc.json.json_changes:JsonChanges.decode", "decode"),
    Step("ingestd.ingest.rows.conform:only_new", "decode: bounds, counts"),
    Step("ingestd.ingest.rows.conform:conform", "conform to the table"),
    Step("ingestd.ingest.stages.decode_stage:assign_slots", "hash keys, find slots"),
    Step("ingestd.ingest.stages.map_side_dedup:newest_rows", "leave out older rows"),
    Step("ingestd.ingest.stages.map_side_dedup:split_by_slot", "split by slot"),
    Step("ingestd.spark.exchange.local_exchange:SlotFile.append", "blobs into files"),
    Step("ingestd.ingest.stages.write_stage:receive", "read blobs"),
    Step("ingestd.ingest.stages.write_stage:_TableWriter._prepared", "order, number"),
    Step("ingestd.ingest.stages.write_stage:partitions_of_rows", "assign buckets"),
    Step("ingestd.ingest.stages.write_stage:assigners_of", "assign buckets"),
    Step(
        "ingestd.paimon.table.buckets.bucket_assigner:DynamicBucketAssigner.__init__",
        "assign buckets",
    ),
    Step(
        "ingestd.paimon.table.buckets.bucket_assigner:DynamicBucketAssigner.assign",
        "assign buckets",
    ),
    Step(
        "ingestd.paimon.table.buckets.bucket_assigner:DynamicBucketAssigner.prepare_commit",
        "hash index",
    ),
    Step("ingestd.paimon.table.write.table_write:_prepare", "sort, merge"),
    Step("ingestd.paimon.table.write.table_write:_merged", "sort, merge"),
    Step("ingestd.paimon.table.write.file_metadata:FileStatsCollector.add", "statistics"),
    Step("ingestd.paimon.table.write.file_metadata:FileStatsCollector.meta", "statistics"),
    Step("ingestd.paimon.table.write.table_write:write_file", "encode files"),
)
GENERATORS = (
    Step("ingestd.ingest.stages.decode_stage:fetch_readable", "fetch: columns"),
    Step("ingestd.spark.stages:DecodeTask.__call__", "stage 1: rest"),
    Step("ingestd.ingest.stages.write_stage:runs", "order, number"),
    Step("ingestd.ingest.stages.write_stage:_TableWriter._write_rows", "assign buckets"),
    Step("ingestd.spark.stages:WriteTask.__call__", "stage 2: rest"),
)

_cpu: dict[str, float] = {}
_wall: dict[str, float] = {}
_bytes: dict[str, int] = {}
_inside: list[float] = []
"""For each step that runs now, the CPU seconds of the steps inside it; tasks have one thread."""


@contextmanager
def watch(step: str) -> Iterator[None]:
    """Add the time of the block to a step, without that of steps inside it."""
    _inside.append(0.0)
    wall, cpu = time.perf_counter(), time.thread_time()
    try:
        yield
    finally:
        spent = time.thread_time() - cpu
        _cpu[step] = _cpu.get(step, 0.0) + spent - _inside.pop()
        _wall[step] = _wall.get(step, 0.0) + time.perf_counter() - wall
        if _inside:
            _inside[-1] += spent


def watched(step: str, function: Callable[P, R]) -> Callable[P, R]:
    """The function under a watch."""

    @functools.wraps(function)
    def run(*arguments: P.args, **named: P.kwargs) -> R:
        with watch(step):
            return function(*arguments, **named)

    return run


def watched_generator(step: str, function: Callable[P, Iterator[R]]) -> Callable[P, Iterator[R]]:
    """The generator under a watch whenever it runs."""

    @functools.wraps(function)
    def run(*arguments: P.args, **named: P.kwargs) -> Iterator[R]:
        items = function(*arguments, **named)
        while True:
            with watch(step):
                try:
                    item = next(items)
                except StopIteration:
                    return
            yield item

    return run


def replace(place: str, wrap: Callable[[Callable[..., Any]], Any]) -> None:
    """Put something in the place of a function, `module:Class.name` or `module:name`."""
    module, _, path = place.partition(":")
    *owners, name = path.split(".")
    owner: Any = functools.reduce(getattr, owners, importlib.import_module(module))
    setattr(owner, name, wrap(getattr(owner, name)))


def main() -> None:
    """Be the daemon of the workers, with watches."""
    load = python_daemon.preload

    def preload(more: Sequence[str] = ()) -> None:
        load(more)
        for step in STEPS:
            replace(step.place, functools.partial(watched, step.step))
        for generator in GENERATORS:
            replace(generator.place, functools.partial(watched_generator, generator.step))
        replace("ingestd.ingest.stages.map_side_dedup:UnsentRows", _sized)
        replace("pyspark.worker:main", _reported)
        gc.callbacks.append(_on_garbage)

    python_daemon.preload = preload
    python_daemon.main()


def _sized(encode: Callable[P, Blob]) -> Callable[P, Blob]:
    def run(*arguments: P.args, **named: P.kwargs) -> Blob:
        blob = encode(*arguments, **named)
        _bytes[BLOBS] = _bytes.get(BLOBS, 0) + len(blob)
        return blob

    return run


def _reported(task: Callable[P, R]) -> Callable[P, R]:
    def run(*arguments: P.args, **named: P.kwargs) -> R:
        try:
            with watch(REST):
                return task(*arguments, **named)
        finally:
            _report()

    return run


def _on_garbage(phase: str, _: dict[str, int]) -> None:
    spent = time.thread_time()
    _cpu[GARBAGE] = _cpu.get(GARBAGE, 0.0) + (spent if phase == "stop" else -spent)


def _report() -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    document = {
        "at": time.time(),
        "cpu": _cpu,
        "wall": _wall,
        "bytes": _bytes,
        "system": used.ru_stime,
        "faults": used.ru_minflt,
        "arrow_peak": pa.default_memory_pool().max_memory(),
        "resident_peak": used.ru_maxrss << 10,
    }
    with Path(os.environ[FOLDER], f"worker-{os.getpid()}.jsonl").open("a") as file:
        file.write(json.dumps(document) + "\n")


if __name__ == "__main__":
    main()
