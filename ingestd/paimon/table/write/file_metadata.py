"""Compute the manifest entry of a data or changelog file from its rows, given in parts.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/manifest/#data-manifest
"""

import time
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from ingestd.paimon.spec.arrow import column_values
from ingestd.paimon.spec.binary_row import EMPTY_ROW, serialize_row
from ingestd.paimon.spec.data_file import EMPTY_STATS, DataFileMeta, FileSource, SimpleStats
from ingestd.paimon.spec.data_types import KEY_FIELD_ID_START, SEQUENCE_NUMBER, VALUE_KIND
from ingestd.paimon.spec.file_index_options import column_indexes
from ingestd.paimon.spec.options import CoreOptions
from ingestd.paimon.spec.row_selection import retractions
from ingestd.paimon.spec.simple_stats import StatsTotal
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable

KEY_STATS_MODE = "truncate(128)"


@dataclass(frozen=True, slots=True)
class FileOrigin:
    """The properties that the manifest entries of several new files share.

    `level` is the level of the files, `source` whether they were appended or compacted, and
    `key_stats_mode` the mode of the statistics of their key columns.
    """

    table: FileStoreTable
    options: CoreOptions
    level: int
    source: FileSource
    key_stats_mode: str = KEY_STATS_MODE


class FileStatsCollector:
    """Computes the manifest entry of a file from its rows, which are added in parts.

    In a table with a primary key, the smallest and the largest key are taken from the first and the
    last row, so rows must be added in key order (except rows of postponed buckets). Rows without
    sequence numbers are numbered from `first_sequence`.
    """

    def __init__(self, origin: FileOrigin, first_sequence: int) -> None:
        schema, options = origin.table.schema, origin.options
        self._origin = origin
        self._sequences: tuple[int, int] | None = None
        self._first_sequence = first_sequence
        self._rows = 0
        self._retracts = 0
        self._ends: list[pa.Table] = []
        fields = [field for field in schema.fields if field.id < KEY_FIELD_ID_START]
        self._names = [field.name for field in fields]
        self._values = StatsTotal(fields, options.stats_mode, dense=options.stats_dense_store)
        self._keys = StatsTotal(schema.key_fields, lambda _: origin.key_stats_mode, dense=False)
        self._index_columns = list(
            dict.fromkeys(column_index.column for column_index in column_indexes(schema))
        )
        self._indexed: list[pa.Table] = []

    @property
    def indexed(self) -> pa.Table | None:
        """All rows, with the columns that have a file index; None if no column has one."""
        return pa.concat_tables(self._indexed) if self._indexed else None

    def add(self, rows: pa.Table) -> None:
        """Add a part of the rows, which must not be empty."""
        schema = self._origin.table.schema
        self._rows += rows.num_rows
        self._values.add(rows.select(self._names))
        if self._index_columns:
            self._indexed.append(rows.select(self._index_columns))
        if SEQUENCE_NUMBER in rows.column_names:
            numbers = rows.column(SEQUENCE_NUMBER).to_numpy()
            known = self._sequences or (int(numbers[0]), int(numbers[0]))
            self._sequences = (min(known[0], int(numbers.min())), max(known[1], int(numbers.max())))
        if not schema.primary_keys:
            return
        self._retracts += retract_count(rows)
        keys = rows.select(schema.trimmed_primary_keys)
        self._keys.add(keys)
        self._ends = [*self._ends[:1], keys.take(pa.array([0, keys.num_rows - 1]))]

    def meta(self, name: str, size: int) -> DataFileMeta:
        """Return the manifest entry of a file `name` of `size` bytes with all added rows.

        In a table with a primary key, at least one row must have been added. The creation time is
        the current time.
        """
        table = self._origin.table
        stats, stats_columns = self._values.result()
        first, last = self._sequences or (
            self._first_sequence,
            self._first_sequence + self._rows - 1,
        )
        meta = DataFileMeta(
            file_name=name,
            file_size=size,
            row_count=self._rows,
            min_key=EMPTY_ROW,
            max_key=EMPTY_ROW,
            key_stats=EMPTY_STATS,
            value_stats=stats,
            min_sequence_number=first,
            max_sequence_number=last,
            schema_id=table.schema.id,
            level=self._origin.level,
            creation_time_ms=time.time_ns() // 1_000_000,
            delete_row_count=self._retracts,
            file_source=self._origin.source,
            value_stats_cols=stats_columns,
        )
        return self._with_keys(meta) if table.schema.primary_keys else meta

    def _with_keys(self, meta: DataFileMeta) -> DataFileMeta:
        types = [field.type for field in self._origin.table.schema.key_fields]
        key_stats: SimpleStats = self._keys.result()[0]
        return replace(
            meta,
            min_key=serialize_row(types, _row(self._ends[0], 0)),
            max_key=serialize_row(types, _row(self._ends[-1], 1)),
            key_stats=key_stats,
        )


def _row(rows: pa.Table, position: int) -> list[object]:
    return [column_values(column.slice(position, 1))[0] for column in rows.columns]


def retract_count(rows: pa.Table) -> int:
    """Return the number of rows of kind -U or -D; `rows` has the column `_VALUE_KIND`."""
    return int(np.count_nonzero(retractions(rows.column(VALUE_KIND).to_numpy())))
