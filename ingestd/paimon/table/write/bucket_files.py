"""Rows of one bucket, all in memory, as files of level 0: data files or changelog files.

Both have the same columns and the same entry in a manifest; how they are encoded and what they are
called may differ.

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
    """Where the files of a bucket go, how they are encoded, and what the manifest says of them.

    `indexed` says whether they get the file indexes of the table, which changelog files have not.
    """

    table: FileStoreTable
    partition_values: tuple[object, ...]
    bucket: int
    options: CoreOptions
    new_name: Callable[[], str]
    indexed: bool = True

    @property
    def level(self) -> int:
        """New rows are of level 0."""
        return 0

    @property
    def source(self) -> FileSource:
        """No compaction has made the files."""
        return FileSource.APPEND

    @property
    def key_stats_mode(self) -> str:
        """Return rows that wait for their bucket are not found by their keys."""
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
        """Take back files that no one can have seen."""
        delete_files(self.table, self.partition_values, self.bucket, files)

    def _rolled(self, rows: pa.Table) -> Iterator[pa.Table]:
        """Consecutive parts of about the target file size.

        Encoded rows are smaller than Arrow rows, so only what is larger than one file in Arrow
        needs a sample that tells how large it will be.
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
