"""Read the partitions that a table does not have from its fallback branch.

Specification: https://paimon.apache.org/docs/1.4/maintenance/manage-branches/#batch-reading-from-fallback-branch
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pyarrow as pa

from ingestd.errors import ConfigError
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.manifest import ManifestEntry
from ingestd.paimon.spec.options import refuse_unsupported
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.paimon.table.metadata.file_store_scan import live_files
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.time_travel import on_branch
from ingestd.paimon.table.read.scan_options import BETWEEN, ScanTarget, scan_target
from ingestd.paimon.table.read.scan_plan import hides_level_0
from ingestd.paimon.table.read.table_read import TableReader

OPTION = honoured.SCAN_FALLBACK.name


@dataclass(frozen=True, slots=True)
class FallbackBranch:
    """A fallback branch and its snapshot to read; `table` is the table on this branch."""

    table: FileStoreTable
    snapshot: Snapshot

    def partitions(self, table: FileStoreTable, snapshot: Snapshot | None) -> frozenset[bytes]:
        """Return the partitions that readers see in the branch, but not in `snapshot` of `table`.

        They are serialized rows. If `snapshot` is None, the table has no partitions. Raises
        FormatError if a manifest is missing or damaged.
        """
        own = visible_partitions(table, snapshot)
        return visible_partitions(self.table, self.snapshot) - own


def fallback_branch(table: FileStoreTable, target: ScanTarget) -> FallbackBranch | None:
    """Return the fallback branch of a table, with the snapshot that a scan target selects on it.

    `target` is the target of the scan of the table itself. Returns None if the table has no
    fallback branch, or the branch has no snapshot for the target. Raises ConfigError if the branch
    has other columns or (if the table has one) another primary key, or an option that selects
    changes; ArgumentError if it does not exist; UnsupportedError if it cannot be read.
    """
    name = honoured.SCAN_FALLBACK.of(table.schema.options)
    if not name or not name.strip():
        return None
    branch = on_branch(table, name)
    chosen = (target.of_branch or scan_target)(branch)
    if chosen.between is not None:
        raise ConfigError(
            f"table {table.name}: its fallback branch '{name}' has the option '{BETWEEN}', which "
            "selects changes; remove it"
        )
    if chosen.snapshot is None:
        return None
    branch = chosen.at(branch)
    _check_same_columns(target.at(table), branch)
    refuse_unsupported(branch.schema, for_write=False)
    return FallbackBranch(branch, chosen.snapshot)


def snapshot_rows(
    reader: TableReader, snapshot: Snapshot | None, fallback: FallbackBranch | None
) -> Iterator[pa.Table]:
    """Yield the rows of a snapshot (None: no rows) and of the fallback branch, in parts.

    `reader` selects rows and columns of both. Only those partitions of the branch are read that the
    snapshot does not have; `fallback` is None if the table has no such branch. Raises
    UnsupportedError for a table that cannot be read correctly, ArgumentError for an unknown column,
    FormatError for a file that is missing or damaged.
    """
    if snapshot is not None:
        yield from reader.rows(snapshot)
    if fallback is not None:
        missing = fallback.partitions(reader.table, snapshot)
        other = replace(reader, table=fallback.table, partition_filter=missing)
        yield from other.rows(fallback.snapshot)


def visible_partitions(table: FileStoreTable, snapshot: Snapshot | None) -> frozenset[bytes]:
    """Return the partitions, as serialized rows, of a snapshot with files that batch readers see.

    Postponed files are not seen, nor files of level 0 if `hides_level_0`. If `snapshot` is None,
    there are no partitions. Raises FormatError if a manifest is missing or damaged.
    """
    hidden = hides_level_0(table)

    def visible(entry: ManifestEntry) -> bool:
        return entry.bucket >= 0 and not (hidden and entry.file.level == 0)

    return frozenset(entry.partition for entry in live_files(table, snapshot) if visible(entry))


def _check_same_columns(table: FileStoreTable, branch: FileStoreTable) -> None:
    own, other = table.schema, branch.schema
    same_keys = not own.primary_keys or own.primary_keys == other.primary_keys
    if _columns(own) != _columns(other) or not same_keys:
        raise ConfigError(
            f"table {table.name}: its fallback branch '{branch.branch}' has other columns or "
            f"another primary key; make them equal, or remove the option '{OPTION}'"
        )


def _columns(schema: TableSchema) -> list[tuple[str, object]]:
    return [(field.name, field.type.as_nullable()) for field in schema.fields]
