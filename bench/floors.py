"""What each part of the pipeline costs when it runs alone, in this process, on one thread.

No pipeline can be faster than the sum of its floors divided by the cores; how near it comes is the
figure to watch, because it does not depend on the machine.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.generate import KEY, Load
from ingestd.cdc.base import ChangeBatch, RecordChunk, load_data_format
from ingestd.kafka.fetch import fetch
from ingestd.kafka.offsets import OffsetClient
from ingestd.kafka.properties import KafkaSource
from ingestd.kafka.ranges import ranges_between
from ingestd.paimon.format.base import load_format
from ingestd.paimon.io.file_io import file_io_for
from ingestd.paimon.merge.base import load_merge_engine
from ingestd.paimon.spec.options import core_options
from ingestd.paimon.spec.schema import new_schema

CHUNK_RECORDS = 50_000
CHUNK_BYTES = 32 << 20
ROUND = 250_000


@dataclass(slots=True)
class Floor:
    """CPU and wall seconds that one step took for so many records."""

    name: str
    records: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Add the time that the block takes; its records are added by whoever knows them."""
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self.seconds += time.perf_counter() - wall
        self.cpu_seconds += time.process_time() - cpu

    @property
    def per_second(self) -> float:
        """Records a second of one thread."""
        return self.records / self.seconds if self.seconds else 0.0

    @property
    def cpu_micros(self) -> float:
        """Microseconds of CPU for one record."""
        return self.cpu_seconds / self.records * 1e6 if self.records else 0.0


def floors(load: Load, bootstrap: str, folder: Path) -> list[Floor]:
    """Fetch everything; decode, merge and write it in rounds of 250,000 records."""
    fetching, decoding, merging, writing = (
        Floor(name) for name in ("fetch", "decode", "merge", "write")
    )
    waiting: list[RecordChunk] = []
    rounds = 0
    for chunk in _chunks(load, bootstrap, fetching):
        waiting.append(chunk)
        if sum(len(c.offsets) for c in waiting) >= ROUND:
            rounds += 1
            batches = _decode(waiting, decoding)
            _merge_and_write(batches, merging, writing, folder / f"round-{rounds}.parquet")
            waiting = []
    if waiting:
        _merge_and_write(_decode(waiting, decoding), merging, writing, folder / "last.parquet")
    return [fetching, decoding, merging, writing]


def _chunks(load: Load, bootstrap: str, floor: Floor) -> Iterator[RecordChunk]:
    source = KafkaSource("bench", (load.topic,), properties={"bootstrap.servers": bootstrap})
    client = OffsetClient(source)
    partitions = client.list_topic_partitions()
    start, end = client.beginning_offsets(partitions), client.end_offsets(partitions)
    for wanted in ranges_between({"bench": start}, {"bench": end}):
        chunks = fetch(source, wanted, max_records=CHUNK_RECORDS, max_bytes=CHUNK_BYTES)
        while True:
            with floor.measured():
                chunk = next(chunks, None)
            if chunk is None:
                break
            floor.records += len(chunk.offsets)
            yield chunk


def _decode(chunks: list[RecordChunk], floor: Floor) -> list[ChangeBatch]:
    data_format = load_data_format("debezium-json")
    first = data_format.decode(chunks[0], {}, {})
    known = {batch.source: batch.types for batch in first.batches}
    batches: list[ChangeBatch] = []
    for chunk in chunks:
        with floor.measured():
            decoded = data_format.decode(chunk, known, {})
        floor.records += len(chunk.offsets)
        if decoded.rejected:
            raise AssertionError(f"the load was rejected: {decoded.rejected[0]}")
        batches.extend(decoded.batches)
    return batches


def _merge_and_write(
    batches: list[ChangeBatch], merging: Floor, writing: Floor, path: Path
) -> None:
    types = {name: kind for batch in batches for name, kind in batch.types.items()}
    schema = new_schema(list(types.items()), (KEY,), (), {"bucket": "1"}, 0)
    rows = pa.concat_tables([b.columns for b in batches], promote_options="permissive")
    kinds = np.concatenate([b.row_kind for b in batches])
    rows = rows.append_column("_VALUE_KIND", pa.array(kinds, pa.int8()))
    merging.records += rows.num_rows
    writing.records += rows.num_rows
    with merging.measured():
        merged = load_merge_engine("deduplicate").merge(rows, (KEY,))
    with writing.measured():
        load_format("parquet").write_file(
            file_io_for(str(path)), str(path), merged, core_options(schema)
        )
