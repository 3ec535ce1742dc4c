"""The rows of one bucket as they are now: its files merged, deletions dropped.

Files of a primary-key table whose key ranges overlap make up a
section; sections are independent of each other, so one section is what memory has to hold.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.paimon.casts.evolution import evolve
from ingestd.paimon.merge.base import Positions
from ingestd.paimon.merge.merged_rows import LEVEL
from ingestd.paimon.merge.merging import merge_rows, picked_rows, picks_rows
from ingestd.paimon.spec.binary_row import deserialize_row
from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.spec.data_types import SEQUENCE_NUMBER, VALUE_KIND, DataField, DataType
from ingestd.paimon.spec.manifest import ManifestEntry
from ingestd.paimon.table.files.data_files import RETRACTS, SYSTEM_FIELDS, DataFileReader
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.read.key_filter import KeyFilter
from ingestd.paimon.table.read.picked_section import PickedSection

Key = tuple[object, ...]


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
    """A serialized key as a tuple that compares as keys do: strings by their bytes."""
    return tuple(map(comparable_value, deserialize_row(types, key)))


def comparable_value(value: object) -> object:
    """A value of a key column as something that compares as keys do."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, float):
        return math.isnan(value), 0.0 if math.isnan(value) else value
    return value


def sections(types: Sequence[DataType], files: Sequence[DataFileMeta]) -> list[list[DataFileMeta]]:
    """Files grouped so that keys of one group are in no other, groups in key order.

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
    """Whether of two files that may share a key the later one has the newer rows throughout.

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
        """The bucket's rows in parts that fit into memory one by one."""
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
        """The key columns, those asked for, and what merging them takes."""
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
        """The system columns that the merge has to see: each costs decoding and copying."""
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
