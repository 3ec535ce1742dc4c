"""What the hash index of a dynamic-bucket table costs as it grows: memory, start, each batch.

    python -m bench.hash_index                                   # 1 M and 10 M keys
    python -m bench.hash_index --keys 100000000                  # 400 MB of index files
    python -m bench.hash_index --keys 10000000 --partitions 1000

Index files are made directly, buckets of 1.95 M keys at most, without data files. `start` is the
first batch of a process, which reads every index file of the partitions that it writes; `batch` a
later one, nine of ten keys known: buckets assigned, index files of touched buckets written. Beside
them stand, from the same run, the bare reading of the same bytes and one `numpy.searchsorted` of
the same hashes in one array of all. Times are CPU, the best of a few; memory is what the process
holds for itself, and what it has mapped of its local disk. The last line is JSON.
"""

import argparse
import functools
import json
import re
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ingestd.paimon.io.file_io import LocalFileIO
from ingestd.paimon.spec.binary_row import EMPTY_ROW, serialize_row
from ingestd.paimon.spec.data_types import parse_type
from ingestd.paimon.spec.index_manifest import HASH_INDEX, IndexManifestEntry, encode_hash_index
from ingestd.paimon.spec.manifest import FileKind
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.table.buckets.bucket_assigner import DynamicBucketAssigner
from ingestd.paimon.table.buckets.hash_index import HASH_CACHE, PartitionIndex
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable

BUCKET_KEYS = 1_950_000
"""Keys of a bucket: nearly what it takes, so that the first ones have room for a few batches."""
BATCHES = (1_000, 10_000, 100_000)
ROUNDS = 3
KNOWN = 0.9
_SPREAD = np.uint32(2_654_435_761)
_MILLIS = 1000

Hashes = npt.NDArray[np.int32]
_Entries = list[IndexManifestEntry]


@dataclass(frozen=True, slots=True)
class Figures:
    """One size of index; milliseconds of CPU, megabytes."""

    keys: int
    partitions: int
    files: int
    start_ms: float
    read_ms: float
    memory_mb: float
    mapped_mb: float
    batch_ms: dict[int, float]
    lookup_ms: dict[int, float]
    searchsorted_ms: dict[int, float]


def hashes_of(first: int, count: int) -> Hashes:
    """Return distinct hashes for keys given by number, spread over the whole range."""
    return (np.arange(first, first + count).astype(np.uint32) * _SPREAD).view(np.int32)


def make_index(folder: Path, keys: int, partitions: int) -> tuple[FileStoreTable, list[_Entries]]:
    """A table's handle and the index entries of each of its partitions; the files are there."""
    names = ["p"] if partitions > 1 else []
    columns = [(name, parse_type("INT")) for name in ("p", "id")]
    schema = new_schema(columns, [*names, "id"], names, {"bucket": "-1"}, 0)
    table = FileStoreTable(str(folder), schema, LocalFileIO(sync=False), "bench.t")
    per_partition = keys // partitions
    made: list[_Entries] = []
    for number in range(partitions):
        row = serialize_row(table.partition_types, [number]) if names else EMPTY_ROW
        entries = []
        for bucket, start in enumerate(range(0, per_partition, BUCKET_KEYS)):
            count = min(BUCKET_KEYS, per_partition - start)
            hashes = np.sort(hashes_of(number * per_partition + start, count))
            name, data = f"index-{uuid.uuid4()}-0", encode_hash_index(hashes)
            table.io.write_new(table.paths.index(name), data)
            entries.append(
                IndexManifestEntry(FileKind.ADD, row, bucket, HASH_INDEX, name, len(data), count)
            )
        made.append(entries)
    return table, made


