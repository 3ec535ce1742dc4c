"""Paths of index files, in the index directory of the table or beside the data files of a bucket.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/tableindex/#table-index
"""

from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.index_manifest import IndexManifestEntry
from ingestd.paimon.spec.paths import partition_path
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable


def index_path(table: FileStoreTable, entry: IndexManifestEntry) -> str:
    """Return the path of the index file of an index manifest entry."""
    if entry.external_path is not None:
        return entry.external_path
    return new_index_path(table, entry.partition, entry.bucket, entry.file_name)


def new_index_path(table: FileStoreTable, partition: bytes, bucket: int, name: str) -> str:
    """Return the path of a new index file of a bucket; `partition` is the serialized row."""
    if not honoured.INDEX_IN_DATA_DIR.of(table.schema.options):
        return table.paths.index(name)
    above = honoured.DATA_FILE_DIRECTORY.of(table.schema.options)
    return table.paths.data_file(f"{above}{partition_directory(table, partition)}", bucket, name)


def partition_directory(table: FileStoreTable, partition: bytes) -> str:
    """Return the path of a partition below the table directory, such as "dt=2024/hr=1/".

    Each directory has a trailing slash; the path is "" for a table without partitions. `partition`
    is the serialized row.
    """
    return partition_path(
        table.schema.partition_keys,
        table.partition_types,
        table.partition_values(partition),
        table.options.partition_default_name,
        table.options.partition_legacy_name,
    )
