"""The entry of a table in a Hive Metastore, by which Iceberg's HiveCatalog finds its metadata.

An entry has the properties that Paimon's IcebergHiveMetadataCommitter writes. Iceberg uses only one
of them, the path of the newest metadata document; the columns in an entry are a copy.
"""

import time
from dataclasses import dataclass

from ingestd.errors import ConfigError
from ingestd.paimon.catalog.base import Identifier
from ingestd.paimon.catalog.hive_client import (
    AlreadyExistsError,
    InvalidOperationError,
    Metastore,
)
from ingestd.paimon.catalog.hive_options import metastore_of
from ingestd.paimon.catalog.hive_tables import HiveTable, new_database, new_iceberg_table
from ingestd.paimon.catalog.thrift import Struct, structure
from ingestd.paimon.iceberg.metadata_store import MetadataStore
from ingestd.paimon.spec import iceberg_options
from ingestd.paimon.spec.option_types import Options
from ingestd.paimon.spec.table_schema import TableSchema


@dataclass(frozen=True, slots=True)
class HiveEntry:
    """The entry of an Iceberg table in a Hive Metastore.

    `identifier` is the name of the entry, by default that of the Paimon table.
    """

    metastore: Metastore
    identifier: Identifier

    def point_to(self, store: MetadataStore, version: int, schema: TableSchema) -> None:
        """Point the entry to the metadata document of a version, so that readers open it.

        `store` has the document. The entry and its database are created if they do not exist.
        `schema` has the columns of the entry. Raises ConfigError if the name belongs to a table
        that is not an Iceberg table, UnsupportedError for a type that Hive does not have,
        StorageError if the metastore does not respond.
        """
        document = store.document_path(version)
        database, name = self.identifier.database, self.identifier.table
        fields = self.metastore.find_table(database, name)
        if fields is None:
            self._create(document, schema)
            return
        stored = HiveTable(fields)
        if not stored.is_iceberg:
            raise ConfigError(
                f"metastore {self.metastore} has another table {self.identifier}, which is not one "
                f"of Iceberg: set '{iceberg_options.ICEBERG_DATABASE.name}' or "
                f"'{iceberg_options.ICEBERG_TABLE.name}' to a name of its own"
            )
        if stored.iceberg_document == document:
            return
        moved = stored.with_iceberg_document(document)
        try:
            self.metastore.alter_table(database, name, moved.with_all_columns(schema).fields)
        except InvalidOperationError:  # it checks columns, which Iceberg does not read
            self.metastore.alter_table(database, name, moved.fields)

    def _create(self, document: str, schema: TableSchema) -> None:
        location = document.rpartition("/metadata/")[0]
        database = self.identifier.database
        if self.metastore.find_database(database) is None:
            parent = location.rpartition("/")[0]
            self._add("create_database", new_database(database, {}, parent, in_properties=False))
        now_s = int(time.time())
        entry = new_iceberg_table(self.identifier, location, self.metastore.user, now_s)
        entry = entry.with_iceberg_document(document).with_all_columns(schema)
        self._add("create_table", entry.fields)

    def _add(self, method: str, fields: Struct) -> None:
        try:
            self.metastore.call(method, structure(fields))
        except AlreadyExistsError:
            return  # another process was first, and looks for newer documents as this one does


def hive_entry(options: Options, identifier: Identifier) -> HiveEntry:
    """Return the entry that the options of a table request.

    Raises ConfigError if the options contain no valid address of a metastore, UnsupportedError for
    an authentication or a protocol that is not supported.
    """
    given = {
        "uri": iceberg_options.ICEBERG_URI.of(options),
        "hive-conf-dir": iceberg_options.ICEBERG_HIVE_CONF.of(options),
    }
    return HiveEntry(metastore_of({key: text for key, text in given.items() if text}), identifier)