def measure(folder: Path, keys: int, partitions: int) -> Figures:
    """Make an index and measure it; its files are deleted again."""
    table, entries = make_index(folder, keys, partitions)
    try:
        paths = [Path(table.paths.index(one.file_name)) for entry in entries for one in entry]
        read_ms = min(_timed(lambda: [path.read_bytes() for path in paths]) for _ in range(ROUNDS))
        before = _own_memory()
        start_ms = _timed(lambda: [PartitionIndex.load(table, entry) for entry in entries])
        memory, disk = _own_memory() - before, HASH_CACHE.mapped_bytes / (1 << 20)
        batch, lookup = _batches(table, entries, keys // partitions)
        return Figures(
            keys, partitions, len(paths), start_ms, read_ms, memory, disk, batch, lookup,
            _floor(keys // partitions),
        )  # fmt: skip
    finally:
        for path in {table.paths.index(one.file_name) for entry in entries for one in entry}:
            HASH_CACHE.discard(path)
        shutil.rmtree(folder)


def _batches(
    table: FileStoreTable, entries: list[_Entries], keys: int
) -> tuple[dict[int, float], dict[int, float]]:
    """Milliseconds of batches into the first partition by their rows: all of it, the look-up."""
    batch, lookup, fresh = {}, {}, keys * len(entries)
    mine = {entry.bucket: entry for entry in entries[0]}
    for rows in BATCHES:
        best, best_lookup = float("inf"), float("inf")
        for _ in range(ROUNDS):
            asked, fresh = _batch(rows, keys, fresh), fresh + rows
            index = PartitionIndex.load(table, list(mine.values()))
            best_lookup = min(best_lookup, _timed(functools.partial(index.lookup, asked)))
            begin = time.process_time()
            assigner = DynamicBucketAssigner(table, mine[0].partition, mine.values(), 0, 1)
            assigner.assign(asked)
            grown = assigner.prepare_commit()
            best = min(best, (time.process_time() - begin) * _MILLIS)
            mine |= {entry.bucket: entry for entry in grown}
        batch[rows], lookup[rows] = best, best_lookup
    return batch, lookup


def _batch(rows: int, keys: int, fresh: int) -> Hashes:
    """Hashes of keys that are known, at random, and of some that are new."""
    known = np.random.default_rng(fresh).integers(0, keys, int(rows * KNOWN))
    old = (known.astype(np.uint32) * _SPREAD).view(np.int32)
    return np.concatenate([old, hashes_of(fresh, rows - len(old))])


def _floor(keys: int) -> dict[int, float]:
    """Milliseconds of one binary search among all hashes, by the rows of a batch."""
    whole = np.sort(hashes_of(0, keys))
    asked = {rows: np.sort(_batch(rows, keys, keys)) for rows in BATCHES}
    return {
        rows: min(_timed(functools.partial(np.searchsorted, whole, a)) for _ in range(ROUNDS))
        for rows, a in asked.items()
    }


def _timed(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return (time.process_time() - start) * _MILLIS


def _own_memory() -> float:
    """Megabytes that only this process has, without pages of files."""
    found = re.search(r"RssAnon:\s+(\d+)", Path("/proc/self/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--keys", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--partitions", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where index files are made and deleted again")
    given = parser.parse_args()
    found = []
    for keys in given.keys:
        folder = Path(tempfile.mkdtemp(prefix="ingestd-hash-index-", dir=given.folder))
        one = measure(folder, keys, given.partitions)
        found.append(asdict(one))
        print(
            f"{keys:13,} keys in {one.files:,} files of {one.partitions:,} partitions: start "
            f"{one.start_ms:,.0f} ms (bare reading {one.read_ms:,.0f}), memory "
            f"{one.memory_mb:,.0f} MB, mapped {one.mapped_mb:,.0f} MB"
        )
        for rows in BATCHES:
            print(
                f"    batch of {rows:7,} rows {one.batch_ms[rows]:9,.1f} ms, of which look-up "
                f"{one.lookup_ms[rows]:9,.1f} ms (one search {one.searchsorted_ms[rows]:7,.1f})"
            )
    print(json.dumps({"hash_index": found}))


if __name__ == "__main__":
    main()
