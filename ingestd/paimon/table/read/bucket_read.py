"""Read the rows of a bucket: merge its files and drop deletions.

Files of a primary-key table with overlapping key ranges form a section. Sections are independent of
each other, so only one section is in memory at a time.
"""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.paimon.casts.evolution import evolve
from ingestd.paimon.merge.base import merge_rows, picked_rows, picks_rows
from ingestd.paimon.merge.key_order import Positions
from ingestd.paimon.merge.merged_rows import LEVEL
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
from ingestd.paimon.spec.row_selection import retractions
from ingestd.paimon.table.files.data_files import SYSTEM_FIELDS, DataFileReader
from ingestd.paimon.table.files.row_tracking import column_sources, joined, row_groups
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.read.key_filter import KeyFilter
from ingestd.paimon.table.read.scan_plan import BucketFiles, sections

GROUP_BYTES = 32 * 1024 * 1024
"""Approximate bytes of the columns that are read together, as stored in the files of a section."""
FILE_BYTES = 1024 * 1024
"""Minimum bytes of a column group per file; for less, opening the file again is too costly."""
Picked = tuple[Positions, pa.Table]


def is_ordered_by_age(files: Sequence[DataFileMeta]) -> bool:
    """Return whether the rows of each key are in order of age if the files are read in this order.

    That is, of any two files that may have a common key, the later has only newer rows. Files of
    the same level above 0 have no common key. `files` are ordered by their largest sequence number,
    ascending.
    """
    reached: dict[int, int] = {}
    for file in files:
        run = file.level if file.level > 0 else -1 - len(reached)
        others = (age for other, age in reached.items() if other != run)
        if any(age >= file.min_sequence_number for age in others):
            return False
        reached[run] = file.max_sequence_number
    return True


class RowSource(Protocol):
    """A source of rows of data files, such as `DataFileReader`."""

    def read(
        self, partition: bytes, bucket: int, file: DataFileMeta, fields: Sequence[DataField]
    ) -> pa.Table:
        """Return the rows that the source has of a data file, in the columns `fields`.

        `partition` is the serialized row. Raises FormatError for a file that is missing or damaged.
        """
        ...


