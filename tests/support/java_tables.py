"""Small tables that Java Paimon wrote (`tests/golden/java_tables`), file by file."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ingestd.paimon.spec.arrow import arrow_schema
from ingestd.paimon.spec.binary_row import deserialize_row
from ingestd.paimon.spec.manifest import ManifestEntry, decode_manifest
from ingestd.paimon.spec.options import CoreOptions, core_options
from ingestd.paimon.spec.paths import TablePaths, partition_path
from ingestd.paimon.spec.schema import parse_schema
from ingestd.paimon.spec.table_schema import TableSchema

ROOT = Path(__file__).resolve().parent.parent / "golden" / "java_tables"


@dataclass(frozen=True)
class JavaFile:
    """A data file and what Java said about it."""

    table: str
    schema: TableSchema
    options: CoreOptions
    entry: ManifestEntry
    path: Path

    def rows(self) -> pa.Table:
        """The table's columns of the file, without the system columns."""
        fields = self.schema.fields
        read = pq.read_table(self.path, partitioning=None)
        return read.select([field.name for field in fields]).cast(arrow_schema(fields))

    def __str__(self) -> str:
        return f"{self.table}/{self.entry.file.file_name}"


def table_files(pattern: str) -> list[Path]:
    """Files of all tables: `*/schema/schema-*` and the like."""
    return sorted(path for path in ROOT.glob(pattern) if path.is_file())


def java_data_files() -> list[JavaFile]:
    """Every data file that is there, once."""
    found = {file.path: file for file in _java_files() if file.path.exists()}
    return list(found.values())


def _java_files() -> Iterator[JavaFile]:
    for path in table_files("*/manifest/manifest-*"):
        if path.name.startswith("manifest-list"):
            continue
        table = path.parent.parent
        for entry in decode_manifest(path.read_bytes(), str(path)):
            yield _java_file(table, entry)


def _java_file(table: Path, entry: ManifestEntry) -> JavaFile:
    source = table / "schema" / f"schema-{entry.file.schema_id}"
    schema = parse_schema(source.read_bytes(), str(source))
    options = core_options(schema)
    directory = partition_path(
        schema.partition_keys,
        schema.partition_types,
        deserialize_row(schema.partition_types, entry.partition),
        options.partition_default_name,
        options.partition_legacy_name,
    )
    path = TablePaths(str(table)).data_file(directory, entry.bucket, entry.file.file_name)
    return JavaFile(table.name, schema, options, entry, Path(path))
