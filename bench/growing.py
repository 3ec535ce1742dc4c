"""The pipelines whose cost is watched as they grow: one for each size of each dimension.

Everything but the broker and Spark is the daemon's own. The files that a table is said to hold
are made up, and are where a compaction would have put them: on the highest level, in one run.
"""

import itertools
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from unittest import mock

import numpy as np
import numpy.typing as npt

from bench.one_process import DATABASE, OneProcess, Spent, spent
from bench.process import BenchError
from ingestd.daemon.maintenance_process import KEPT_ENTRIES
from ingestd.ingest.maintenance.jobs import NotDone, do_job
from ingestd.ingest.maintenance.scheduler import Job, Kind
from ingestd.paimon.catalog.base import Identifier
from ingestd.paimon.spec.binary_row import serialize_row
from ingestd.paimon.spec.data_file import DataFileMeta, FileSource, SimpleStats
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.index_manifest import HASH_INDEX, IndexManifestEntry, encode_hash_index
from ingestd.paimon.spec.manifest import FileKind
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.table.buckets.hash_index import Hashes
from ingestd.paimon.table.commit.table_commit import commit
from ingestd.paimon.table.files.data_files import live_path
from ingestd.paimon.table.metadata import file_store_scan
from ingestd.paimon.table.metadata.file_store_scan import ManifestCache
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.write.commit_message import CommitMessage, ManifestCommittable

KEYS = ("p", "k")
INT, BIGINT, STRING = DataType("INT"), DataType("BIGINT"), DataType("STRING")
COLUMNS = [("p", INT), ("k", BIGINT), ("v", STRING), ("n", BIGINT)]
PARTITIONS = 2_000
TOUCHED = 10
BATCHES_A_JOB = 5
"""As many runs of a bucket as make a compaction due."""
HIGHEST_LEVEL = 5
_LATER_SECONDS = 7_200
"""By then snapshots may expire, but for the fewest that stay."""
Batches = Iterator[Mapping[str, Sequence[Mapping[str, Any]]]]


class Growing(Protocol):
    """A pipeline at one size, which repeats the measured step."""

    def step(self) -> Spent:
        """Run the measured step; return what it took."""
        ...


@dataclass(frozen=True, slots=True)
class Batched:
    """What is measured is a batch."""

    bench: OneProcess
    batches: Batches

    def step(self) -> Spent:
        """Run one batch."""
        return self.bench.batch(next(self.batches), KEYS)


@dataclass(frozen=True, slots=True)
class Maintained:
    """Measures the maintenance after some batches: a compaction and an expiry."""

    bench: OneProcess
    batches: Batches
    table: str
    kept: ManifestCache = field(default_factory=lambda: ManifestCache(KEPT_ENTRIES))
    """As the process has them that does these jobs."""

    def step(self) -> Spent:
        """Run some batches, then do both jobs."""
        for _ in range(BATCHES_A_JOB):
            self.bench.batch(next(self.batches), KEYS)
        name = f"{DATABASE}.{self.table}"
        with mock.patch.object(file_store_scan, "MANIFEST_CACHE", self.kept):
            return spent(lambda: self._do(name, "compact", "expire"))

    def _do(self, table: str, *kinds: Kind) -> None:
        for kind in kinds:
            job = Job(kind, table)
            done = do_job(
                self.bench.catalog, job, "maintenance", lambda: time.time() + _LATER_SECONDS
            )
            if isinstance(done, NotDone):
                raise BenchError(f"{kind} of {table}: {done.message}")


Make = Callable[[Path, int], Growing]
"""A pipeline in a folder, with tables named after the folder, as what decodes learns by topic."""


def events(folder: Path, size: int) -> Growing:
    """Batches of this many records."""
    return Batched(_opened(folder), _upserts(folder.name, size, partitions=1))


