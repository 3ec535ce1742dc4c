"""Rows of one bucket, all in memory, as files of level 0: data files or changelog files.

Both have the same columns and the same entry in a manifest; how they are encoded and what they are
called may differ. Specification: Data files; Changelog.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from ingestd.crash_points import Point, reach
from ingestd.paimon.casts.evolution import columns_schema
from ingestd.paimon.format.base import format_of, load_format
from ingestd.paimon.merge.merged_rows import retractions
from ingestd.paimon.spec.arrow import column_values
from ingestd.paimon.spec.binary_row import EMPTY_ROW, serialize_row
from ingestd.paimon.spec.data_file import EMPTY_STATS, DataFileMeta, FileSource
from ingestd.paimon.spec.data_types import KEY_PREFIX, SEQUENCE_NUMBER, VALUE_KIND
from ingestd.paimon.spec.options import CoreOptions
from ingestd.paimon.spec.paths import POSTPONE_BUCKET
from ingestd.paimon.spec.stats import collect_stats
from ingestd.paimon.table.files.data_files import data_file_fields, data_file_path
from ingestd.paimon.table.files.file_index_write import with_file_index
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable

KEY_STATS_MODE = "truncate(128)"

_SAMPLE_ROWS = 16384


@dataclass(frozen=True, slots=True)
class BucketFiles:
    """Where the files of a bucket go, how they are encoded, and what the manifest says of them.

    `indexed` says whether they get the file indexes of the table, which changelog files have not.
    """

    table: FileStoreTable
    partition_values: tuple[object, ...]
    bucket: int
    options: CoreOptions
    new_name: Callable[[], str]
    indexed: bool = True

    def write(self, rows: pa.Table) -> tuple[DataFileMeta, ...]:
        """Write rows to files of about the target size; none for no rows.

        If a file cannot be written, those before it are deleted.
        """
        written: list[DataFileMeta] = []
        try:
            for part in self._rolled(rows):
                written.append(self._write_file(part))
        except BaseException:
            self.delete(written)
            raise
        return tuple(written)

    def delete(self, files: list[DataFileMeta] | tuple[DataFileMeta, ...]) -> None:
        """Take back files that nobody can have seen."""
        for meta in files:
            for name in (meta.file_name, *meta.extra_files):
                self.table.io.delete_quietly(self._path(name))

    def _rolled(self, rows: pa.Table) -> Iterator[pa.Table]:
        """Consecutive parts of about the target file size.

        Encoded rows are smaller than Arrow rows, so only what is larger than one file in Arrow
        needs a sample that tells how large it will be.
        """
        per_file = max(rows.num_rows, 1)
        target = self.options.target_file_size
        if rows.nbytes > target:
            sample = rows.slice(rows.num_rows // 2, _SAMPLE_ROWS)
            size = load_format(self.options.file_format).encoded_size(sample, self.options)
            per_file = min(per_file, max(1, target * sample.num_rows // max(size, 1)))
        for start in range(0, rows.num_rows, per_file):
            yield rows.slice(start, per_file)

    def _path(self, name: str) -> str:
        return data_file_path(self.table, self.partition_values, self.bucket, name)

    def _write_file(self, rows: pa.Table) -> DataFileMeta:
        table, name = self.table, self.new_name()
        fields = data_file_fields(table.schema)
        columns = [rows.column(field.name.removeprefix(KEY_PREFIX)) for field in fields]
        file_rows = pa.Table.from_arrays(columns, schema=columns_schema(fields))
        path = self._path(name)
        size = load_format(format_of(name)).write_file(table.io, path, file_rows, self.options)
        reach(Point.DATA_WRITTEN if self.indexed else Point.CHANGELOG_WRITTEN)
        meta = self._meta(rows, name, size)
        if self.indexed:
            meta = with_file_index(table, path, rows, meta)
        return self._with_keys(rows, meta) if table.schema.primary_keys else meta

    def _meta(self, rows: pa.Table, name: str, size: int) -> DataFileMeta:
        schema, options = self.table.schema, self.options
        values = rows.select(schema.field_names)
        stats, stats_columns = collect_stats(
            values, schema.fields, options.stats_mode, dense=options.stats_dense_store
        )
        first, last = _sequence_range(rows)
        return DataFileMeta(
            file_name=name,
            file_size=size,
            row_count=rows.num_rows,
            min_key=EMPTY_ROW,
            max_key=EMPTY_ROW,
            key_stats=EMPTY_STATS,
            value_stats=stats,
            min_sequence_number=first,
            max_sequence_number=last,
            schema_id=schema.id,
            level=0,
            creation_time_ms=time.time_ns() // 1_000_000,
            delete_row_count=0,
            file_source=FileSource.APPEND,
            value_stats_cols=stats_columns,
        )

    def _with_keys(self, rows: pa.Table, meta: DataFileMeta) -> DataFileMeta:
        schema = self.table.schema
        fields = schema.key_fields
        keys = rows.select(schema.trimmed_primary_keys)
        types = [field.type for field in fields]
        ends = keys.take(pa.array([0, keys.num_rows - 1]))
        first, last = zip(*(column_values(column) for column in ends.columns), strict=True)
        mode = "none" if self.options.bucket == POSTPONE_BUCKET else KEY_STATS_MODE
        key_stats, _ = collect_stats(keys, fields, lambda _: mode, dense=False)
        return replace(
            meta,
            min_key=serialize_row(types, first),
            max_key=serialize_row(types, last),
            key_stats=key_stats,
            delete_row_count=retract_count(rows),
        )


def retract_count(rows: pa.Table) -> int:
    """How many rows take a row back."""
    return int(np.count_nonzero(retractions(rows.column(VALUE_KIND).to_numpy())))


def _sequence_range(rows: pa.Table) -> tuple[int, int]:
    if SEQUENCE_NUMBER not in rows.column_names:
        return 0, rows.num_rows - 1
    numbers = rows.column(SEQUENCE_NUMBER).to_numpy()
    return int(numbers.min()), int(numbers.max())
