"""Map statistics of data files to the columns of the table's schema, for skipping files.

A column is identified by its field id. A column that a file lacks is null in all its rows. If the
values of the old and the new type of a column may be ordered differently, its bounds are ignored.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/manifest/#simplestats
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ingestd.paimon.casts.evolution import file_columns
from ingestd.paimon.spec.binary_row import deserialize_row
from ingestd.paimon.spec.data_file import DataFileMeta, SimpleStats
from ingestd.paimon.spec.data_types import (
    CHARACTER_ROOTS,
    INTEGER_ROOTS,
    KEY_FIELD_ID_START,
    DataField,
    DataType,
)
from ingestd.paimon.spec.predicate_stats import ColumnStats
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable

_WIDTH = {"TINYINT": 0, "SMALLINT": 1, "INT": 2, "BIGINT": 3}


def partition_stats(table: FileStoreTable, partition: bytes) -> dict[str, ColumnStats]:
    """Return exact statistics of the partition columns, by name; the partition counts as one row.

    `partition` is the serialized row.
    """
    values = table.partition_values(partition)
    return {
        name: ColumnStats(value, value, int(value is None), 1)
        for name, value in zip(table.schema.partition_keys, values, strict=True)
    }


def manifest_partition_stats(table: FileStoreTable, stats: SimpleStats) -> dict[str, ColumnStats]:
    """Return statistics of the partition columns for a manifest, by name, without row counts."""
    types, names = table.partition_types, table.schema.partition_keys
    return dict(_columns(names, types, stats, None))


def key_stats(table: FileStoreTable, file: DataFileMeta) -> dict[str, ColumnStats]:
    """Return statistics of the key columns of a primary-key table's data file, by name.

    A bound that is unknown, or that may be wrong, is None.
    """
    fields = table.schema.key_fields
    types = [field.type for field in fields]
    names = [field.name for field in fields]
    stats = dict(_columns(names, types, file.key_stats, file.row_count))
    by_column = _sure_stats(file, fields, stats)
    low = deserialize_row(types, file.min_key)
    high = deserialize_row(types, file.max_key)
    if len(fields) == 1 and low and high:
        ends = sure_bounds(file.file_name, types[0], low[0], high[0])
        by_column[names[0]] = ColumnStats(*ends, 0, file.row_count)
    return by_column


def value_stats(table: FileStoreTable, file: DataFileMeta) -> dict[str, ColumnStats]:
    """Return the known statistics of a data file, by column name in the table's schema.

    A column of which the file has no part has only nulls. Columns without usable statistics are
    left out.
    """
    schema = table.schemas(file.schema_id)
    names = file.stats_columns(schema.field_names)
    fields = schema.select([name for name in names if name in schema.field_names])
    if len(fields) < len(names):
        return {}
    types = [field.type for field in fields]
    stats = dict(_columns(names, types, file.value_stats, file.row_count))
    stats = _sure_stats(file, fields, stats)
    sources = file_columns(schema.fields, table.schema.fields)
    by_column: dict[str, ColumnStats] = {}
    for field in table.schema.fields:
        old = sources.get(field.name)
        if field.id >= KEY_FIELD_ID_START:
            # Row ids are computed where a file does not have them.
            continue
        if old is None:
            by_column[field.name] = ColumnStats(None, None, file.row_count, file.row_count)
        elif old.name in stats:
            by_column[field.name] = _translated(stats[old.name], old.type, field.type)
    return by_column


def _sure_stats(
    file: DataFileMeta, fields: Sequence[DataField], stats: Mapping[str, ColumnStats]
) -> dict[str, ColumnStats]:
    """Return the statistics of a file by column, with the bounds of `sure_bounds`."""
    sure = dict(stats)
    for field in fields:
        if field.name in stats:
            known = stats[field.name]
            low, high = sure_bounds(file.file_name, field.type, known.low, known.high)
            sure[field.name] = replace(known, low=low, high=high)
    return sure


def sure_bounds(file_name: str, t: DataType, low: object, high: object) -> tuple[object, object]:
    """Return the bounds `low` and `high` of a column of a file; None for one that may be wrong.

    Java writes wrong bounds to ORC files, recognised by `file_name`: bounds of floating-point
    columns do not include a NaN unless it is the first value, and bounds of CHAR are padded with
    blanks, which the values are not. `t` is the type of the column in the file.
    """
    if file_name.endswith(".orc") and t.root in ("FLOAT", "DOUBLE"):
        return None if low != low else low, None
    if loses_blanks(file_name, t):
        return None, high
    return low, high


def loses_blanks(file_name: str, t: DataType) -> bool:
    """Return whether values of type `t` are read from a file without the blanks at their end.

    These are CHAR values of ORC files, whose statistics and indexes are of the written values.
    """
    return file_name.endswith(".orc") and t.root == "CHAR"


def _translated(stats: ColumnStats, old: DataType, new: DataType) -> ColumnStats:
    if same_comparison(old, new):
        return stats
    if old.root == new.root and old.root != "DECIMAL":
        return ColumnStats(None, None, stats.null_count, stats.row_count)
    # The cast may make values null, such as a decimal with too many digits.
    return ColumnStats(None, None, None, stats.row_count)


def same_comparison(old: DataType, new: DataType) -> bool:
    """Return whether values of type `old` are known to compare as they do after a cast to `new`.

    If the result is False, statistics of values of the type `old` cannot be used for a column of
    the type `new`.
    """
    if old.as_nullable() == new.as_nullable():
        return True
    if old.root in INTEGER_ROOTS and new.root in INTEGER_ROOTS:
        return _WIDTH[old.root] <= _WIDTH[new.root]
    if new.root == "CHAR":
        # The cast appends blanks, which the bounds do not have.
        return False
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