def keys(folder: Path, size: int) -> Growing:
    """A partition with this many keys, its buckets nearly full."""
    bench = _opened(folder)
    table = _create(bench, folder.name)
    hashes = np.unique(np.random.default_rng(1).integers(-(1 << 31), 1 << 31, size, np.int64))
    target = table.options.dynamic_bucket_target_row_num
    parts = np.array_split(hashes.astype(np.int32), -(-size // target))
    _seed(table, [_bucket(table, 0, bucket, 1, part) for bucket, part in enumerate(parts)])
    bench.open()
    return Batched(bench, _upserts(folder.name, 1_000, partitions=1))


def tables(folder: Path, size: int) -> Growing:
    """This many tables, of which ten take rows."""
    return _many_tables(folder, size, fed=TOUCHED)


def tables_written(folder: Path, size: int) -> Growing:
    """This many tables that all take rows."""
    return _many_tables(folder, size, fed=size)


def partitions(folder: Path, size: int) -> Growing:
    """This many partitions, of which ten take rows."""
    return Batched(_holding(folder, [1] * size), _upserts(folder.name, 1_000, partitions=TOUCHED))


def partitions_written(folder: Path, size: int) -> Growing:
    """Many partitions, `size` of which receive ten rows each."""
    return Batched(
        _holding(folder, [1] * PARTITIONS), _upserts(folder.name, 10 * size, partitions=size)
    )


def files(folder: Path, size: int) -> Growing:
    """This many files in many partitions, of which ten take rows."""
    return Batched(_of_files(folder, size), _upserts(folder.name, 1_000, partitions=TOUCHED))


def maintenance(folder: Path, size: int) -> Growing:
    """The same, and what is measured is the maintenance after some batches."""
    batches = _upserts(folder.name, 1_000, partitions=TOUCHED)
    return Maintained(_of_files(folder, size), batches, folder.name)


def columns(folder: Path, size: int) -> Growing:
    """This many columns."""
    extra = {f"c{number}": number for number in range(size)}

    def work() -> Batches:
        for batch in _upserts(folder.name, 1_000, partitions=1):
            yield {name: [{**row, **extra} for row in rows] for name, rows in batch.items()}

    return Batched(_opened(folder), work())


def _opened(folder: Path) -> OneProcess:
    bench = OneProcess(folder, {"manifest.target-file-size": "8 mb"}, ["p"])
    bench.catalog.create_database(DATABASE)
    bench.open()
    return bench


def _many_tables(folder: Path, size: int, fed: int) -> Growing:
    bench = _opened(folder)
    names = [f"{folder.name}_{number}" for number in range(size)]
    for name in names:
        bench.produce(name, [_row(0, 0)], KEYS)
    bench.run()
    rows = 1_000 // TOUCHED

    def work() -> Batches:
        for first in itertools.count(0, rows):
            yield {name: [_row(0, key) for key in range(first, first + rows)] for name in fed_names}

    fed_names = names[:fed]
    return Batched(bench, work())


def _of_files(folder: Path, size: int) -> OneProcess:
    return _holding(folder, np.bincount(np.arange(size) % PARTITIONS, minlength=PARTITIONS))


def _holding(folder: Path, counts: Sequence[int] | npt.NDArray[np.int64]) -> OneProcess:
    """A table with this many files in the one bucket of each partition; none where all are 0."""
    bench = _opened(folder)
    table = _create(bench, folder.name)
    if any(counts):
        messages = (_bucket(table, p, 0, n, _few_hashes(p)) for p, n in enumerate(counts))
        _seed(table, list(messages))
    bench.open()
    return bench


def _create(bench: OneProcess, table: str) -> FileStoreTable:
    options = {"bucket": "-1", "dynamic-bucket.assigner-parallelism": "1"}
    schema = new_schema(COLUMNS, KEYS, ("p",), options, 0)
    name = Identifier(DATABASE, table)
    bench.catalog.create_table(name, schema)
    return bench.catalog.get_table(name)


def _row(partition: int, key: int) -> dict[str, Any]:
    return {"p": partition, "k": key, "v": f"value {key}", "n": key * 7}


def _upserts(table: str, size: int, *, partitions: int) -> Batches:
    """Batches whose keys are to one half those of the batch before."""
    for first in itertools.count(0, size // 2):
        yield {table: [_row(key % partitions, key) for key in range(first, first + size)]}


def _few_hashes(partition: int) -> Hashes:
    return np.unique(np.random.default_rng(partition).integers(0, 1 << 31, 50)).astype(np.int32)


def _bucket(
    table: FileStoreTable, partition: int, bucket: int, files: int, hashes: Hashes
) -> CommitMessage:
    """This many empty files that no one will open, and a hash index that is there."""
    row = serialize_row(table.partition_types, (partition,))
    name = f"index-{uuid.uuid4()}-0"
    data = encode_hash_index(np.sort(hashes))
    table.io.write_new(table.paths.index(name), data)
    index = IndexManifestEntry(FileKind.ADD, row, bucket, HASH_INDEX, name, len(data), len(hashes))
    made_up = tuple(_file(partition, number) for number in range(files))
    for file in made_up:  # a commit looks whether its files are there
        table.io.write_new(live_path(table, row, bucket, file), b"")
    return CommitMessage(row, bucket, -1, new_files=made_up, new_index_files=(index,))


def _file(partition: int, number: int) -> DataFileMeta:
    first = partition * 1_000_000 + number * 1_000
    low_key, high_key = (serialize_row([BIGINT], [one]) for one in (first, first + 999))
    types = [type_ for _, type_ in COLUMNS]
    low = serialize_row(types, [partition, first, "value a", first])
    high = serialize_row(types, [partition, first + 999, "value z", first + 999])
    return DataFileMeta(
        file_name=f"data-{uuid.uuid4()}-0.parquet",
        file_size=123_456,
        row_count=1_000,
        min_key=low_key,
        max_key=high_key,
        key_stats=SimpleStats(low_key, high_key, (0,)),
        value_stats=SimpleStats(low, high, (0, 0, 0, 0)),
        min_sequence_number=0,
        max_sequence_number=0,
        schema_id=0,
        level=HIGHEST_LEVEL,
        creation_time_ms=0,
        delete_row_count=0,
        file_source=FileSource.COMPACT,
    )


def _seed(table: FileStoreTable, messages: Sequence[CommitMessage]) -> None:
    """Commit in pieces of about 2,000 files, as if by many batches."""
    state = load_state(table)
    files = sum(len(message.new_files) for message in messages)
    step = max(1, len(messages) * 2_000 // max(files, 1))
    for number, start in enumerate(range(0, len(messages), step)):
        committable = ManifestCommittable(number + 1, tuple(messages[start : start + step]))
        state = commit(table, "seed", committable, state=state, now_ms=0).state
