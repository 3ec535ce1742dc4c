"""Find orphan files of Iceberg metadata, which were left by killed processes.

Metadata documents are never orphans: the options of the table determine when they are deleted.
"""

from ingestd.paimon.iceberg.iceberg_sync import metadata_folder
from ingestd.paimon.iceberg.metadata_store import MetadataStore
from ingestd.paimon.spec.iceberg_rules import iceberg_settings
from ingestd.paimon.spec.paths import MAIN_BRANCH
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.retention.orphans import Orphan


def iceberg_orphans(table: FileStoreTable, older_than_ms: int) -> tuple[Orphan, ...]:
    """Return old files in a table's Iceberg metadata to which no readable document refers.

    They were last modified before `older_than_ms`, in milliseconds of the epoch by the store's
    clock. Metadata documents and the version hint are never among them. A table without Iceberg
    metadata, or on another branch than main, has none. Raises ConfigError for an invalid option
    value, FormatError if a document refers to a damaged manifest list or a damaged manifest of
    deletion vectors, and UnsupportedError if the directory of the metadata depends on the database
    and the table is not in a database directory (DATABASE.db).
    """
    settings = iceberg_settings(table.schema.options)
    if settings is None or table.branch != MAIN_BRANCH:
        return ()
    store = MetadataStore(table.io, metadata_folder(table, settings))
    return tuple(
        Orphan(f"{store.folder}/{file.name}", file.size, file.modified_ms)
        for file in store.unnamed_files(older_than_ms)
    )
