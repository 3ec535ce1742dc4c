"""Update the Iceberg metadata of a table to its newest snapshot.

A commit is followed by an update, which writes the metadata of all snapshots that have none yet. A
repair also compares the metadata with the live files of the table.
"""

import logging
from dataclasses import dataclass, replace
from functools import lru_cache

from ingestd.errors import IngestdError, UnsupportedError
from ingestd.paimon.catalog.base import Identifier
from ingestd.paimon.iceberg.hive_entry import HiveEntry, hive_entry
from ingestd.paimon.iceberg.metadata_store import MetadataStore
from ingestd.paimon.iceberg.metadata_writer import ATTEMPTS, MetadataWriter, SyncResult
from ingestd.paimon.iceberg.rest_entry import RestEntry, rest_entry
from ingestd.paimon.io.file_io import without_synced_names
from ingestd.paimon.spec import iceberg_options
from ingestd.paimon.spec.avro_blocks import BROKEN
from ingestd.paimon.spec.iceberg_rules import IcebergSettings, iceberg_settings
from ingestd.paimon.spec.options import refuse_unsupported
from ingestd.paimon.spec.paths import MAIN_BRANCH
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.table.commit.table_commit import CommitResult
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import (
    find_snapshot,
    latest_snapshot,
    latest_snapshot_id,
)
from ingestd.paimon.table.metadata.table_state import is_same_snapshot

_LOG = logging.getLogger(__name__)
_DATABASE = ".db"
_REMEMBERED = 256
"""Maximum number of tables whose Iceberg settings and last document a process remembers."""
_FAILURES = (IngestdError, *BROKEN)


def update_iceberg(
    table: FileStoreTable, *, tags: bool = False, committed: CommitResult | None = None
) -> bool:
    """Update a table's Iceberg metadata, if its options enable it; return False if that failed.

    Failures, also an invalid option value, are logged, not raised: they do not affect the commit of
    the table, and the next call writes the metadata that is missing. With `tags`, the tags of the
    metadata are updated as well. For branches other than the main branch, which have no Iceberg
    metadata, nothing is done. `committed` is a commit of this process, whose entries are then not
    read again.
    """
    try:
        if table.branch == MAIN_BRANCH and iceberg_settings(table.schema.options) is not None:
            sync_iceberg(table, tags=tags, committed=committed)
    except _FAILURES as error:
        context = {"table": table.name, "error": str(error)}
        _LOG.warning("iceberg_metadata_failed", extra={"ctx": context}, exc_info=True)
        return False
    return True


def sync_iceberg(
    table: FileStoreTable, *, tags: bool = False, committed: CommitResult | None = None
) -> SyncResult:
    """Write the Iceberg metadata that is missing, if the options of the table enable it.

    It is written up to the newest snapshot or, with `committed`, up to the snapshot of this commit;
    later snapshots are left to the processes that commit them. If none is missing, or with `tags`,
    snapshots that have expired in the table are removed from the metadata; with `tags`, its tags
    are updated.

    Raises UnsupportedError for a table or data files that Iceberg readers cannot read, ConfigError
    for invalid options or a name that is in use in the Hive Metastore, FormatError for damaged
    files, StorageError if the storage or the metastore fails, FileNotFoundError if other processes
    delete files at the same time.
    """
    writer = _open_writer(table)
    latest = None if writer is None else _latest(table, committed)
    if writer is None or latest is None:
        return SyncResult(None, None)
    result = writer.update(latest, {} if committed is None else committed.deltas)
    if result.after is not None and (tags or result.before == result.after):
        writer.renew(result.after, tags=tags)
    return result


def _latest(table: FileStoreTable, committed: CommitResult | None) -> Snapshot | None:
    """Return the snapshot of a commit if the table still has it, otherwise the newest snapshot.

    Returns None if the table has no snapshot.
    """
    if committed is not None and committed.status == "committed":
        known = committed.snapshot
        stored = None if known is None else find_snapshot(table.io, table.paths, known.id)
        if known is not None and is_same_snapshot(stored, known):
            return known
    return latest_snapshot(table.io, table.paths)


def repair_iceberg(table: FileStoreTable) -> SyncResult:
    """Write the Iceberg metadata that is missing, or all of it again if files are lost or wrong.

    All manifests are read, and the manifests of the newest snapshot are compared with its live
    files. If a newer snapshot is published meanwhile, this is repeated, at most three times. Raises
    the errors of `sync_iceberg`.
    """
    result = sync_iceberg(table, tags=True)
    writer, before = _open_writer(table), result.before
    for _ in range(ATTEMPTS):
        latest = latest_snapshot(table.io, table.paths)
        if writer is None or latest is None or result.restarted:
            break
        if latest.id == result.after:
            if writer.is_whole(latest):
                break
            if latest_snapshot_id(table.io, table.paths) == latest.id:
                writer.begin(latest)
                return SyncResult(before, latest.id, restarted=True)
        result = sync_iceberg(table, tags=True)
    return replace(result, before=before)


@dataclass(frozen=True, eq=False)
class _SameTable:
    """A table as a key: equal if path, name and branch are equal, and schema and FileIO identical.

    Identical means the same objects, not equal ones.
    """

    table: FileStoreTable

    def __hash__(self) -> int:
        return hash((self.table.path, id(self.table.schema)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _SameTable):
            return NotImplemented
        a, b = self.table, other.table
        places = [(table.path, table.name, table.branch) for table in (a, b)]
        return places[0] == places[1] and a.schema is b.schema and a.io is b.io


def _open_writer(table: FileStoreTable) -> MetadataWriter | None:
    return _remembered_writer(_SameTable(table))


@lru_cache(maxsize=_REMEMBERED)
def _remembered_writer(key: _SameTable) -> MetadataWriter | None:
    table = key.table
    settings = iceberg_settings(table.schema.options)
    if settings is None:
        return None
    refuse_unsupported(table.schema, for_write=True)
    # Metadata may be behind the table, so its names need no fsync, only their order.
    store = MetadataStore(without_synced_names(table.io), metadata_folder(table, settings))
    return MetadataWriter(table, settings, store, _catalog_entry(table))


def _catalog_entry(table: FileStoreTable) -> HiveEntry | RestEntry | None:
    """Return the entry in a catalog that a table requests; None if it requests no entry."""
    options = table.schema.options
    storage = iceberg_options.ICEBERG_STORAGE.of(options)
    if storage not in ("hive-catalog", "rest-catalog"):
        return None
    own = Identifier.parse(table.name)
    identifier = Identifier(
        iceberg_options.ICEBERG_DATABASE.of(options) or own.database,
        iceberg_options.ICEBERG_TABLE.of(options) or own.table,
    )
    if storage == "hive-catalog":
        return hive_entry(options, identifier)
    return rest_entry(options, identifier)


def metadata_folder(table: FileStoreTable, settings: IcebergSettings) -> str:
    """Return the directory of a table's Iceberg metadata.

    Raises UnsupportedError if the path depends on the database, as `settings` require, and the
    table is not in a database directory (DATABASE.db).
    """
    if not settings.in_catalog:
        return f"{table.path}/metadata"
    above, _, name = table.path.rpartition("/")
    warehouse, _, database = above.rpartition("/")
    if not database.endswith(_DATABASE):
        raise UnsupportedError(
            f"table {table.name} is not in a database directory of a warehouse: store its Iceberg "
            "metadata with 'metadata.iceberg.storage' = 'table-location'"
        )
    return f"{warehouse}/iceberg/{database.removesuffix(_DATABASE)}/{name}/metadata"
