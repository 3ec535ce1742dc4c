"""Verify the content of data files, and their statistics, against their manifest entries.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/datafile/#data-file
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.paimon.casts.evolution import evolve
from ingestd.paimon.merge.key_order import is_key_sorted
from ingestd.paimon.spec.arrow import Column, column_of, column_values
from ingestd.paimon.spec.binary_row import (
    EMPTY_ROW,
    comparable_key,
    deserialize_row,
    serialize_row,
)
from ingestd.paimon.spec.data_file import DataFileMeta, SimpleStats
from ingestd.paimon.spec.data_types import (
    BINARY_ROOTS,
    KEY_PREFIX,
    NESTED_ROOTS,
    SEQUENCE_NUMBER,
    VALUE_KIND,
    DataField,
    DataType,
)
from ingestd.paimon.spec.file_index_kinds import INDEX_KINDS
from ingestd.paimon.spec.manifest import BucketKey, ManifestEntry
from ingestd.paimon.spec.options import BucketMode, bucket_mode
from ingestd.paimon.spec.row_selection import retractions
from ingestd.paimon.table.buckets.bucket_assigner import assign_among
from ingestd.paimon.table.buckets.hash_index import key_hashes
from ingestd.paimon.table.files.data_file_indexes import read_file_indexes
from ingestd.paimon.table.files.data_files import (
    key_fields,
    live_path,
    stored_fields,
    stored_rows,
)
from ingestd.paimon.table.metadata.file_stats import loses_blanks, sure_bounds
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.partition_spec import is_same_value
from ingestd.paimon.table.verify.verify_findings import VerifyFindings
from ingestd.wording import counted

_CODE = "file-index"


@dataclass(slots=True)
class BucketContent:
    """The live files of a bucket, and the distinct key hashes of each readable file with keys."""

    entries: list[ManifestEntry] = field(default_factory=list)
    key_hashes: list[npt.NDArray[np.int32]] = field(default_factory=list)


def check_buckets(
    table: FileStoreTable, entries: Iterable[ManifestEntry], findings: VerifyFindings
) -> dict[BucketKey, BucketContent]:
    """Check all live files, and the files of each bucket against each other.

    `entries` are the ADD entries of the live files. Problems are added to `findings`. Returns the
    content of each bucket by partition and bucket.
    """
    contents: dict[BucketKey, BucketContent] = {}
    for entry in entries:
        content = contents.setdefault((entry.partition, entry.bucket), BucketContent())
        content.entries.append(entry)
        with findings.reading(entry.file.file_name):
            _FileCheck(table, entry, findings).run(content)
    for content in contents.values():
        check_levels(table, content.entries, findings)
    return contents


@dataclass(frozen=True, slots=True)
class _FileCheck:
    table: FileStoreTable
    entry: ManifestEntry
    findings: VerifyFindings

    def run(self, content: BucketContent) -> None:
        entry, file = self.entry, self.entry.file
        path = live_path(self.table, entry.partition, entry.bucket, file)
        size = self.table.io.size(path)
        if size != file.file_size:
            self._error("file-size", f"has {size} bytes, expected {file.file_size}")
        # Read with the schema that the file was written with, without evolution.
        table = self.table.at_schema(file.schema_id)
        stored = stored_rows(table, path, file)
        if stored.num_rows != file.row_count:
            self._error("row-count", f"has {counted(stored.num_rows, 'row')}, not {file.row_count}")
        keyed = bool(table.schema.primary_keys)
        fields = stored_fields(table, file)
        missing = [f.name for f in fields if f.name not in stored.column_names]
        if missing:
            self._error("columns", f"lacks the columns {', '.join(missing)}")
            return
        rows = evolve(stored, fields, fields)
        self._check_values(table, rows)
        if keyed and self._has_keys(table, rows):
            self._check_keys(table, rows, stored)
            content.key_hashes.append(np.unique(key_hashes(table, rows)))

    def _error(self, code: str, message: str) -> None:
        self.findings.error(code, self.entry.file.file_name, message)

    def _has_keys(self, table: FileStoreTable, rows: pa.Table) -> bool:
        """Return whether there are rows, and no nulls in keys, which are already reported."""
        names = table.schema.trimmed_primary_keys
        return rows.num_rows > 0 and all(rows.column(name).null_count == 0 for name in names)

    def _check_values(self, table: FileStoreTable, rows: pa.Table) -> None:
        schema, file = table.schema, self.entry.file
        fields = {field.name: field for field in stored_fields(table, file)}
        for column in schema.fields:
            if column.name not in fields:
                continue
            if not column.type.nullable and rows.column(column.name).null_count:
                self._error("null", f"column {column.name} is NOT NULL and has nulls")
        names = file.stats_columns(schema.field_names)
        if unknown := set(names) - fields.keys():
            self._error("stats", f"statistics of unknown columns {unknown}")
        else:
            known = [fields[name] for name in names]
            check_stats(file.file_name, file.value_stats, rows, known, self.findings)
        self._check_place(table, rows)
        check_file_index(table, self.entry, rows, self.findings)

    def _check_place(self, table: FileStoreTable, rows: pa.Table) -> None:
        """Check that every row belongs to the partition and bucket of its file."""
        values = table.partition_values(self.entry.partition)
        moves = bucket_mode(table.schema) is BucketMode.KEY_DYNAMIC
        for name, value in zip(table.schema.partition_keys, values, strict=True):
            if name not in rows.column_names:
                continue
            stored_values = column_values(pc.unique(rows.column(name)))
            if moves:
                # A delete takes back all columns outside the key; readers take this one from the
                # manifest.
                stored_values = [stored for stored in stored_values if stored is not None]
            if loses_blanks(self.entry.file.file_name, table.schema.field(name).type):
                value = value and str(value).rstrip(" ")
            if not all(is_same_value(stored, value) for stored in stored_values):
                self._error("partition", f"has rows of another partition than {name}={value}")
        fixed = bucket_mode(table.schema) in (BucketMode.HASH_FIXED, BucketMode.POSTPONE)
        if fixed and self.entry.total_buckets > 0:
            buckets = set(assign_among(table, rows, self.entry.total_buckets).tolist())
            for bucket in sorted(buckets - {self.entry.bucket}):
                self._error("bucket", f"has rows of bucket {bucket} in {self.entry.bucket}")

    def _check_keys(self, table: FileStoreTable, rows: pa.Table, stored: pa.Table) -> None:
        schema, file = table.schema, self.entry.file
        names = schema.trimmed_primary_keys
        # Rows of postponed buckets are in arrival order.
        if self.entry.bucket >= 0 and not is_key_sorted(rows, names):
            self._error("key-order", "keys are not in ascending order, each once")
        types = [schema.field(name).type for name in names]
        keys = rows.select(names)
        for what, expected, position in (
            ("min-key", file.min_key, 0),
            ("max-key", file.max_key, rows.num_rows - 1),
        ):
            cells = [column_values(column)[0] for column in keys.slice(position, 1).columns]
            if serialize_row(types, cells) != expected:
                self._error(what, f"is not that of row {position}")
        check_stats(file.file_name, file.key_stats, keys, schema.select(names), self.findings)
        self._check_system_columns(rows)
        copies = [f for f in key_fields(schema) if f.name in stored.column_names]
        for copy, column in zip(copies, evolve(stored, copies, copies).columns, strict=True):
            if not _is_copy(column, rows.column(copy.name.removeprefix(KEY_PREFIX))):
                self._error("key-value", f"{copy.name} differs from the column it is a copy of")

    def _check_system_columns(self, rows: pa.Table) -> None:
        file = self.entry.file
        numbers = rows.column(SEQUENCE_NUMBER).to_numpy()
        low, high = int(numbers.min()), int(numbers.max())
        if (low, high) != (file.min_sequence_number, file.max_sequence_number):
            self._error(
                "sequence",
                f"has the sequence numbers {low}..{high}, expected "
                f"{file.min_sequence_number}..{file.max_sequence_number}",
            )
        kinds = rows.column(VALUE_KIND).to_numpy()
        deletes = int(retractions(kinds).sum())
        if file.delete_row_count is not None and deletes != file.delete_row_count:
            self._error("delete-row-count", f"has {deletes}, not {file.delete_row_count}")


def _is_copy(copy: Column, column: Column) -> bool:
    """Return whether two columns of a key, without nulls, have the same values; NaN equals NaN."""
    left, right = cast("Any", copy), cast("Any", column)
    if left.equals(right):
        return True
    floats = left.type == right.type and pa.types.is_floating(left.type)
    return bool(floats and np.array_equal(left.to_numpy(), right.to_numpy(), equal_nan=True))


def all_hashes(content: BucketContent) -> npt.NDArray[np.int32]:
    """Return the distinct hashes of all keys of a bucket, sorted."""
    parts: Sequence[npt.NDArray[np.int32]] = content.key_hashes
    return np.unique(np.concatenate(parts)) if parts else np.empty(0, np.int32)


def check_file_index(
    table: FileStoreTable, entry: ManifestEntry, rows: pa.Table, findings: VerifyFindings
) -> None:
    """Check the file indexes of a data file against its rows; add problems to `findings`.

    `table` has the schema of the file.
    """
    name = entry.file.file_name
    with findings.reading(name, _CODE):
        indexes = read_file_indexes(table, entry.partition, entry.bucket, entry.file) or {}
        fields = {field.name: field for field in table.schema.fields}
        for column, kinds in indexes.items():
            if column not in fields:
                # Indexes of single keys of a map are named map[key].
                if column.partition("[")[0] not in fields:
                    findings.error(_CODE, name, f"has an index of column {column}, which is none")
                continue
            t, values = fields[column].type, rows.column(column)
            for kind, data in kinds.items():
                if kind in INDEX_KINDS and data is not None:
                    index = INDEX_KINDS[kind].decode(data, t, name)
                    if index is None or loses_blanks(name, t) or index.matches(values):
                        continue
                    message = f"the {kind} index of {column} does not match its rows"
                    findings.error(_CODE, name, message)


def check_levels(
    table: FileStoreTable, entries: Sequence[ManifestEntry], findings: VerifyFindings
) -> None:
    """Check the files of a bucket, at least one, against each other; add problems to `findings`.

    All files must have the same bucket count. In a primary-key table, files of the same level above
    0 must have disjoint key ranges. Level-0 files that follow each other by smallest sequence
    number and have overlapping key ranges should have disjoint ranges of sequence numbers (else a
    warning). Of postponed files only the bucket count is checked.
    """
    totals = {entry.total_buckets for entry in entries}
    if len(totals) > 1:
        names = ", ".join(entry.file.file_name for entry in entries)
        findings.error("total-buckets", names, f"the files disagree: {sorted(totals)}")
    if not table.schema.primary_keys or entries[0].bucket < 0:
        # Files of the postponed bucket are in no LSM tree yet.
        return
    types = [field.type for field in table.schema.select(table.schema.trimmed_primary_keys)]
    levels: dict[int, list[DataFileMeta]] = {}
    for entry in entries:
        levels.setdefault(entry.file.level, []).append(entry.file)
    for level, files in sorted(levels.items()):
        with findings.reading(files[0].file_name, "key-range"):
            if level == 0:
                _check_sequences(types, files, findings)
            else:
                _check_ranges(types, level, files, findings)


def _check_ranges(
    types: Sequence[DataType], level: int, files: Sequence[DataFileMeta], findings: VerifyFindings
) -> None:
    ordered = sorted(files, key=lambda file: comparable_key(types, file.min_key))
    for earlier, two in pairwise(ordered):
        if comparable_key(types, earlier.max_key) >= comparable_key(types, two.min_key):
            findings.error(
                "level-overlap", two.file_name, f"overlaps {earlier.file_name} on level {level}"
            )


def _check_sequences(
    types: Sequence[DataType], files: Sequence[DataFileMeta], findings: VerifyFindings
) -> None:
    """Check that files with overlapping key ranges have disjoint ranges of sequence numbers.

    Each file is compared with the next one by smallest sequence number only.
    """
    ordered = sorted(files, key=lambda file: (file.min_sequence_number, file.file_name))
    for earlier, two in pairwise(ordered):
        if earlier.max_sequence_number < two.min_sequence_number:
            continue
        low, high = comparable_key(types, earlier.min_key), comparable_key(types, earlier.max_key)
        if comparable_key(types, two.max_key) < low or comparable_key(types, two.min_key) > high:
            continue
        findings.warning(
            "sequence-overlap",
            two.file_name,
            f"shares sequence numbers and keys with {earlier.file_name}",
        )


_UNBOUNDED = BINARY_ROOTS | NESTED_ROOTS | {"VARIANT", "BLOB"}


def check_partition_stats(
    table: FileStoreTable,
    where: str,
    stats: SimpleStats,
    partitions: Sequence[bytes],
    findings: VerifyFindings,
) -> None:
    """Check the partitions of a manifest's entries against the statistics of the manifest.

    `partitions` has the serialized partition of each entry; `where` names the manifest in findings.
    Problems are added to `findings`.
    """
    fields = table.schema.select(table.schema.partition_keys)
    if not fields:
        return
    rows = [table.partition_values(partition) for partition in partitions]
    columns = {f.name: column_of([row[i] for row in rows], f.type) for i, f in enumerate(fields)}
    check_stats(where, stats, pa.table(columns), fields, findings)


def check_stats(
    where: str,
    stats: SimpleStats,
    rows: pa.Table,
    fields: Sequence[DataField],
    findings: VerifyFindings,
) -> None:
    """Check null counts and bounds of the columns `fields` against the values of rows.

    `rows` are all rows of a file, which `where` names in findings. Empty statistics are not
    checked. Problems are added to `findings`.
    """
    if stats.min_values == EMPTY_ROW and not stats.null_counts:
        return
    types = [field.type.as_nullable() for field in fields]
    if len(stats.null_counts) != len(fields):
        findings.error(
            "stats",
            where,
            f"statistics of {counted(len(stats.null_counts), 'column')}, not {len(fields)}",
        )
        return
    with findings.reading(where, "stats"):
        least = deserialize_row(types, stats.min_values)
        most = deserialize_row(types, stats.max_values)
        bounds = zip(fields, least, most, stats.null_counts, strict=True)
        for field, low, high, nulls in bounds:
            column = rows.column(field.name)
            if nulls is not None and nulls != column.null_count:
                findings.error(
                    "stats",
                    where,
                    f"{field.name}: has {column.null_count} nulls, expected {nulls}",
                )
            low, high = sure_bounds(where, field.type, low, high)
            for problem in _outside(column, field, low, high):
                findings.error("stats", where, f"{field.name}: {problem}")


def _outside(column: Column, field: DataField, low: object, high: object) -> list[str]:
    """Return a message for each bound that a value of the column exceeds; None is no bound."""
    if field.type.root in _UNBOUNDED or column.null_count == len(column):
        return []
    smallest, largest = _extremes(column)
    problems = []
    if low is not None and _is_above(low, smallest):
        problems.append(f"{smallest!r} is below the bound {low!r}")
    if high is not None and _is_above(largest, high):
        problems.append(f"{largest!r} is above the bound {high!r}")
    return problems


def _extremes(column: Column) -> list[Any]:
    """Return the smallest and the largest value; NaN is greater than every other number."""
    values: Any = column
    extremes: Any = pc.min_max(values)
    smallest, largest = column_values(pa.array([extremes["min"], extremes["max"]], column.type))
    has_nan = isinstance(largest, float) and pc.any(pc.is_nan(values)).as_py()
    return [smallest, math.nan if has_nan else largest]


def _is_above(value: object, bound: object) -> bool:
    if isinstance(value, float) and isinstance(bound, float) and math.isnan(value):
        return not math.isnan(bound)
    return bool(value > bound)  # type: ignore[operator]  # values of one column
