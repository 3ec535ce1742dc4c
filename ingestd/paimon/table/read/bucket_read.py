"""The rows of one bucket as they are now: its files merged, deletions dropped.

Files of a primary-key table whose key ranges overlap make up a
section; sections are independent of each other, so one section is what memory has to hold.
"""

import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.paimon.casts.evolution import evolve
from ingestd.paimon.merge.base import Positions
from ingestd.paimon.merge.merged_rows import LEVEL
from ingestd.paimon.merge.merging import merge_rows, picked_rows, picks_rows
from ingestd.paimon.spec.binary_row import deserialize_row
from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.spec.data_types import (
    BINARY_ROOTS,
    CHARACTER_ROOTS,
    NESTED_ROOTS,
    SEQUENCE_NUMBER,
    VALUE_KIND,
    DataField,
    DataType,
)
from ingestd.paimon.spec.manifest import ManifestEntry
from ingestd.paimon.table.files.data_files import RETRACTS, SYSTEM_FIELDS, DataFileReader
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.read.key_filter import KeyFilter

Key = tuple[object, ...]
GROUP_BYTES = 32 * 1024 * 1024
"""Bytes of files, or about so many, of which columns are read together."""
FILE_BYTES = 1024 * 1024
"""A file is not opened once more for less than this."""
ReadFields = Callable[[Sequence[DataField]], pa.Table]
PickRows = Callable[[pa.Table], Positions]
Picked = tuple[Positions, pa.Table]


@dataclass(frozen=True, slots=True)
class BucketFiles:
    """The live data files of one bucket, in commit order."""

    partition: bytes
    bucket: int
    files: tuple[DataFileMeta, ...]


def group_by_bucket(entries: Iterable[ManifestEntry]) -> list[BucketFiles]:
    """Live files by partition and bucket, buckets in the order in which they first appear."""
    groups: dict[tuple[bytes, int], list[DataFileMeta]] = {}
    for entry in entries:
        groups.setdefault((entry.partition, entry.bucket), []).append(entry.file)
    return [
        BucketFiles(partition, bucket, tuple(files))
        for (partition, bucket), files in groups.items()
    ]


def comparable_key(types: Sequence[DataType], key: bytes) -> Key:
    """Return a serialized key as a tuple that compares as keys do: strings by their bytes."""
    return tuple(map(comparable_value, deserialize_row(types, key)))


