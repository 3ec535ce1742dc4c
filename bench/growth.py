"""How the cost of a batch grows with the events in it and with what the tables already hold.

    python -m bench.growth [quick|full]

Everything but the broker and Spark is the daemon's own. The files that a table is said to hold
are made up, but for those that a batch opens.
"""

import argparse
import gc
import json
import tempfile
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.one_process import DATABASE, Cost, OneProcess
from ingestd.paimon.catalog.base import Identifier
from ingestd.paimon.spec.binary_row import serialize_row
from ingestd.paimon.spec.data_file import DataFileMeta, FileSource, SimpleStats
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.index_manifest import HASH_INDEX, IndexManifestEntry, encode_hash_index
from ingestd.paimon.spec.manifest import FileKind
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.table.buckets.hash_index import Hashes
from ingestd.paimon.table.commit.table_commit import commit
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.write.commit_message import CommitMessage, ManifestCommittable

KEYS = ("p", "k")
INT, BIGINT, STRING = DataType("INT"), DataType("BIGINT"), DataType("STRING")
COLUMNS = [("p", INT), ("k", BIGINT), ("v", STRING), ("n", BIGINT)]
BATCHES = {"quick": 7, "full": 17}
SIZES: Mapping[str, Mapping[str, Sequence[int]]] = {
    "quick": {
        "events": (1_000, 10_000),
        "keys": (100_000, 1_000_000),
        "tables": (20, 200),
        "partitions": (200, 2_000),
        "files": (0, 5_000, 50_000),
        "columns": (50, 500),
    },
    "full": {
        "events": (1_000, 3_000, 10_000, 30_000, 100_000),
        "keys": (100_000, 300_000, 1_000_000, 2_000_000, 5_000_000),
        "tables": (20, 50, 100, 200, 400),
        "partitions": (200, 500, 1_000, 2_000, 4_000),
        "files": (0, 5_000, 15_000, 50_000, 100_000),
        "columns": (50, 100, 200, 500),
    },
}
Batches = Iterator[Mapping[str, Sequence[Mapping[str, Any]]]]


@dataclass(frozen=True, slots=True)
class GrowthPoint:
    """What one batch costs at one size of one dimension; `note` says what the batch was."""

    dimension: str
    size: int
    cpu_ms_per_batch: float
    wall_ms_per_batch: float
    note: str


def measure(scale: str) -> list[GrowthPoint]:
    """All dimensions at the sizes of a scale, "quick" or "full"."""
    points: list[GrowthPoint] = []
    for dimension, sizes in SIZES[scale].items():
        for size in sizes:
            with tempfile.TemporaryDirectory(prefix="growth-") as folder:
                cost, note = _DIMENSIONS[dimension](Path(folder), size, BATCHES[scale])
            gc.collect()
            text = f"{note}; {cost.sent_bytes} bytes of context"
            points.append(GrowthPoint(dimension, size, cost.cpu_ms, cost.wall_ms, text))
    return points


def _events(folder: Path, size: int, batches: int) -> tuple[Cost, str]:
    bench = _bench(folder)
    return bench.cost(_upserts(size, batches, partitions=1), KEYS), "records of one batch"


