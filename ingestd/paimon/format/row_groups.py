"""Select parts of data files: row groups of Parquet files that may have wanted rows.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/fileformat/#parquet
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from ingestd.paimon.spec.predicate_stats import ColumnStats

GroupTest: TypeAlias = Callable[[Mapping[str, ColumnStats]], bool]
"""Whether rows with these column statistics are wanted. Columns are named as in the file; what
is not known of a column is None."""
RowRange: TypeAlias = tuple[int, int]
"""First row and number of rows."""
_MOST_ROWS = 131_072


@dataclass(frozen=True, slots=True)
class BatchSize:
    """At most `rows` rows, and about `memory` bytes of Arrow columns; a row is never cut."""

    memory: int
    rows: int = _MOST_ROWS

    def fitting(self, row_bytes: float) -> int:
        """Return the number of rows of a width that may be read at once; at least one."""
        return max(1, min(self.rows, int(self.memory / max(row_bytes, 1))))


@dataclass(frozen=True, slots=True)
class RowProbe:
    """Test on a few `columns` of rows, to decide whether the other columns are read.

    `test` returns whether one of the rows may be wanted.
    """

    columns: tuple[str, ...]
    test: Callable[[pa.Table], bool]


@dataclass(frozen=True, slots=True)
class GroupFilter:
    """Test that selects row groups.

    `types` are the expected Arrow types of columns; statistics of a column with another type in the
    file are ignored. `probe` tests the row groups that statistics do not exclude, where a file is
    read in parts.
    """

    test: GroupTest
    types: Mapping[str, pa.DataType]
    probe: RowProbe | None = None


@dataclass(frozen=True, slots=True)
class FilePart:
    """Rows of a data file with `row_count` rows, and their ranges of row numbers, in order."""

    rows: pa.Table
    ranges: tuple[RowRange, ...]
    row_count: int


StreamPart: TypeAlias = tuple[int, pa.Table | None]
"""The next this many rows of a file; None for rows that are left out."""


class RowSink(Protocol):
    """A data file that is written in parts; it must be closed or aborted."""

    def write(self, rows: pa.Table) -> None:
        """Write more rows."""
        ...

    @property
    def size(self) -> int | None:
        """Return the bytes of the rows so far; None if they are only known at the end."""
        ...

    def close(self) -> None:
        """Write the remaining rows; the stream stays open."""
        ...

    def abort(self) -> None:
        """Discard a file that no reader will see, while its stream is open; never raises."""
        ...


def wanted_groups(file: pq.ParquetFile, wanted: GroupFilter) -> list[tuple[int, RowRange]]:
    """Return the row groups that may have wanted rows, with their row numbers in the file."""
    return [(number, rows) for number, rows, is_wanted in tested_groups(file, wanted) if is_wanted]


def tested_groups(
    file: pq.ParquetFile, wanted: GroupFilter
) -> Iterator[tuple[int, RowRange, bool]]:
    """Yield each row group, its row numbers, and whether it may have wanted rows.

    A group is tested when its turn comes, so that what is wanted may depend on how far one is.
    """
    metadata = file.metadata
    types = {f.name: f.type for f in file.schema_arrow if wanted.types.get(f.name) == f.type}
    places = {metadata.schema.column(i).path: i for i in range(len(metadata.schema))}
    start = 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        stats = {
            name: _column_stats(group.column(column_number), types[name], group.num_rows)
            for name, column_number in places.items()
            if name in types
        }
        yield number, (start, group.num_rows), wanted.test(stats)
        start += group.num_rows


def _column_stats(column: Any, arrow_type: pa.DataType, rows: int) -> ColumnStats:  # noqa: ANN401
    statistics = column.statistics
    if statistics is None:
        return ColumnStats(None, None, None, rows)
    nulls = statistics.null_count if statistics.has_null_count else None
    if not statistics.has_min_max or column.physical_type == "INT96":
        return ColumnStats(None, None, nulls, rows)
    low = _value(statistics.min_raw, arrow_type)
    return ColumnStats(low, _value(statistics.max_raw, arrow_type), nulls, rows)


def _value(raw: Any, arrow_type: pa.DataType) -> Any:  # noqa: ANN401  (of any column type)
    """Return a bound as BinaryRow takes it; None for types whose order or form is uncertain."""
    kinds = pa.types
    if kinds.is_decimal(arrow_type):
        scale: int = arrow_type.scale
        return Decimal(raw).scaleb(-scale) if isinstance(raw, int) else None
    if kinds.is_string(arrow_type):
        return _text(raw)
    plain = (
        kinds.is_integer(arrow_type)
        or kinds.is_floating(arrow_type)
        or kinds.is_boolean(arrow_type)
        or kinds.is_temporal(arrow_type)
    )
    return raw if plain else None


def _text(raw: bytes | str) -> str | None:
    if isinstance(raw, str):
        return raw
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None