def comparable_value(value: object) -> object:
    """Return a value of a key column as something that compares as keys do."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, float):
        return math.isnan(value), 0.0 if math.isnan(value) else value
    return value


def sections(types: Sequence[DataType], files: Sequence[DataFileMeta]) -> list[list[DataFileMeta]]:
    """Return files grouped so that keys of one group are in no other, groups in key order.

    Within a group files stand from the oldest to the newest.
    """
    ranges = [
        (comparable_key(types, file.min_key), comparable_key(types, file.max_key), age)
        for age, file in sorted(enumerate(files), key=lambda pair: pair[1].max_sequence_number)
    ]
    ages = {age: place for place, (_, _, age) in enumerate(ranges)}
    groups: list[list[int]] = []
    reached: Key | None = None
    for low, high, age in sorted(ranges, key=lambda item: item[0]):
        if reached is None or low > reached:
            groups.append([])
        groups[-1].append(age)
        reached = high if reached is None else max(reached, high)
    return [[files[age] for age in sorted(group, key=ages.__getitem__)] for group in groups]


def ages_by_file(files: Sequence[DataFileMeta]) -> bool:
    """Return whether of two files that may share a key the later one has the newer rows throughout.

    Files of one level above 0 share none. `files` stand by their largest sequence numbers.
    """
    reached: dict[int, int] = {}
    for file in files:
        run = file.level if file.level > 0 else -1 - len(reached)
        others = (age for other, age in reached.items() if other != run)
        if any(age >= file.min_sequence_number for age in others):
            return False
        reached[run] = file.max_sequence_number
    return True


@dataclass(frozen=True, slots=True)
class BucketReader:
    """Reads buckets of a table with the columns `fields`, of the keys of `keys` (None: all).

    `source` reads the data files (None: all their rows, deletion vectors not heeded). With
    `kinds` deletions stay among the rows of a primary-key table, and `_VALUE_KIND` is a column.
    """

    table: FileStoreTable
    fields: tuple[DataField, ...]
    keys: KeyFilter | None = None
    source: DataFileReader | None = None
    kinds: bool = False

    def read(self, bucket: BucketFiles) -> Iterator[pa.Table]:
        """Yield the bucket's rows in parts that fit into memory one by one."""
        if not self.table.schema.primary_keys:
            for file in bucket.files:
                yield self._read(bucket, file, self.fields)
            return
        key_types = [field.type for field in self._key_fields]
        names = [*(field.name for field in self.fields), *([VALUE_KIND] if self.kinds else [])]
        for section in sections(key_types, bucket.files):
            rows = self._merged(bucket, section)
            if rows.num_rows:
                yield rows.select(names)

    @property
    def _key_fields(self) -> tuple[DataField, ...]:
        return self.table.schema.select(self.table.schema.trimmed_primary_keys)

    @property
    def _merge_fields(self) -> tuple[DataField, ...]:
        """Return the key columns, those asked for, and what merging them takes."""
        asked = (*self._key_fields, *self.fields)
        beside = self.table.merge_rules.columns_beside([field.name for field in asked])
        return tuple(dict.fromkeys((*asked, *self.table.schema.select(beside))))

    def _merged(self, bucket: BucketFiles, section: Sequence[DataFileMeta]) -> pa.Table:
        """Return the merged rows of a section; keys are unique within a file."""
        if len(section) > 1 and picks_rows(self.table.merge_rules):
            return self._picked(bucket, section)
        told_by_files = ages_by_file(section)
        fields = [*self._merge_fields, *self._system_fields(section, told_by_files)]
        parts = [self._file_rows(bucket, file, fields) for file in section]
        rows = pa.concat_tables(parts)
        if len(section) > 1:
            rules, names = self.table.merge_rules, self.table.schema.trimmed_primary_keys
            rows = rows.combine_chunks()
            if rules.newest_level_only:
                levels = [
                    np.full(part.num_rows, f.level, np.int32)
                    for part, f in zip(parts, section, strict=True)
                ]
                rows = rows.append_column(LEVEL, pa.array(np.concatenate(levels)))
            rows = merge_rows(rows, names, rules, oldest_first=told_by_files)
        if not self.kinds and any(file.delete_row_count != 0 for file in section):
            kinds = rows.column(VALUE_KIND).to_numpy()
            rows = rows.filter(pa.array(~np.isin(kinds, RETRACTS)))
        return rows

    def _picked(self, bucket: BucketFiles, section: Sequence[DataFileMeta]) -> pa.Table:
        told_by_files, rules = ages_by_file(section), self.table.merge_rules
        system = self._system_fields(section, told_by_files)
        names = self.table.schema.trimmed_primary_keys
        sequence = self.table.schema.select(rules.sequence_fields)
        # No file has the columns of the partition, so that a group of them would open it in vain.
        parts = [f for f in self.fields if f.name in self.table.schema.partition_keys]
        deciding = tuple(dict.fromkeys((*self._key_fields, *sequence, *system, *parts)))
        drops = not self.kinds and any(file.delete_row_count != 0 for file in section)

        def read(fields: Sequence[DataField]) -> pa.Table:
            return pa.concat_tables([self._file_rows(bucket, file, fields) for file in section])

        def pick(rows: pa.Table) -> Positions:
            picked = picked_rows(rows, names, rules, oldest_first=told_by_files)
            if not drops:
                return picked
            kinds = rows.column(VALUE_KIND).to_numpy()[picked]
            return picked[~np.isin(kinds, RETRACTS)]

        others = [field for field in self.fields if field not in deciding]
        files = PickedSection(section, read, pick, deciding)
        # With keys few rows of each file are kept, and which takes reading the keys each time.
        return files.rows(others, at_once=self.keys is not None)

    def _system_fields(
        self, section: Sequence[DataFileMeta], told_by_files: bool
    ) -> tuple[DataField, ...]:
        """Return the system columns that the merge has to see: each costs decoding and copying."""
        rules = self.table.merge_rules
        merges = len(section) > 1
        takes_newest = rules.engine == "deduplicate" and not rules.ignore_delete
        if merges and not takes_newest:
            return SYSTEM_FIELDS
        has_deletes = any(file.delete_row_count != 0 for file in section)
        wanted = {
            SEQUENCE_NUMBER: merges and not (told_by_files and not rules.sequence_fields),
            VALUE_KIND: self.kinds or has_deletes,
        }
        return tuple(field for field in SYSTEM_FIELDS if wanted[field.name])

    def _file_rows(
        self, bucket: BucketFiles, file: DataFileMeta, fields: Sequence[DataField]
    ) -> pa.Table:
        if self.keys is None:
            return self._read(bucket, file, fields)
        # The keys first: a file without any of them is not read further.
        names = self.table.schema.trimmed_primary_keys
        mask = self.keys.mask(bucket.partition, self._read(bucket, file, self._key_fields), names)
        if not pc.any(mask).as_py():
            return evolve(pa.table({}), (), fields)
        return self._read(bucket, file, fields).filter(mask)

    def _read(
        self, bucket: BucketFiles, file: DataFileMeta, fields: Sequence[DataField]
    ) -> pa.Table:
        source = DataFileReader(self.table) if self.source is None else self.source
        return source.read(bucket.partition, bucket.bucket, file, fields)


