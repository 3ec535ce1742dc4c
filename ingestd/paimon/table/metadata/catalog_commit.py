"""Commit snapshots through the server of a catalog instead of writing snapshot files.

Specification: https://paimon.apache.org/docs/1.4/concepts/concurrency-control/#snapshot-conflict

The request includes the changes of each partition, from which servers maintain statistics.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ingestd.paimon.spec.manifest import ManifestEntry, by_partition, file_totals
from ingestd.paimon.spec.paths import java_text
from ingestd.paimon.spec.snapshot import Snapshot

if TYPE_CHECKING:  # the handle of a table names the protocol
    from ingestd.paimon.table.metadata.file_store_table import FileStoreTable


@dataclass(frozen=True, slots=True)
class PartitionChange:
    """The change of one partition by a snapshot: rows, bytes and files added minus deleted.

    `spec` are the values of the partition columns as text, by name. `last_file_creation_ms` is in
    milliseconds of the epoch, `total_buckets` the bucket count of the files.
    """

    spec: Mapping[str, str]
    record_count: int
    file_size: int
    file_count: int
    last_file_creation_ms: int
    total_buckets: int


class SnapshotCommit(Protocol):
    """The part of a catalog that publishes snapshots of a table, and deletes them in a rollback."""

    def commit(self, branch: str, snapshot: Snapshot, changes: Iterable[PartitionChange]) -> bool:
        """Publish a snapshot of a branch; return False if its id belongs to another commit.

        `changes` are the changes of the partitions by the snapshot. Raises StorageError if the
        outcome is unknown; the caller must then look up the snapshot.
        """
        ...

    def rollback(self, branch: str, snapshot_id: int, tag: str | None) -> None:
        """Delete the snapshots of a branch after the snapshot with the id `snapshot_id`.

        `tag` is the name of a tag of this snapshot if the snapshot exists only as a tag, else None.
        Raises ConfigError if the snapshot does not exist, and StorageError if the outcome is
        unknown: the snapshots may then have been deleted.
        """
        ...


def partition_changes(
    table: "FileStoreTable", entries: Iterable[ManifestEntry]
) -> list[PartitionChange]:
    """Return the change of each partition, summed over the delta entries of a snapshot.

    Partitions are in the order in which they first appear in `entries`.
    """
    return [_sum(table, partition, own) for partition, own in by_partition(entries).items()]


def _sum(
    table: "FileStoreTable", partition: bytes, entries: list[ManifestEntry]
) -> PartitionChange:
    totals = file_totals(entries)
    return PartitionChange(
        partition_spec(table, partition),
        totals.rows,
        totals.bytes,
        totals.files,
        totals.newest_ms or 0,
        entries[-1].total_buckets,
    )


def partition_spec(table: "FileStoreTable", partition: bytes) -> dict[str, str]:
    """Return the values of a serialized partition as text by column, in the order of the keys.

    Null and blank values are replaced by the option `partition.default-name`.
    """
    spec = {}
    values = table.partition_values(partition)
    for name, t, value in zip(
        table.schema.partition_keys, table.partition_types, values, strict=True
    ):
        legacy = table.options.partition_legacy_name
        text = "" if value is None else java_text(name, t, value, legacy=legacy)
        spec[name] = text if text.strip() else table.options.partition_default_name
    return spec
