"""What fetching, decoding, merging and writing cost alone, on all cores at once, without Spark.

One process for each core takes its share of the partitions and does the four steps in turn, with
the very modules the pipeline uses and nothing between them: no shuffle, no scheduler, no commit.
No pipeline of these steps can be faster, so how near it comes does not depend on the machine.
"""

import multiprocessing
import os
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from bench.load import COLUMN_TYPES, KEY
from bench.process import BenchError
from ingestd.cdc.base import ChangeBatch, KnownColumns, RecordChunk, load_data_format
from ingestd.kafka.fetch import fetch
from ingestd.kafka.offset_ranges import OffsetRange, ranges_between
from ingestd.kafka.offsets import OffsetClient
from ingestd.kafka.properties import KafkaSource
from ingestd.paimon.io.file_io import file_io_for
from ingestd.paimon.merge.base import merge_rows
from ingestd.paimon.spec.data_types import SEQUENCE_NUMBER, VALUE_KIND, parse_type
from ingestd.paimon.spec.merge_rules import merge_rules
from ingestd.paimon.spec.options import core_options
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.table.write.table_write import write_file

STEPS = ("fetch", "decode", "merge", "write")
CHUNK_RECORDS = 50_000
CHUNK_BYTES = 32 << 20
ROUND = 125_000
WAIT_SECONDS = 120
TYPES = {name: parse_type(text) for name, text in COLUMN_TYPES.items()}

_barrier: Barrier | None = None


@dataclass(slots=True)
class Steps:
    """Wall and CPU seconds of each step in one process, and the records that went through."""

    records: int = 0
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STEPS, 0.0))
    cpu_seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STEPS, 0.0))

    @contextmanager
    def measured(self, step: str) -> Iterator[None]:
        """Add the time that the block takes."""
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self.seconds[step] += time.perf_counter() - wall
        self.cpu_seconds[step] += time.process_time() - cpu


def floors(bootstrap: str, topic: str, folder: Path, cores: int) -> dict[str, Any]:
    """Records a second that all steps together allow, and microseconds of CPU of each step."""
    shares = _shares(bootstrap, topic, cores)
    context = multiprocessing.get_context("spawn")
    arguments = [(bootstrap, topic, share, folder / str(i)) for i, share in enumerate(shares)]
    with ProcessPoolExecutor(
        len(shares), context, initializer=_prepare, initargs=(context.Barrier(len(shares)),)
    ) as pool:
        parts = list(pool.map(_run_share, arguments))
    records = sum(part.records for part in parts)
    slowest = max(sum(part.seconds.values()) for part in parts)
    cpu = {step: sum(part.cpu_seconds[step] for part in parts) for step in STEPS}
    wall = {step: max(part.seconds[step] for part in parts) for step in STEPS}
    return {
        "events": records,
        "processes": len(parts),
        "per_s": round(records / slowest, 1),
        "us_cpu": round(sum(cpu.values()) / records * 1e6, 3),
        "step_us_cpu": {step: round(cpu[step] / records * 1e6, 3) for step in STEPS},
        "step_per_s": {step: round(records / wall[step], 1) for step in STEPS},
    }


def _shares(bootstrap: str, topic: str, cores: int) -> list[list[OffsetRange]]:
    client = OffsetClient(_source(bootstrap, topic))
    places = client.list_topic_partitions()
    start, end = client.beginning_offsets(places), client.end_offsets(places)
    ranges = ranges_between({"floors": start}, {"floors": end})
    return [share for share in (ranges[i::cores] for i in range(cores)) if share]


def _source(bootstrap: str, topic: str) -> KafkaSource:
    return KafkaSource("floors", (topic,), properties={"bootstrap.servers": bootstrap})


def _prepare(barrier: Barrier) -> None:
    global _barrier
    _barrier = barrier
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)


def _run_share(arguments: tuple[str, str, list[OffsetRange], Path]) -> Steps:
    bootstrap, topic, ranges, folder = arguments
    folder.mkdir(parents=True, exist_ok=True)
    source, steps = _source(bootstrap, topic), Steps()
    if _barrier is None:
        raise BenchError("the process was not prepared")
    _barrier.wait(WAIT_SECONDS)  # so that all cores are busy while one is measured
    for number, chunks in enumerate(_rounds(source, ranges, steps)):
        batches = _decode(chunks, steps)
        _merge_and_write(batches, steps, folder / f"{number}.parquet")
    return steps


def _rounds(
    source: KafkaSource, ranges: list[OffsetRange], steps: Steps
) -> Iterator[list[RecordChunk]]:
    """Chunks of about as many records as a task of the pipeline holds."""
    waiting: list[RecordChunk] = []
    for wanted in ranges:
        chunks = fetch(source, wanted, max_records=CHUNK_RECORDS, max_bytes=CHUNK_BYTES)
        while True:
            with steps.measured("fetch"):
                chunk = next(chunks, None)
            if chunk is None:
                break
            steps.records += len(chunk.offsets)
            waiting.append(chunk)
            if sum(len(one.offsets) for one in waiting) >= ROUND:
                yield waiting
                waiting = []
    if waiting:
        yield waiting


def _decode(chunks: list[RecordChunk], steps: Steps) -> list[ChangeBatch]:
    data_format = load_data_format("debezium-json")
    batches: list[ChangeBatch] = []
    known: KnownColumns = {}
    for chunk in chunks:
        if not known:
            found = data_format.decode(chunk, {}, {})
            known = {batch.source: TYPES for batch in found.batches}
        with steps.measured("decode"):
            decoded = data_format.decode(chunk, known, known)
        if decoded.rejected:
            raise BenchError(f"the load was rejected: {decoded.rejected[0]}")
        batches.extend(decoded.batches)
    return batches


def _merge_and_write(batches: list[ChangeBatch], steps: Steps, path: Path) -> None:
    schema = new_schema(list(TYPES.items()), (KEY,), (), {"bucket": "1"}, 0)
    rows = pa.concat_tables([batch.columns for batch in batches], promote_options="permissive")
    kinds = np.concatenate([batch.row_kind for batch in batches])
    rows = rows.append_column(SEQUENCE_NUMBER, pa.array(np.arange(rows.num_rows), pa.int64()))
    rows = rows.append_column(VALUE_KIND, pa.array(kinds, pa.int8()))
    with steps.measured("merge"):
        merged = merge_rows(rows, (KEY,), merge_rules(schema))
    with steps.measured("write"):
        write_file(file_io_for(str(path)), str(path), merged, core_options(schema))
    path.unlink()


def all_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))
