"""Whether a change may land on what others have committed meanwhile.

Specification: https://paimon.apache.org/docs/1.4/concepts/concurrency-control/

Pure: entries in, an error or nothing out.
A plain append of new files needs none of the file checks; it can only meet a foreign change of
the hash index or of the bucket count.
"""

import itertools
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence

from ingestd.errors import CommitConflictError, SchemaConflictError
from ingestd.paimon.spec.binary_row import deserialize_row
from ingestd.paimon.spec.index_manifest import HASH_INDEX
from ingestd.paimon.spec.manifest import FileKind, ManifestEntry
from ingestd.paimon.spec.options import BucketMode, bucket_mode, core_options
from ingestd.paimon.spec.schema import TableSchema
from ingestd.paimon.spec.schema_rules import bucket_number
from ingestd.paimon.spec.snapshot import CommitKind
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import find_snapshot
from ingestd.paimon.table.metadata.table_state import TableState


def check_files(
    table: FileStoreTable,
    live: Iterable[ManifestEntry],
    delta: Sequence[ManifestEntry],
    *,
    same_buckets: bool = True,
) -> None:
    """Check the entries of a change against the live files of the partitions that it touches.

    A file may not be added twice, nor deleted when it is gone already, buckets of a partition
    must agree on their number, and files of a level above 0 must not overlap in key. Raises
    CommitConflictError, which a new plan may mend, and SchemaConflictError if the option `bucket`
    was altered and the rows were not rescaled.
    """
    _check_delta(table, delta)
    merged = {entry.identifier: entry for entry in live}
    for entry in delta:
        if entry.kind == FileKind.DELETE:
            if merged.pop(entry.identifier, None) is None:
                raise _conflict(table, entry, "was removed by another commit")
        elif entry.identifier in merged:
            raise _conflict(table, entry, "is in the table already")
        else:
            merged[entry.identifier] = entry
    if same_buckets:
        _check_bucket_counts(table, merged.values())
    if table.schema.primary_keys:
        _check_key_ranges(table, merged.values(), {(e.partition, e.bucket) for e in delta})


def check_hash_index(
    table: FileStoreTable, planned: TableState, current: TableState, partitions: Collection[bytes]
) -> None:
    """Refuse to go on when another writer has changed a hash index that the change relies on.

    Its buckets were chosen by the old index: the same key could end up in two buckets.
    """
    if planned.index_entries is current.index_entries:
        return
    before, after = _hash_files(planned), _hash_files(current)
    if any(before.get(partition) != after.get(partition) for partition in partitions):
        raise CommitConflictError(
            f"table {table.name}: another writer has changed the hash index of a partition of this "
            "commit; load the state again and write again (a dynamic-bucket table takes one writer)"
        )


def check_key_places(table: FileStoreTable, planned: TableState, current: TableState) -> None:
    """Refuse to go on when another writer may have moved keys between partitions.

    Rows were placed by where their keys were: a key could end up in two partitions.
    """
    if bucket_mode(table.schema) is not BucketMode.KEY_DYNAMIC or current.snapshot is None:
        return
    first = planned.snapshot.id if planned.snapshot else 0
    for snapshot_id in range(first + 1, current.snapshot.id + 1):
        snapshot = find_snapshot(table.io, table.paths, snapshot_id)
        if snapshot is None or snapshot.commit_kind in (CommitKind.APPEND, CommitKind.OVERWRITE):
            raise CommitConflictError(
                f"table {table.name}: another writer has written rows since this commit was "
                "planned, and keys may have moved between partitions; load the state again and "
                "write again (a table whose keys move between partitions takes one writer)"
            )


def check_bucket_option(table: FileStoreTable, latest: TableSchema) -> None:
    """Refuse files whose buckets were chosen under another bucket count than is now in force."""
    ours, theirs = table.options.bucket, core_options(latest).bucket
    if ours != theirs:
        raise CommitConflictError(
            f"table {table.name}: option 'bucket' was changed from {ours} to {theirs} meanwhile; "
            "open the table again and write again"
        )


def was_rescaled(table: FileStoreTable) -> bool:
    """Whether partitions may lie in another number of buckets than the table has now."""
    number = table.options.bucket
    older = (table.schemas(schema_id) for schema_id in range(table.schema.id))
    return number > 0 and any(bucket_number(schema.options) != number for schema in older)


def _check_delta(table: FileStoreTable, delta: Sequence[ManifestEntry]) -> None:
    added = {entry.identifier for entry in delta if entry.kind == FileKind.ADD}
    for entry in delta:
        if entry.kind == FileKind.DELETE and entry.identifier in added:
            raise _conflict(table, entry, "is both added and deleted by the commit")


def _check_bucket_counts(table: FileStoreTable, entries: Iterable[ManifestEntry]) -> None:
    counts: dict[bytes, int] = {}
    for entry in entries:
        if entry.total_buckets <= 0:
            continue
        known = counts.setdefault(entry.partition, entry.total_buckets)
        if known != entry.total_buckets:
            if entry.total_buckets == table.options.bucket:
                raise _not_rescaled(table, known)
            problem = f"has {entry.total_buckets} buckets where its partition has {known}"
            raise _conflict(table, entry, problem)


def _not_rescaled(table: FileStoreTable, buckets: int) -> SchemaConflictError:
    number, warehouse = table.options.bucket, table.path.rsplit("/", 2)[0]
    return SchemaConflictError(
        f"table {table.name}: option 'bucket' was altered to {number}, and rows still are in "
        f"{buckets} buckets, so nothing can be written there; rewrite them with `ingestd rescale "
        f"{warehouse} {table.name} --buckets {number}`, or set the option back to {buckets}"
    )


def _check_key_ranges(
    table: FileStoreTable,
    entries: Iterable[ManifestEntry],
    changed: Collection[tuple[bytes, int]],
) -> None:
    types = [table.schema.field(name).type for name in table.schema.trimmed_primary_keys]
    runs: dict[tuple[bytes, int, int], list[ManifestEntry]] = defaultdict(list)
    for entry in entries:
        if entry.file.level >= 1 and (entry.partition, entry.bucket) in changed:
            runs[entry.partition, entry.bucket, entry.file.level].append(entry)
    for run in runs.values():
        ranges = sorted(
            (
                (deserialize_row(types, e.file.min_key), deserialize_row(types, e.file.max_key), e)
                for e in run
            ),
            key=lambda item: item[0],
        )
        for (_, high, _), (low, _, entry) in itertools.pairwise(ranges):
            if not high < low:
                raise _conflict(table, entry, "overlaps in key with a file of its level")


def _hash_files(state: TableState) -> Mapping[bytes, frozenset[str]]:
    files: dict[bytes, set[str]] = defaultdict(set)
    for (partition, _, index_type), entry in state.index_entries.items():
        if index_type == HASH_INDEX:
            files[partition].add(entry.file_name)
    return {partition: frozenset(names) for partition, names in files.items()}


def _conflict(table: FileStoreTable, entry: ManifestEntry, problem: str) -> CommitConflictError:
    return CommitConflictError(
        f"table {table.name}: file {entry.file.file_name} (bucket {entry.bucket}, level "
        f"{entry.file.level}) {problem}; plan this change again on the newest snapshot"
    )