@dataclass(frozen=True, slots=True)
class BucketReader:
    """A reader of the columns `fields` of buckets.

    `keys` restricts the rows to some keys (None: all rows). `source` reads the data files (None:
    all rows, without applying deletion vectors). With `kinds`, the rows of a primary-key table
    include deletions, and have the column `_VALUE_KIND`.
    """

    table: FileStoreTable
    fields: tuple[DataField, ...]
    keys: KeyFilter | None = None
    source: RowSource | None = None
    kinds: bool = False

    def read(self, bucket: BucketFiles) -> Iterator[pa.Table]:
        """Yield the rows of a bucket in parts: one per section, or without a primary key, per file.

        A section is a group of files with overlapping key ranges, whose rows are merged; sections
        without rows are left out, and deleted rows unless `kinds` is set. Raises FormatError for a
        data file that is missing or damaged.
        """
        if not self.table.schema.primary_keys:
            for group in row_groups(self.table, bucket.files):
                yield self._joined(bucket, group)
            return
        key_types = [field.type for field in self.key_fields]
        names = [*(field.name for field in self.fields), *([VALUE_KIND] if self.kinds else [])]
        for files in sections(key_types, bucket.files):
            rows = self._merged(replace(bucket, files=tuple(files)))
            if rows.num_rows:
                yield rows.select(names)

    @property
    def key_fields(self) -> tuple[DataField, ...]:
        """The fields of the trimmed primary key."""
        return self.table.schema.select(self.table.schema.trimmed_primary_keys)

    @property
    def merge_fields(self) -> tuple[DataField, ...]:
        """The key columns, the requested columns, and others that merging requires, each once."""
        requested = (*self.key_fields, *self.fields)
        beside = self.table.merge_rules.columns_beside([field.name for field in requested])
        return tuple(dict.fromkeys((*requested, *self.table.schema.select(beside))))

    def _joined(self, bucket: BucketFiles, group: Sequence[DataFileMeta]) -> pa.Table:
        """Return the rows of a group of files that have columns of the same rows."""
        if len(group) == 1:
            return self._read(bucket, group[0], self.fields)
        parts = [
            pa.concat_tables([self._read(bucket, file, fields) for file in files])
            for files, fields in column_sources(self.table, group, self.fields)
        ]
        return joined(parts, self.fields)

    def _merged(self, section: BucketFiles) -> pa.Table:
        """Return the merged rows of a section, without deletions unless `kinds` is set.

        Keys must be unique within each file.
        """
        files, rules = section.files, self.table.merge_rules
        if len(files) > 1 and picks_rows(rules):
            return PickedSection(self, section).rows()
        oldest_first = is_ordered_by_age(files)
        fields = [*self.merge_fields, *self.system_fields(files, oldest_first=oldest_first)]
        parts = [self._file_rows(section, file, fields) for file in files]
        rows = pa.concat_tables(parts)
        if len(files) > 1:
            rows = rows.combine_chunks()
            if rules.newest_level_only:
                levels = [
                    np.full(file_rows.num_rows, file.level, np.int32)
                    for file_rows, file in zip(parts, files, strict=True)
                ]
                rows = rows.append_column(LEVEL, pa.array(np.concatenate(levels)))
            names = self.table.schema.trimmed_primary_keys
            rows = merge_rows(rows, names, rules, oldest_first=oldest_first)
        if self.drops_deletions(files):
            kinds = rows.column(VALUE_KIND).to_numpy()
            rows = rows.filter(pa.array(~retractions(kinds)))
        return rows

    def drops_deletions(self, files: Sequence[DataFileMeta]) -> bool:
        """Return whether deletions must be removed: files may have some, and `kinds` is false."""
        return not self.kinds and any(file.delete_row_count != 0 for file in files)

    def system_fields(
        self, files: Sequence[DataFileMeta], *, oldest_first: bool
    ) -> tuple[DataField, ...]:
        """Return the system columns that are required to merge the files.

        Unnecessary columns are left out, because each column is decoded and copied. `oldest_first`
        is whether the rows of each key are in order of age if the files are read in order.
        """
        rules = self.table.merge_rules
        merges = len(files) > 1
        takes_newest = rules.engine == "deduplicate" and not rules.ignore_delete
        if merges and not takes_newest:
            return SYSTEM_FIELDS
        has_deletes = any(file.delete_row_count != 0 for file in files)
        wanted = {
            SEQUENCE_NUMBER: merges and not (oldest_first and not rules.sequence_fields),
            VALUE_KIND: self.kinds or has_deletes,
        }
        return tuple(field for field in SYSTEM_FIELDS if wanted[field.name])

    def rows_of(self, section: BucketFiles, fields: Sequence[DataField]) -> pa.Table:
        """Return the unmerged rows of all files of a section, in the order of the files.

        Raises FormatError for a data file that is missing or damaged.
        """
        return pa.concat_tables([self._file_rows(section, file, fields) for file in section.files])

    def _file_rows(
        self, bucket: BucketFiles, file: DataFileMeta, fields: Sequence[DataField]
    ) -> pa.Table:
        if self.keys is None:
            return self._read(bucket, file, fields)
        # The key columns first: other columns of a file without the keys are not read.
        names = self.table.schema.trimmed_primary_keys
        mask = self.keys.mask(bucket.partition, self._read(bucket, file, self.key_fields), names)
        if not pc.any(mask).as_py():
            return evolve(pa.table({}), (), fields)
        return self._read(bucket, file, fields).filter(mask)

    def _read(
        self, bucket: BucketFiles, file: DataFileMeta, fields: Sequence[DataField]
    ) -> pa.Table:
        source = DataFileReader(self.table) if self.source is None else self.source
        return source.read(bucket.partition, bucket.bucket, file, fields)


