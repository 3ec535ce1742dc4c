"""Find the keys in dynamic buckets, and keys that occur in several buckets.

The hashes of one partition are kept in memory, 4 bytes per key. The keys themselves are kept only
for hashes that buckets have in common.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/tableindex/#dynamic-bucket-index
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingestd.paimon.merge.key_order import sort_keys
from ingestd.paimon.spec.arrow import column_values
from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.spec.data_types import SEQUENCE_NUMBER, VALUE_KIND
from ingestd.paimon.spec.row_selection import retractions
from ingestd.paimon.table.buckets.hash_index import Hashes, is_among, key_hashes
from ingestd.paimon.table.compact.sorted_input import batch_size
from ingestd.paimon.table.files.data_files import SYSTEM_FIELDS, DataFileReader
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable

Files = Mapping[int, Sequence[DataFileMeta]]
"""The live data files of one partition by bucket."""

_HELD = 4_000_000
"""Number of hashes that are buffered before duplicates are removed."""
_SLICES = 64
_BUCKET = "_BUCKET"


@dataclass(frozen=True, slots=True)
class SharedHash:
    """A key hash that occurs in the files of several buckets of a partition.

    New rows with this hash are written to the bucket `owner`. `keys` are the keys that have a row
    in several buckets, which readers return several times; each is given by its values in the order
    of the key columns. `keepers` has, for each key, the bucket of its newest row.
    """

    hash: int
    owner: int
    buckets: tuple[int, ...]
    keys: tuple[tuple[object, ...], ...]
    keepers: tuple[int, ...]


def stored_hashes(
    table: FileStoreTable, partition: bytes, bucket: int, files: Sequence[DataFileMeta]
) -> Hashes:
    """Return the sorted distinct hashes of all keys in the files, including deleted keys.

    `partition` is the serialized row. Raises FormatError for a data file that is missing or
    damaged.
    """
    parts: list[Hashes] = []
    unmerged = 0
    for rows in _key_rows(table, partition, bucket, files):
        parts.append(key_hashes(table, rows))
        unmerged += len(parts[-1])
        if unmerged > _HELD:
            parts, unmerged = [np.unique(np.concatenate(parts))], 0
    return np.unique(np.concatenate(parts)) if parts else np.empty(0, np.int32)


def shared_hashes(
    table: FileStoreTable, partition: bytes, files: Files, hashes: Mapping[int, Hashes]
) -> list[SharedHash]:
    """Return the hashes that occur in several buckets of a partition.

    `partition` is the serialized row. `hashes` has the sorted distinct hashes of each bucket,
    `files` its live files. Raises FormatError for a data file that is missing or damaged.
    """
    repeated = _in_several(list(hashes.values()))
    if not len(repeated):
        return []
    touched = [bucket for bucket, own in hashes.items() if is_among(repeated, own).any()]
    rows = _rows_of(table, partition, {bucket: files[bucket] for bucket in touched}, repeated)
    return list(_shared(table, rows))


def _in_several(arrays: Sequence[Hashes]) -> Hashes:
    """Return the values that occur in more than one of the arrays, sorted.

    Each array has distinct, sorted values. One range of values is searched at a time, to save
    memory.
    """
    borders = np.linspace(-(2**31), 2**31, _SLICES + 1).astype(np.int64)
    hashes = [np.empty(0, np.int32)]
    for low, high in zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True):
        parts = [own[np.searchsorted(own, low) : np.searchsorted(own, high)] for own in arrays]
        merged = np.sort(np.concatenate(parts)) if parts else hashes[0]
        hashes.append(np.unique(merged[1:][merged[1:] == merged[:-1]]))
    return np.concatenate(hashes)


def _rows_of(table: FileStoreTable, partition: bytes, files: Files, wanted: Hashes) -> pa.Table:
    """Return the rows of all buckets with the given hashes: keys, system columns, and `_BUCKET`."""
    parts = []
    for bucket, own in files.items():
        for rows in _key_rows(table, partition, bucket, own, system=True):
            picked = rows.filter(pa.array(is_among(key_hashes(table, rows), wanted)))
            numbers = pa.array(np.full(picked.num_rows, bucket, np.int32))
            parts.append(picked.append_column(_BUCKET, numbers))
    return pa.concat_tables(parts).combine_chunks()


def _shared(table: FileStoreTable, rows: pa.Table) -> Iterator[SharedHash]:
    names = table.schema.trimmed_primary_keys
    hashes = key_hashes(table, rows)
    newest = _newest_of_places(rows, names)
    live = ~retractions(rows.column(VALUE_KIND).to_numpy())
    buckets, numbers = rows.column(_BUCKET).to_numpy(), rows.column(SEQUENCE_NUMBER).to_numpy()
    keys = list(zip(*(column_values(rows.column(name)) for name in names), strict=True))
    order = newest[np.argsort(hashes[newest], kind="stable")]
    for same_hash in np.split(order, np.flatnonzero(np.diff(hashes[order])) + 1):
        # A live row takes precedence over a newer deletion, because readers return it.
        owner = max(same_hash.tolist(), key=lambda i: (live[i], numbers[i]))
        rows_of: dict[tuple[object, ...], list[int]] = defaultdict(list)
        for i in same_hash[live[same_hash]].tolist():
            rows_of[keys[i]].append(i)
        several = {key: own for key, own in rows_of.items() if len(own) > 1}
        yield SharedHash(
            int(hashes[owner]),
            int(buckets[owner]),
            tuple(sorted(set(buckets[same_hash].tolist()))),
            tuple(several),
            tuple(int(buckets[max(own, key=numbers.__getitem__)]) for own in several.values()),
        )


def _newest_of_places(rows: pa.Table, names: Sequence[str]) -> npt.NDArray[np.int64]:
    """Return, for each key and bucket, the index of the row with the largest sequence number."""
    sorted_keys = sort_keys(rows, names)
    order = sorted_keys.order
    key = np.empty(len(order), np.int64)
    key[order] = np.cumsum(sorted_keys.first)
    buckets, numbers = rows.column(_BUCKET).to_numpy(), rows.column(SEQUENCE_NUMBER).to_numpy()
    by_place = np.lexsort((numbers, buckets, key))
    last = np.ones(len(by_place), bool)
    last[:-1] = (np.diff(key[by_place]) != 0) | (np.diff(buckets[by_place]) != 0)
    newest: npt.NDArray[np.int64] = by_place[last]
    return newest


def _key_rows(
    table: FileStoreTable,
    partition: bytes,
    bucket: int,
    files: Sequence[DataFileMeta],
    *,
    system: bool = False,
) -> Iterator[pa.Table]:
    fields = (*table.schema.key_fields, *(SYSTEM_FIELDS if system else ()))
    reader = DataFileReader(table)
    for file in files:
        for _, rows in reader.batches(partition, bucket, file, fields, batch_size(1)):
            yield rows
