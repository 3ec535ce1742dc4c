"""Paths, names and encoding of the files that a compaction writes.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/datafile/#table-with-primary-key-data-file
"""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass

from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.data_file import FileSource
from ingestd.paimon.spec.options import CoreOptions
from ingestd.paimon.table.files.data_files import data_file_path
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.write.figures import FileOrigin


@dataclass(frozen=True, slots=True)
class FileTarget:
    """Where and how new files of a level are written; with `changelog`, changelog files."""

    table: FileStoreTable
    partition_values: tuple[object, ...]
    bucket: int
    level: int
    changelog: bool = False

    @property
    def options(self) -> CoreOptions:
        """Return the options of the encoding of the files."""
        options = self.table.options
        return options.for_changelog() if self.changelog else options.at_level(self.level)

    def names(self) -> Iterator[str]:
        """Yield names for new files: one UUID, then a counter."""
        prefix = self.table.options.data_file_prefix
        if self.changelog:
            prefix = honoured.CHANGELOG_PREFIX.of(self.table.schema.options)
        stem, extension = f"{prefix}{uuid.uuid4()}", self.options.file_extension
        return (f"{stem}-{number}.{extension}" for number in range(1 << 31))

    def path(self, name: str) -> str:
        """Return the path of a file."""
        return data_file_path(self.table, self.partition_values, self.bucket, name)

    @property
    def origin(self) -> FileOrigin:
        """Return the table, encoding and origin of the files for their manifest entries."""
        source = FileSource.APPEND if self.changelog else FileSource.COMPACT
        return FileOrigin(self.table, self.options, self.level, source)
