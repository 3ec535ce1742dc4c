"""Statistics of data files under the columns of the newest schema, for skipping files.

A column is found by its field id. What a file does not have is null in all its rows; statistics
of a type whose values compare otherwise are not used.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/manifest/#simplestats
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ingestd.paimon.format.row_groups import GroupFilter, RowProbe
from ingestd.paimon.spec.arrow import to_arrow_type
from ingestd.paimon.spec.binary_row import deserialize_row
from ingestd.paimon.spec.data_file import DataFileMeta, SimpleStats
from ingestd.paimon.spec.data_types import CHARACTER_ROOTS, INTEGER_ROOTS, DataField, DataType
from ingestd.paimon.spec.predicate import Predicate, columns_of
from ingestd.paimon.spec.predicate_stats import ColumnStats, may_match, stats_test
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable

_WIDTH = {"TINYINT": 0, "SMALLINT": 1, "INT": 2, "BIGINT": 3}


@dataclass(frozen=True, slots=True)
class KeyTest:
    """Which keys are wanted. `between`: whether one whose first column lies between two values,
    bounds included. `among`: whether one of some keys, ordered and in the table's key columns."""

    between: Callable[[object, object], bool]
    among: Callable[[pa.Table], bool]


def partition_stats(table: FileStoreTable, partition: bytes) -> dict[str, ColumnStats]:
    """Return the partition columns of all rows of a partition: one value, known exactly."""
    values = deserialize_row(table.partition_types, partition)
    return {
        name: ColumnStats(value, value, int(value is None), 1)
        for name, value in zip(table.schema.partition_keys, values, strict=True)
    }


def manifest_partition_stats(table: FileStoreTable, stats: SimpleStats) -> dict[str, ColumnStats]:
    """Return the partition columns of all files of a manifest; the number of files is not known."""
    types, names = table.partition_types, table.schema.partition_keys
    return dict(_columns(names, types, stats, None))


def key_stats(table: FileStoreTable, file: DataFileMeta) -> dict[str, ColumnStats]:
    """Return the key columns of a data file of a primary-key table."""
    fields = table.schema.key_fields
    types = [field.type for field in fields]
    names = [field.name for field in fields]
    found = dict(_columns(names, types, file.key_stats, file.row_count))
    low = deserialize_row(types, file.min_key)
    high = deserialize_row(types, file.max_key)
    if len(fields) == 1 and low and high:
        found[names[0]] = ColumnStats(low[0], high[0], 0, file.row_count)
    return found


def value_stats(table: FileStoreTable, file: DataFileMeta) -> dict[str, ColumnStats]:
    """Return the columns of a data file, as far as its statistics tell."""
    schema = table.schemas(file.schema_id)
    names = schema.field_names if file.value_stats_cols is None else file.value_stats_cols
    fields = schema.select([name for name in names if name in schema.field_names])
    if len(fields) < len(names):
        return {}
    types = [field.type for field in fields]
    stats = dict(_columns(names, types, file.value_stats, file.row_count))
    by_id = {field.id: field for field in schema.fields}
    found: dict[str, ColumnStats] = {}
    for field in table.schema.fields:
        old = by_id.get(field.id)
        if old is None:
            found[field.name] = ColumnStats(None, None, file.row_count, file.row_count)
        elif old.name in stats:
            found[field.name] = _translated(stats[old.name], old.type, field.type)
    return found


def _translated(stats: ColumnStats, old: DataType, new: DataType) -> ColumnStats:
    if same_comparison(old, new):
        return stats
    if old.root == new.root:
        return ColumnStats(None, None, stats.null_count, stats.row_count)
    return ColumnStats(None, None, None, stats.row_count)


def same_comparison(old: DataType, new: DataType) -> bool:
    """Return whether values of an older type compare as those of a newer one without a cast."""
    if old.as_nullable() == new.as_nullable():
        return True
    if old.root in INTEGER_ROOTS and new.root in INTEGER_ROOTS:
        return _WIDTH[old.root] <= _WIDTH[new.root]
    if old.root in CHARACTER_ROOTS and new.root in CHARACTER_ROOTS:
        return new.length is None or (old.length is not None and old.length <= new.length)
    if old.root == new.root == "DECIMAL":
        fraction = (new.scale or 0) - (old.scale or 0)
        return 0 <= fraction <= (new.precision or 0) - (old.precision or 0)
    return old.root == "FLOAT" and new.root == "DOUBLE"


def _columns(
    names: Sequence[str],
    types: Sequence[DataType],
    stats: SimpleStats,
    row_count: int | None,
) -> Iterator[tuple[str, ColumnStats]]:
    if not types:
        return
    low = deserialize_row(types, stats.min_values)
    high = deserialize_row(types, stats.max_values)
    counts: Iterable[int | None] = stats.null_counts
    if len(stats.null_counts) != len(names):
        counts = [None] * len(names)
    for name, least, most, nulls in zip(names, low, high, counts, strict=True):
        yield name, ColumnStats(least, most, nulls, row_count)


def group_filter(
    table: FileStoreTable, file_schema: TableSchema, wanted: Predicate | None
) -> GroupFilter | None:
    """Return the test of row groups of a file with a certain schema; None if all are wanted.

    Columns that were renamed are known by their older names there.
    """
    if wanted is None:
        return None
    by_id = {field.id: field for field in file_schema.fields}
    names: dict[str, DataField] = {}
    for field in table.schema.fields:
        old = by_id.get(field.id)
        alike = old is not None and same_comparison(old.type, field.type)
        if old is not None and alike and field.name not in table.schema.partition_keys:
            names[field.name] = old
    if not columns_of(wanted) & names.keys():
        return None

    def test(stats: Mapping[str, ColumnStats]) -> bool:
        known = {name: stats[old.name] for name, old in names.items() if old.name in stats}
        return may_match(wanted, stats_test(known))

    return GroupFilter(test, {old.name: to_arrow_type(old.type) for old in names.values()})


def key_group_filter(
    table: FileStoreTable, file_schema: TableSchema, wanted: KeyTest
) -> GroupFilter | None:
    """Return the test of row groups of a primary-key table's file.

    None if nothing is known of keys.
    """
    by_id = {field.id: field for field in file_schema.fields}
    field = table.schema.key_fields[0]
    old = by_id.get(field.id)
    # Bounds of floating-point numbers say nothing of NaN.
    if (
        old is None
        or old.type.root in ("FLOAT", "DOUBLE")
        or not same_comparison(old.type, field.type)
    ):
        return None
    name = old.name

    def test(stats: Mapping[str, ColumnStats]) -> bool:
        found = stats.get(name)
        if found is None or found.low is None or found.high is None:
            return True
        return wanted.between(found.low, found.high)

    stored = [by_id.get(key_field.id) for key_field in table.schema.key_fields]
    columns = tuple(one.name for one in stored if one is not None)
    probe = RowProbe(columns, _key_probe(table, wanted)) if len(columns) == len(stored) else None
    return GroupFilter(test, {name: to_arrow_type(old.type)}, probe)


def _key_probe(table: FileStoreTable, wanted: KeyTest) -> Callable[[pa.Table], bool]:
    fields = table.schema.key_fields
    names = [field.name for field in fields]
    types = [to_arrow_type(field.type) for field in fields]

    def test(rows: pa.Table) -> bool:
        # Keys that are stored in another form are compared when they have got their own.
        return rows.schema.types != types or wanted.among(rows.rename_columns(names))

    return test
