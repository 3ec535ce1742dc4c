"""Write rows of one bucket, all in memory, to data files or changelog files of level 0.

Both have the same columns and manifest entries; their encoding and names may differ.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/datafile/
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from ingestd.crash_points import Point, reach
from ingestd.paimon.format.base import format_of, load_format
from ingestd.paimon.spec.data_file import DataFileMeta, FileSource
from ingestd.paimon.spec.options import CoreOptions
from ingestd.paimon.spec.paths import POSTPONE_BUCKET
from ingestd.paimon.table.files.data_files import data_file_path
from ingestd.paimon.table.files.file_index_write import with_file_index
from ingestd.paimon.table.files.new_files import (
    delete_files,
    file_rows,
    name_for_options,
    options_for_rows,
)
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.write.figures import KEY_STATS_MODE, FileFigures

_SAMPLE_ROWS = 16384


@dataclass(frozen=True, slots=True)
class WrittenBucketFiles:
    """Writes files of a bucket, with their encoding and manifest entries.

    `indexed` is whether they have the file indexes of the table; changelog files have none.
    """

    table: FileStoreTable
    partition_values: tuple[object, ...]
    bucket: int
    options: CoreOptions
    new_name: Callable[[], str]
    indexed: bool = True

    @property
    def level(self) -> int:
        """Return level 0, the level of new rows."""
        return 0

    @property
    def source(self) -> FileSource:
        """Return the source of files that no compaction wrote."""
        return FileSource.APPEND

    @property
    def key_stats_mode(self) -> str:
        """Return `none` for postponed buckets, whose rows are not looked up by key."""
        return "none" if self.options.bucket == POSTPONE_BUCKET else KEY_STATS_MODE

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
        """Delete files that are not committed."""
        delete_files(self.table, self.partition_values, self.bucket, files)

    def _rolled(self, rows: pa.Table) -> Iterator[pa.Table]:
        """Yield consecutive parts of about the target file size.

        Encoded rows are smaller than Arrow rows: only rows that exceed the target size in Arrow are
        measured, by encoding a sample.
        """
        per_file = max(rows.num_rows, 1)
        target = self.options.target_file_size
        if rows.nbytes > target:
            sample = rows.slice(rows.num_rows // 2, _SAMPLE_ROWS)
            options = options_for_rows(self.options, sample)
            size = load_format(options.file_format).encoded_size(sample, options)
            per_file = min(per_file, max(1, target * sample.num_rows // max(size, 1)))
        for start in range(0, rows.num_rows, per_file):
            yield rows.slice(start, per_file)

    def _write_file(self, rows: pa.Table) -> DataFileMeta:
        table, options = self.table, options_for_rows(self.options, rows)
        name = name_for_options(self.new_name(), self.options, options)
        path = data_file_path(table, self.partition_values, self.bucket, name)
        stored = file_rows(table.schema, rows)
        size = load_format(format_of(name)).write_file(table.io, path, stored, options)
        reach(Point.DATA_WRITTEN if self.indexed else Point.CHANGELOG_WRITTEN)
        figures = FileFigures(self, 0)
        figures.add(rows)
        meta = figures.meta(name, size)
        return with_file_index(table, path, rows, meta) if self.indexed else meta