@dataclass(frozen=True, slots=True)
class PickedSection:
    """Files of a section: `read` gives all their rows in columns, `pick` those that stay.

    `pick` looks at the columns `deciding`.
    """

    files: Sequence[DataFileMeta]
    read: ReadFields
    pick: PickRows
    deciding: Sequence[DataField]

    def rows(self, others: Sequence[DataField], *, at_once: bool = False) -> pa.Table:
        """Return the rows that stay, in the deciding columns and some others, ordered as picked.

        `at_once` reads all columns together, however large the files are.
        """
        groups = [] if at_once else column_groups(self.files, self.deciding, others)
        if not groups:
            return self._first((*self.deciding, *others))[1]
        with ThreadPoolExecutor(min(2, len(os.sched_getaffinity(0))), "columns") as pool:
            # The first one waits for none of the others, so that they may wait for it.
            first = pool.submit(self._first, self.deciding)
            rest = [pool.submit(self._taken, group, first) for group in groups]
            try:
                tables = [first.result()[1], *(future.result() for future in rest)]
            finally:
                for future in rest:
                    future.cancel()
        columns = {name: t.column(name) for t in tables for name in t.column_names}
        return pa.table(columns)

    def _first(self, fields: Sequence[DataField]) -> Picked:
        rows = self.read(fields)
        picked = self.pick(rows)
        columns = _columns(rows)
        del rows
        return picked, _take(columns, picked)

    def _taken(self, fields: Sequence[DataField], first: "Future[Picked]") -> pa.Table:
        columns = _columns(self.read(fields))
        return _take(columns, first.result()[0])


def column_groups(
    files: Sequence[DataFileMeta], deciding: Sequence[DataField], others: Sequence[DataField]
) -> list[list[DataField]]:
    """The other columns in the groups that they are read in; none if all can be read at once."""
    every = sum(file.file_size for file in files)
    least = max(GROUP_BYTES, FILE_BYTES * len(files))
    asked = sum(_weight(field.type) for field in (*deciding, *others))
    if every <= least or not others:
        return []
    size = max(1.0, asked * least / every)
    groups: list[list[DataField]] = []
    filled = size
    for field in others:
        weight = _weight(field.type)
        if filled + weight > size:
            groups.append([])
            filled = 0.0
        groups[-1].append(field)
        filled += weight
    return groups


def _weight(t: DataType) -> int:
    """About how much of a file a column takes: a guess that only the sizes of groups depend on."""
    if t.root in NESTED_ROOTS:
        return 8
    return 4 if t.root in CHARACTER_ROOTS or t.root in BINARY_ROOTS else 1


def _columns(rows: pa.Table) -> dict[str, Any]:
    return {name: rows.column(name) for name in rows.column_names}


def _take(columns: dict[str, Any], picked: Positions) -> pa.Table:
    """Return the cells of some rows; the columns are gone from `columns` one by one."""
    places = pa.array(picked)
    taken = {}
    for name in list(columns):
        # One array first: taking from chunks costs twice as much.
        taken[name] = columns.pop(name).combine_chunks().take(places)
    return pa.table(taken)
