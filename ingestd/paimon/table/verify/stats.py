"""Verify statistics: exact null counts, and bounds that contain every value.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/manifest/#simplestats
"""

import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ingestd.paimon.spec.arrow import Column, column_of, column_values
from ingestd.paimon.spec.binary_row import EMPTY_ROW, deserialize_row
from ingestd.paimon.spec.data_file import SimpleStats
from ingestd.paimon.spec.data_types import BINARY_ROOTS, NESTED_ROOTS, DataField
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.verify.verify_findings import VerifyFindings
from ingestd.wording import counted

_UNBOUNDED = BINARY_ROOTS | NESTED_ROOTS | {"VARIANT"}


def check_partition_stats(
    table: FileStoreTable,
    where: str,
    stats: SimpleStats,
    partitions: Sequence[bytes],
    findings: VerifyFindings,
) -> None:
    """Check the partitions of a manifest's entries against its statistics."""
    fields = table.schema.select(table.schema.partition_keys)
    if not fields:
        return
    rows = [deserialize_row(table.partition_types, partition) for partition in partitions]
    columns = {f.name: column_of([row[i] for row in rows], f.type) for i, f in enumerate(fields)}
    check_stats(where, stats, pa.table(columns), fields, findings)


def check_stats(
    where: str,
    stats: SimpleStats,
    rows: pa.Table,
    fields: Sequence[DataField],
    findings: VerifyFindings,
) -> None:
    """Check rows against statistics of `fields`; statistics of no columns are not checked."""
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
            for problem in _outside(column, field, low, high):
                findings.error("stats", where, f"{field.name}: {problem}")


def _outside(column: Column, field: DataField, low: object, high: object) -> list[str]:
    """Return the problems of the bounds of a column; a bound of None is unknown."""
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
    """Return the smallest and largest value; NaN sorts after every other number."""
    values: Any = column
    extremes: Any = pc.min_max(values)
    smallest, largest = column_values(pa.array([extremes["min"], extremes["max"]], column.type))
    has_nan = isinstance(largest, float) and pc.any(pc.is_nan(values)).as_py()
    return [smallest, math.nan if has_nan else largest]


def _is_above(value: object, bound: object) -> bool:
    if isinstance(value, float) and isinstance(bound, float) and math.isnan(value):
        return not math.isnan(bound)
    return bool(value > bound)  # type: ignore[operator]  # values of one column
