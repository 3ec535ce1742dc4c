"""ANALYZE: compute the statistics of a table, commit them with a snapshot, and read them.

The snapshot that refers to the statistics file is of kind ANALYZE and changes nothing else. Later
snapshots refer to the same file until the schema changes.
"""

import json
import math
import uuid
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ingestd.errors import ConfigError, FormatError, UnsupportedError
from ingestd.paimon.spec.arrow import Array, column_values
from ingestd.paimon.spec.data_types import (
    BINARY_ROOTS,
    CHARACTER_ROOTS,
    INTEGER_ROOTS,
    TIMESTAMP_ROOTS,
    DataField,
)
from ingestd.paimon.spec.paths import java_text
from ingestd.paimon.spec.snapshot import BATCH_COMMIT_IDENTIFIER, Snapshot
from ingestd.paimon.spec.table_statistics import (
    ColumnStatistics,
    TableStatistics,
    encode_statistics,
    parse_statistics,
)
from ingestd.paimon.table.commit.table_commit import CommitResult, commit
from ingestd.paimon.table.metadata.file_store_scan import live_files
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.read.table_read import TableReader
from ingestd.paimon.table.system.history_tables import Cells, columns
from ingestd.paimon.table.write.commit_message import ManifestCommittable

_FLOATS = ("FLOAT", "DOUBLE")
_WITH_BOUNDS = frozenset(
    {*INTEGER_ROOTS, *TIMESTAMP_ROOTS, *_FLOATS, "DECIMAL", "BOOLEAN", "DATE", "TIME"}
)
_VARIABLE_LENGTH = BINARY_ROOTS | CHARACTER_ROOTS
_FIXED_LENGTHS = {
    "BOOLEAN": 1, "TINYINT": 1, "SMALLINT": 2, "INT": 4, "BIGINT": 8, "FLOAT": 4, "DOUBLE": 8,
    "DATE": 4, "TIME": 4, "TIMESTAMP": 8, "TIMESTAMP_LTZ": 8,
}  # fmt: skip
_MIN_DISTINCT = 1 << 16
"""Distinct values of the parts of a column are merged when there are more than these."""
_NARROW_DECIMAL = 18


def analyze_table(
    table: FileStoreTable, columns: Sequence[str] | None = None, *, now_ms: int
) -> tuple[TableStatistics, CommitResult]:
    """Compute the statistics of the newest snapshot and commit them; return both results.

    `columns` are the columns to analyze (None: all), `now_ms` is the time of the snapshot in
    milliseconds of the epoch. Raises ConfigError for a table without a snapshot or an unknown
    column, UnsupportedError for a table that cannot be read correctly, FormatError for a damaged
    file, and CommitConflictError, CommitUnknownError or LockUnavailableError if the commit fails.
    """
    state = load_state(table)
    if state.snapshot is None:
        raise ConfigError(f"table {table.name} has no snapshot to analyze")
    statistics = compute_statistics(table, state.snapshot, columns)
    name = f"stat-{uuid.uuid4()}-0"
    table.io.write_new(table.paths.statistics(name), encode_statistics(statistics))
    committable = ManifestCommittable(BATCH_COMMIT_IDENTIFIER, (), statistics=name)
    result = commit(table, str(uuid.uuid4()), committable, state=state, now_ms=now_ms)
    return statistics, result


def compute_statistics(
    table: FileStoreTable, snapshot: Snapshot, columns: Sequence[str] | None
) -> TableStatistics:
    """Return the statistics of a snapshot, for columns of the schema of the snapshot.

    `columns` are the columns to analyze (None: all). The size in bytes is the size of the files,
    scaled by the share of rows that remain after merging. Raises ConfigError for an unknown column,
    UnsupportedError for a table that cannot be read correctly, FormatError for a damaged file.
    """
    at_snapshot = table.at_schema(snapshot.schema_id)
    schema = at_snapshot.schema
    names = list(schema.field_names) if columns is None else list(columns)
    unknown = [name for name in names if name not in schema.field_names]
    if unknown:
        raise ConfigError(f"table {table.name} has no column {', '.join(unknown)}")
    collectors = {name: ColumnStatsCollector(schema.field(name)) for name in names}
    row_count = 0
    # Rows have to be read even to be counted: merging decides how many there are.
    read = names or list(schema.primary_keys) or [schema.fields[0].name]
    for rows in TableReader(at_snapshot, read).rows(snapshot):
        row_count += rows.num_rows
        for name, collector in collectors.items():
            collector.add(rows.column(name))
    files = [entry.file for entry in live_files(at_snapshot, snapshot)]
    stored_rows = sum(file.row_count for file in files)
    size = sum(file.file_size for file in files)
    return TableStatistics(
        snapshot_id=snapshot.id,
        schema_id=snapshot.schema_id,
        merged_record_count=row_count,
        merged_record_size=round(size * row_count / stored_rows) if stored_rows else 0,
        columns=tuple(collector.result() for collector in collectors.values()),
    )


