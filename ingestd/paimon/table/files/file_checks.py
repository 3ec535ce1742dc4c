"""What a data file that was read must agree in with its schema and its manifest entry.

Most of a Parquet file's bytes have checksums; its footer and its page headers, and ORC and Avro
files of other writers, have none. What costs next to nothing to compare is compared.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/datafile/
"""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ingestd.errors import FormatError
from ingestd.paimon.spec.arrow import Column
from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.spec.data_types import VALUE_KIND, RowKind
from ingestd.paimon.spec.schema import TableSchema


def check_columns(path: str, rows: pa.Table, file: DataFileMeta, names: Sequence[str]) -> None:
    """FormatError if the file lacks columns that its schema has and that were asked for, or has
    row kinds that do not exist."""
    present = set(rows.column_names)
    missing = [name for name in names if name not in present]
    if missing and file.write_cols is None:
        raise FormatError(
            f"data file {path} has no column {', '.join(missing)}, which its schema "
            f"{file.schema_id} has"
        )
    if VALUE_KIND in present:
        _check_kinds(path, rows.column(VALUE_KIND))


def _check_kinds(path: str, kinds: Column) -> None:
    bounds: Any = pc.min_max(kinds)
    low, high = (bounds[which].as_py() for which in ("min", "max"))
    if low is not None and not 0 <= low <= high < len(RowKind):
        raise FormatError(f"data file {path} has row kinds from {low} to {high}")


def check_nulls(path: str, rows: pa.Table, file: DataFileMeta, schema: TableSchema) -> None:
    """FormatError if columns of all the file's rows have other null counts than promised."""
    names = schema.field_names if file.value_stats_cols is None else file.value_stats_cols
    counts = file.value_stats.null_counts
    if len(counts) != len(names):
        return
    present = set(rows.column_names)
    for name, promised in zip(names, counts, strict=True):
        if promised is None or name not in present:
            continue
        column = rows.column(name)
        if not pa.types.is_nested(column.type) and column.null_count != promised:
            raise FormatError(
                f"data file {path} has {column.null_count} nulls in column {name}, {promised} are "
                "promised"
            )
