"""The handle of a table: where it lies, its schema, and the FileIO that reaches it.

It holds no state of the table's content, so it may be pickled and sent to tasks.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property

from ingestd.paimon.io.file_io import FileIO
from ingestd.paimon.spec.data_types import DataType
from ingestd.paimon.spec.options import CoreOptions, core_options
from ingestd.paimon.spec.paths import TablePaths
from ingestd.paimon.spec.schema import TableSchema
from ingestd.paimon.table.schema_manager import read_schema


@dataclass(frozen=True)
class FileStoreTable:
    """A table as of one schema.

    `path` is the table directory; `name` is "database.table", for messages.
    """

    path: str
    schema: TableSchema
    io: FileIO
    name: str
    _schemas: dict[int, TableSchema] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @cached_property
    def paths(self) -> TablePaths:
        """Names of all files of the table."""
        return TablePaths(self.path)

    @cached_property
    def options(self) -> CoreOptions:
        """Typed view of the table options."""
        return core_options(self.schema)

    @cached_property
    def partition_types(self) -> tuple[DataType, ...]:
        """Types of the partition columns, in the order of the partition keys."""
        return tuple(self.schema.field(name).type for name in self.schema.partition_keys)

    def schemas(self, schema_id: int) -> TableSchema:
        """The schema of that id, read at most once; FormatError if it is missing."""
        if schema_id == self.schema.id:
            return self.schema
        if schema_id not in self._schemas:
            self._schemas[schema_id] = read_schema(self.io, self.paths, schema_id)
        return self._schemas[schema_id]

    def with_schema(self, schema: TableSchema) -> "FileStoreTable":
        """The same table as of another schema."""
        return replace(self, schema=schema)
