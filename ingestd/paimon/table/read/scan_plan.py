"""Plan which data files a read opens, in which units, and count the skipped files by reason.

A file is skipped only if it cannot contain a matching row. In a primary-key table a file may
contain a newer row of a key, so conditions on columns outside the key apply to whole units only. If
files are merged by key, a unit consists of files whose keys are in no other unit.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.arrow import column_of
from ingestd.paimon.spec.binary_row import Key, comparable_key
from ingestd.paimon.spec.bucket import takes_bucket_keys
from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.manifest import ManifestEntry, by_bucket
from ingestd.paimon.spec.options import BucketMode, bucket_mode
from ingestd.paimon.spec.predicate import Comparison, IsIn, Predicate, Value, conjuncts, only_on
from ingestd.paimon.spec.predicate_stats import may_match, stats_test
from ingestd.paimon.table.buckets.bucket_assigner import assign_among
from ingestd.paimon.table.files.data_file_indexes import indexes_may_match, read_file_indexes
from ingestd.paimon.table.files.row_tracking import row_groups
from ingestd.paimon.table.metadata.file_stats import (
    key_stats,
    loses_blanks,
    partition_stats,
    value_stats,
)
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable

NOT_COMPACTED = "level 0, not visible before compaction"
OTHER_PARTITION = "partition"
OTHER_BUCKET = "bucket"
POSTPONED = "postponed, not in a bucket yet"
BY_KEYS = "key bounds"
BY_VALUES = "column statistics"
BY_INDEX = "file index"
_VERBATIM_ENGINES = frozenset({"deduplicate", "first-row"})
"""Merge engines whose result is one of the merged rows, unchanged."""
_MAX_KEYS = 1000
"""Maximum number of combinations of bucket key values for which buckets are computed."""
_FIXED_MODES = frozenset({BucketMode.HASH_FIXED, BucketMode.POSTPONE})
"""Bucket modes in which the hash of a key determines its bucket."""


@dataclass(frozen=True, slots=True)
class BucketFiles:
    """Data files of one bucket that are planned or read together; `partition` is serialized."""

    partition: bytes
    bucket: int
    files: tuple[DataFileMeta, ...]


@dataclass(frozen=True, slots=True)
class ReadUnit:
    """Files of one bucket that are read together.

    With `verbatim`, each row of the result is an unchanged row of one of the files, unaffected by
    other rows of its key; parts of files without a matching row are then not read.
    """

    files: BucketFiles
    verbatim: bool


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """The plan of a read: its units in order, and the number of skipped files by reason.

    `manifests_skipped` is the number of manifests that were not opened.
    """

    units: tuple[ReadUnit, ...]
    files_skipped: Mapping[str, int] = field(default_factory=dict)
    manifests_skipped: int = 0

    @property
    def files_read(self) -> int:
        """The number of data files that the read opens."""
        return sum(len(unit.files.files) for unit in self.units)


def hides_level_0(table: FileStoreTable) -> bool:
    """Return whether batch reads leave out level-0 files, and need not merge the other files.

    With deletion vectors, a compaction marks the older row of each key as deleted; in first-row
    tables, it drops rows whose key has an older row.
    """
    options = table.schema.options
    vectors = honoured.DELETION_VECTORS.of(options)
    merges = vectors and honoured.DELETION_VECTORS_MERGE.of(options)
    first_row = honoured.MERGE_ENGINE.of(options) == "first-row"
    return bool(table.schema.primary_keys) and (first_row or (vectors and not merges))


def with_level_0(table: FileStoreTable) -> FileStoreTable:
    """Return a handle of the same table whose batch reads see the newest row of each key.

    With deletion vectors, they then merge the files of level 0, as `deletion-vectors.merge-on-read`
    requests it. First-row tables still leave them out: the older row of a key is the valid one.
    """
    schema = table.schema
    if not honoured.DELETION_VECTORS.of(schema.options):
        return table
    options = {**schema.options, honoured.DELETION_VECTORS_MERGE.name: "true"}
    return table.with_schema(replace(schema, options=options))


def plan_read(
    table: FileStoreTable, entries: Iterable[ManifestEntry], predicate: Predicate | None = None
) -> ReadPlan:
    """Plan a batch read of live files for the rows that match a predicate (None: all rows).

    Files that batch readers do not see are left out: postponed files, and those of level 0 if
    `hides_level_0`. Raises FormatError if a file index is missing or damaged.
    """
    return _Planner(table, predicate, live=True).plan(entries)


def plan_changed(
    table: FileStoreTable, entries: Iterable[ManifestEntry], predicate: Predicate | None
) -> ReadPlan:
    """Plan a read of files that snapshots added, for rows that match a predicate (None: all rows).

    Unlike in a batch read, files of level 0 are included, and files with overlapping key ranges are
    merged, in every table with a primary key. Raises FormatError if a file index is missing or
    damaged.
    """
    return _Planner(table, predicate, live=False).plan(entries)


class _Planner:
    def __init__(self, table: FileStoreTable, predicate: Predicate | None, *, live: bool) -> None:
        self._table = table
        self._all = predicate
        schema = table.schema
        self._on_partition = only_on(predicate, frozenset(schema.partition_keys))
        keys = frozenset((*schema.partition_keys, *schema.primary_keys))
        self._on_keys = only_on(predicate, keys) if schema.primary_keys else None
        self._buckets = BucketPruner.of(table, predicate)
        self._hidden = live and hides_level_0(table)
        self._merged = bool(schema.primary_keys) and not self._hidden
        self._partitions: dict[bytes, bool] = {}
        self._skipped: Counter[str] = Counter()

    def plan(self, entries: Iterable[ManifestEntry]) -> ReadPlan:
        kept = [entry for entry in entries if self._keeps(entry)]
        units = [unit for bucket in group_by_bucket(kept) for unit in self._units(bucket)]
        units = [kept_unit for unit in units if (kept_unit := self._pruned(unit)) is not None]
        return ReadPlan(tuple(units), dict(self._skipped))

    def _keeps(self, entry: ManifestEntry) -> bool:
        reason = self._reason(entry)
        if reason is not None:
            self._skipped[reason] += 1
        return reason is None

    def _reason(self, entry: ManifestEntry) -> str | None:
        if not self._in_partition(entry.partition):
            return OTHER_PARTITION
        if entry.bucket < 0:
            return POSTPONED
        if self._buckets is not None and not self._buckets.may_contain(entry):
            return OTHER_BUCKET
        if self._hidden and entry.file.level == 0:
            return NOT_COMPACTED
        if self._on_keys is not None:
            known = {
                **partition_stats(self._table, entry.partition),
                **key_stats(self._table, entry.file),
            }
            if not may_match(self._on_keys, stats_test(known)):
                return BY_KEYS
        return None

    def _in_partition(self, partition: bytes) -> bool:
        if self._on_partition is None:
            return True
        if partition not in self._partitions:
            test = stats_test(partition_stats(self._table, partition))
            self._partitions[partition] = may_match(self._on_partition, test)
        return self._partitions[partition]

    def _units(self, bucket: BucketFiles) -> Iterator[ReadUnit]:
        groups: Sequence[Sequence[DataFileMeta]]
        if self._merged:
            types = [field.type for field in self._table.schema.key_fields]
            groups = sections(types, bucket.files)
        else:
            groups = row_groups(self._table, bucket.files)
        for files in groups:
            section = BucketFiles(bucket.partition, bucket.bucket, tuple(files))
            yield ReadUnit(section, self._is_verbatim(files))

    def _is_verbatim(self, files: Sequence[DataFileMeta]) -> bool:
        """Return whether each row of the result is an unchanged row of the files.

        This is false for several merged files: if the newer row of a key were skipped, the older
        row would be returned. It is false as well for files with columns of the same rows.
        """
        if not self._merged:
            return len(files) == 1
        if len(files) > 1:
            return False
        engine = honoured.MERGE_ENGINE.of(self._table.schema.options)
        return engine in _VERBATIM_ENGINES or files[0].level > 0

    def _pruned(self, unit: ReadUnit) -> ReadUnit | None:
        if self._all is None:
            return unit
        engine = honoured.MERGE_ENGINE.of(self._table.schema.options)
        picks_rows = self._merged and engine in _VERBATIM_ENGINES
        if not unit.verbatim and not picks_rows:
            return unit
        tests: tuple[tuple[str, Callable[[BucketFiles, DataFileMeta], bool]], ...] = (
            (BY_VALUES, self._stats_may_match),
            (BY_INDEX, self._indexes_may_match),
        )
        for reason, test in tests:
            if not any(test(unit.files, file) for file in unit.files.files):
                self._skipped[reason] += len(unit.files.files)
                return None
        return unit

    def _stats_may_match(self, bucket: BucketFiles, file: DataFileMeta) -> bool:
        if self._all is None:
            return True
        known = value_stats(self._table, file)
        known |= partition_stats(self._table, bucket.partition)
        return may_match(self._all, stats_test(known))

    def _indexes_may_match(self, bucket: BucketFiles, file: DataFileMeta) -> bool:
        if self._all is None or not honoured.INDEX_READ.of(self._table.schema.options):
            return True
        indexes = read_file_indexes(self._table, bucket.partition, bucket.bucket, file)
        return indexes is None or indexes_may_match(self._table, file, indexes, self._all)


def group_by_bucket(entries: Iterable[ManifestEntry]) -> list[BucketFiles]:
    """Group live files by partition and bucket, in the order in which buckets first appear."""
    return [
        BucketFiles(partition, bucket, tuple(entry.file for entry in own))
        for (partition, bucket), own in by_bucket(entries).items()
    ]


def sections(types: Sequence[DataType], files: Sequence[DataFileMeta]) -> list[list[DataFileMeta]]:
    """Group files by overlapping key ranges; return the groups in key order.

    `types` are the types of the trimmed primary key. The files of a group are ordered from the
    oldest to the newest, by largest sequence number.
    """
    ranges = [
        (comparable_key(types, file.min_key), comparable_key(types, file.max_key), age)
        for age, file in sorted(enumerate(files), key=lambda pair: pair[1].max_sequence_number)
    ]
    ages = {age: position for position, (_, _, age) in enumerate(ranges)}
    groups: list[list[int]] = []
    reached: Key | None = None
    for low, high, age in sorted(ranges, key=lambda item: item[0]):
        if reached is None or low > reached:
            groups.append([])
        groups[-1].append(age)
        reached = high if reached is None else max(reached, high)
    return [[files[age] for age in sorted(group, key=ages.__getitem__)] for group in groups]


@dataclass(slots=True)
class BucketPruner:
    """Skips files by bucket: only the buckets of the bucket key values `keys` may contain a match.

    The buckets are computed for each bucket count that occurs in the files.
    """

    table: FileStoreTable
    keys: pa.Table
    _known: dict[int, frozenset[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, table: FileStoreTable, predicate: Predicate | None) -> "BucketPruner | None":
        """Return the pruner for a predicate, or None if the predicate cannot select buckets.

        It can if it lists the values of all bucket keys, at most 1000 combinations and no
        floating-point values, and if the bucket of a row depends only on the hash of its bucket
        key.
        """
        if bucket_mode(table.schema) not in _FIXED_MODES:
            return None
        names = table.options.bucket_keys
        types = [table.schema.field(name).type for name in names]
        if not takes_bucket_keys(table.options.bucket_function, types):
            return None
        columns = [_allowed(predicate, name) for name in names]
        known = [values for values in columns if values is not None]
        if len(known) < len(names) or not known:
            return None
        rows = list(itertools.islice(itertools.product(*known), _MAX_KEYS + 1))
        if len(rows) > _MAX_KEYS:
            return None
        fields = table.schema.select(names)
        arrays = {
            key_field.name: column_of([row[i] for row in rows], key_field.type)
            for i, key_field in enumerate(fields)
        }
        return cls(table, pa.table(arrays))

    def may_contain(self, entry: ManifestEntry) -> bool:
        """Return whether a file, by its bucket, may contain rows that match the predicate."""
        total, types = entry.total_buckets, self.table.schema.select(self.keys.column_names)
        if total <= 0 or any(loses_blanks(entry.file.file_name, key.type) for key in types):
            return True
        if total not in self._known:
            buckets = assign_among(self.table, self.keys, total)
            self._known[total] = frozenset(buckets.tolist())
        return entry.bucket in self._known[total]


def _allowed(predicate: Predicate | None, column: str) -> Sequence[Value] | None:
    """Return the values that a predicate allows for a column, or None if it does not list them."""
    for conjunct in conjuncts(predicate):
        values: Sequence[Value] = ()
        if isinstance(conjunct, Comparison) and conjunct.operator == "=":
            values = (conjunct.value,)
        elif isinstance(conjunct, IsIn):
            values = conjunct.values
        if values and conjunct.column == column and not any(isinstance(v, float) for v in values):  # type: ignore[union-attr]  # only leaves give values
            return values
    return None