class PickedSection:
    """Merges a section in two passes, for merge engines that return rows of the files unchanged.

    The first pass reads the columns that determine which rows are in the result (`deciding`), the
    second pass the other columns (`others`).

    Columns of a large section are read in groups, and the cells of the picked rows are selected as
    soon as a group is read. Memory holds the result and two groups, regardless of the size of the
    section.
    """

    def __init__(self, reader: BucketReader, section: BucketFiles) -> None:
        self._reader = reader
        self._section = section
        self.files = section.files
        self._oldest_first = is_ordered_by_age(section.files)
        schema, rules = reader.table.schema, reader.table.merge_rules
        system = reader.system_fields(section.files, oldest_first=self._oldest_first)
        # No file has the partition columns: a group of them would open the files for nothing.
        partition = [field for field in reader.fields if field.name in schema.partition_keys]
        sequence = schema.select(rules.sequence_fields)
        fields = (*reader.key_fields, *sequence, *system, *partition)
        self.deciding: tuple[DataField, ...] = tuple(dict.fromkeys(fields))
        self.others = [field for field in reader.fields if field not in self.deciding]
        # A key filter keeps few rows of a file, and reads the key columns with each group.
        self.at_once = reader.keys is not None

    def read(self, fields: Sequence[DataField]) -> pa.Table:
        """Return the columns `fields` of the unmerged rows of all files, file by file.

        Raises FormatError for a data file that is missing or damaged.
        """
        return self._reader.rows_of(self._section, fields)

    def pick(self, rows: pa.Table) -> Positions:
        """Return the positions of the rows that are in the result, as indices of `rows`.

        `rows` are the unmerged rows of all files with the columns of the first pass.
        """
        table = self._reader.table
        names, rules = table.schema.trimmed_primary_keys, table.merge_rules
        picked = picked_rows(rows, names, rules, oldest_first=self._oldest_first)
        if not self._reader.drops_deletions(self.files):
            return picked
        kinds = rows.column(VALUE_KIND).to_numpy()[picked]
        return picked[~retractions(kinds)]

    def rows(self) -> pa.Table:
        """Return the picked rows with the columns of both passes.

        Raises FormatError for a data file that is missing or damaged.
        """
        groups = [] if self.at_once else column_groups(self.files, self.deciding, self.others)
        if not groups:
            return self._first((*self.deciding, *self.others))[1]
        with ThreadPoolExecutor(min(2, len(os.sched_getaffinity(0))), "columns") as pool:
            # `first` waits for no other task, so the others can wait for it without a deadlock.
            first = pool.submit(self._first, self.deciding)
            pending = [pool.submit(self._taken, group, first) for group in groups]
            try:
                tables = [first.result()[1], *(future.result() for future in pending)]
            finally:
                for future in pending:
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
    """Return the groups of columns to read in the second pass, or [] if one pass suffices.

    `deciding` are the columns of the first pass, `others` the columns to divide into groups. A
    group has about `GROUP_BYTES` in the files, or `FILE_BYTES` per file if that is more. One pass
    suffices if the files are not larger than one group.
    """
    total_bytes = sum(file.file_size for file in files)
    group_bytes = max(GROUP_BYTES, FILE_BYTES * len(files))
    weights = sum(_weight(field.type) for field in (*deciding, *others))
    if total_bytes <= group_bytes or not others:
        return []
    size = max(1.0, weights * group_bytes / total_bytes)
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
    """Estimate the share of a column in the size of a file, to form groups of similar size."""
    if t.root in NESTED_ROOTS:
        return 8
    return 4 if t.root in CHARACTER_ROOTS or t.root in BINARY_ROOTS else 1


def _columns(rows: pa.Table) -> dict[str, Any]:
    return {name: rows.column(name) for name in rows.column_names}


def _take(columns: dict[str, Any], picked: Positions) -> pa.Table:
    """Return the picked rows; each column is removed from `columns` to free its memory."""
    indices = pa.array(picked)
    taken = {}
    for name in list(columns):
        # Combine chunks first: taking from chunks costs twice as much.
        taken[name] = columns.pop(name).combine_chunks().take(indices)
    return pa.table(taken)