def _keys(folder: Path, size: int, batches: int) -> tuple[Cost, str]:
    bench = _bench(folder)
    table = _create(bench)
    hashes = np.unique(np.random.default_rng(1).integers(-(1 << 31), 1 << 31, size, np.int64))
    target = table.options.dynamic_bucket_target_row_num
    parts = np.array_split(hashes.astype(np.int32), -(-size // target))
    _seed(table, [_bucket(table, 0, bucket, 1, part) for bucket, part in enumerate(parts)])
    bench.open()
    return bench.cost(_upserts(1_000, batches, partitions=1), KEYS), "1,000 records, half new keys"


def _tables(folder: Path, size: int, batches: int) -> tuple[Cost, str]:
    bench = _bench(folder)
    names = [f"t{number}" for number in range(size)]
    for name in names:
        bench.produce(name, [_row(0, 0)], KEYS)
    bench.run()

    def work() -> Batches:
        for number in range(batches):
            yield {name: [_row(0, 100 * number + k) for k in range(100)] for name in names[:10]}

    return bench.cost(work(), KEYS), "1,000 records into 10 of the tables"


def _partitions(folder: Path, size: int, batches: int) -> tuple[Cost, str]:
    bench = _bench(folder)
    table = _create(bench)
    _seed(table, [_bucket(table, p, 0, 1, _few_hashes(p)) for p in range(size)])
    bench.open()
    cost = bench.cost(_upserts(1_000, batches, partitions=10), KEYS)
    return cost, "1,000 records, half new keys, into 10 of the partitions"


def _files(folder: Path, size: int, batches: int) -> tuple[Cost, str]:
    bench = _bench(folder)
    table = _create(bench)
    partitions = 2_000
    if size:
        _seed(
            table,
            [
                _bucket(table, p, 0, size // partitions + (p < size % partitions), _few_hashes(p))
                for p in range(partitions)
            ],
        )
    bench.open()
    cost = bench.cost(_upserts(1_000, batches, partitions=10), KEYS)
    return cost, "1,000 records, half new keys, into 10 of 2,000 partitions"


def _columns(folder: Path, size: int, batches: int) -> tuple[Cost, str]:
    bench = _bench(folder)
    extra = {f"c{number}": number for number in range(size)}

    def work() -> Batches:
        for number in range(batches):
            yield {"t": [_row(0, 1_000 * number + k) | extra for k in range(1_000)]}

    return bench.cost(work(), KEYS), "1,000 records"


_DIMENSIONS: Mapping[str, Callable[[Path, int, int], tuple[Cost, str]]] = {
    "events": _events,
    "keys": _keys,
    "tables": _tables,
    "partitions": _partitions,
    "files": _files,
    "columns": _columns,
}


def _bench(folder: Path) -> OneProcess:
    bench = OneProcess(folder, {"manifest.target-file-size": "8 mb"}, ["p"])
    bench.catalog.create_database(DATABASE)
    bench.open()
    return bench


def _create(bench: OneProcess) -> FileStoreTable:
    options = {"bucket": "-1", "dynamic-bucket.assigner-parallelism": "1"}
    schema = new_schema(COLUMNS, KEYS, ("p",), options, 0)
    name = Identifier(DATABASE, "t")
    bench.catalog.create_table(name, schema)
    return bench.catalog.get_table(name)


def _row(partition: int, key: int) -> dict[str, Any]:
    return {"p": partition, "k": key, "v": f"value {key}", "n": key * 7}


def _upserts(size: int, batches: int, *, partitions: int) -> Batches:
    """Batches whose keys are to one half those of the batch before."""
    for number in range(batches):
        first = number * size // 2
        yield {"t": [_row(key % partitions, key) for key in range(first, first + size)]}


def _few_hashes(partition: int) -> Hashes:
    return np.unique(np.random.default_rng(partition).integers(0, 1 << 31, 50)).astype(np.int32)


def _bucket(
    table: FileStoreTable, partition: int, bucket: int, files: int, hashes: Hashes
) -> CommitMessage:
    """So many files that nobody will open, and a hash index that is there."""
    row = serialize_row(table.partition_types, (partition,))
    name = f"index-{uuid.uuid4()}-0"
    data = encode_hash_index(np.sort(hashes))
    table.io.write_new(table.paths.index(name), data)
    index = IndexManifestEntry(FileKind.ADD, row, bucket, HASH_INDEX, name, len(data), len(hashes))
    made_up = tuple(_file(partition, number) for number in range(files))
    return CommitMessage(row, bucket, -1, new_files=made_up, new_index_files=(index,))


def _file(partition: int, number: int) -> DataFileMeta:
    first = partition * 1_000_000 + number * 1_000
    key = serialize_row([BIGINT], [first])
    types = [type_ for _, type_ in COLUMNS]
    low = serialize_row(types, [partition, first, "value a", first])
    high = serialize_row(types, [partition, first + 999, "value z", first + 999])
    return DataFileMeta(
        file_name=f"data-{uuid.uuid4()}-0.parquet",
        file_size=123_456,
        row_count=1_000,
        min_key=key,
        max_key=serialize_row([BIGINT], [first + 999]),
        key_stats=SimpleStats(key, key, (0,)),
        value_stats=SimpleStats(low, high, (0, 0, 0, 0)),
        min_sequence_number=0,
        max_sequence_number=0,
        schema_id=0,
        level=0,
        creation_time_ms=0,
        delete_row_count=0,
        file_source=FileSource.APPEND,
    )


def _seed(table: FileStoreTable, messages: Sequence[CommitMessage]) -> None:
    """Commit in pieces of about 2,000 files, as if by many batches."""
    state = load_state(table)
    files = sum(len(message.new_files) for message in messages)
    step = max(1, len(messages) * 2_000 // max(files, 1))
    for number, start in enumerate(range(0, len(messages), step)):
        committable = ManifestCommittable(number + 1, tuple(messages[start : start + step]))
        state = commit(table, "seed", committable, state=state, now_ms=0).state


def main() -> None:
    """Print one JSON line for each point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scale", nargs="?", default="quick", choices=sorted(SIZES))
    for point in measure(parser.parse_args().scale):
        print(json.dumps(asdict(point)), flush=True)


if __name__ == "__main__":
    main()