class ColumnStatsCollector:
    """Computes the statistics of one column, whose cells are added in parts.

    For types without bounds and lengths, such as nested types, only nulls are counted.
    """

    def __init__(self, field: DataField) -> None:
        self._field = field
        self._root = field.type.root
        self._nulls = 0
        self._length = 0
        self._longest: int | None = None
        self._rows = 0
        self._distinct: list[Array] = []
        self._distinct_count = 0
        self._merge_above = _MIN_DISTINCT

    def add(self, column: Any) -> None:  # noqa: ANN401  (stubs of kernels want the exact type)
        """Add the cells of a part of the column, a chunked array."""
        self._rows += len(column)
        self._nulls += column.null_count
        if self._root in _VARIABLE_LENGTH:
            by_bytes = self._root in BINARY_ROOTS
            lengths = pc.binary_length(column) if by_bytes else pc.utf8_length(column)
            self._length += pc.sum(lengths).as_py() or 0
            longest = pc.max(lengths).as_py()
            if longest is not None:
                self._longest = max(self._longest or 0, longest)
        if self._root in _WITH_BOUNDS or self._root in _VARIABLE_LENGTH:
            self._distinct.append(pc.unique(column.drop_null().combine_chunks()))
            self._distinct_count += len(self._distinct[-1])
            if self._distinct_count > self._merge_above:
                self._merge_distinct()

    def result(self) -> ColumnStatistics:
        """Return the statistics of all added cells."""
        name, number = self._field.name, self._field.id
        if self._root not in _WITH_BOUNDS and self._root not in _VARIABLE_LENGTH:
            return ColumnStatistics(name=name, id=number, null_count=self._nulls)
        self._merge_distinct()
        distinct = self._distinct[0] if self._distinct else None
        low, high = self._bounds(distinct)
        average, longest = self._lengths()
        return ColumnStatistics(
            name=name,
            id=number,
            distinct_count=0 if distinct is None else len(distinct),
            min=low,
            max=high,
            null_count=self._nulls,
            avg_len=average,
            max_len=longest,
        )

    def _merge_distinct(self) -> None:
        if len(self._distinct) > 1:
            self._distinct = [pc.unique(pa.concat_arrays(self._distinct))]
        self._distinct_count = sum(map(len, self._distinct))
        self._merge_above = max(_MIN_DISTINCT, 2 * self._distinct_count)

    def _bounds(self, distinct: Array | None) -> tuple[str | None, str | None]:
        """Return the smallest and the largest value as text.

        Both are None if a value is NaN, which engines order differently.
        """
        if distinct is None or len(distinct) == 0 or self._root not in _WITH_BOUNDS:
            return None, None
        if self._root in _FLOATS and pc.any(pc.is_nan(distinct)).as_py():
            return None, None
        bounds = pc.min_max(distinct)
        ends = [pa.scalar(bounds[name], distinct.type) for name in ("min", "max")]
        low, high = column_values(pa.chunked_array([pa.array(ends, distinct.type)]))
        return self._text(low), self._text(high)

    def _text(self, value: object) -> str | None:
        legacy = self._root not in TIMESTAMP_ROOTS
        try:
            text = java_text(self._field.name, self._field.type, value, legacy=legacy)
        except UnsupportedError:
            return None
        # Java reads years 1 to 9999; a text that it cannot read would fail each of its commits.
        return None if self._root in TIMESTAMP_ROOTS and text.startswith("0000-") else text

    def _lengths(self) -> tuple[int | None, int | None]:
        if self._root in _VARIABLE_LENGTH:
            present = self._rows - self._nulls
            return (math.ceil(self._length / present) if present else None), self._longest
        size = _FIXED_LENGTHS.get(self._root)
        if size is None:
            size = 8 if (self._field.type.precision or 0) <= _NARROW_DECIMAL else 16
        return size, size


STATISTICS = columns(
    ("snapshot_id", "BIGINT NOT NULL"), ("schema_id", "BIGINT NOT NULL"),
    ("mergedRecordCount", "BIGINT"), ("mergedRecordSize", "BIGINT"), ("colstat", "STRING"),
)  # fmt: skip


def read_statistics(table: FileStoreTable, snapshot: Snapshot) -> TableStatistics | None:
    """Return the statistics to which a snapshot refers; None without statistics.

    Raises FormatError if the statistics file is missing or damaged.
    """
    if snapshot.statistics is None:
        return None
    path = table.paths.statistics(snapshot.statistics)
    try:
        data = table.io.read_bytes(path)
    except FileNotFoundError as error:
        raise FormatError(f"statistics file {path} of snapshot {snapshot.id} is missing") from error
    return parse_statistics(data, path)


def statistics_rows(table: FileStoreTable, snapshot: Snapshot | None) -> list[Cells]:
    """Return the single row of the system table `statistics`, or [] without statistics or snapshot.

    Raises FormatError if the statistics file is missing or damaged.
    """
    table_statistics = None if snapshot is None else read_statistics(table, snapshot)
    if table_statistics is None:
        return []
    columns = table_statistics.document()["colStats"]
    # Exactly as Java prints it.
    text = json.dumps(columns, ensure_ascii=False, indent=2, separators=(",", " : "))
    return [
        (
            table_statistics.snapshot_id,
            table_statistics.schema_id,
            table_statistics.merged_record_count,
            table_statistics.merged_record_size,
            text if columns else "{ }",
        )
    ]
