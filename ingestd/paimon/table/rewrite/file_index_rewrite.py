"""Write the file indexes that the options of a table require for the data files that it has.

The data files stay; their manifest entries are replaced by entries with the indexes, in one COMPACT
snapshot per partition. Snapshots before it keep the entries without them.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/fileindex/#index-file
"""

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ingestd.errors import ConfigError
from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.spec.file_index import decode_file_index
from ingestd.paimon.spec.file_index_kinds import ColumnIndex
from ingestd.paimon.spec.file_index_options import column_indexes
from ingestd.paimon.spec.manifest import ManifestEntry
from ingestd.paimon.spec.options import refuse_unsupported
from ingestd.paimon.spec.paths import POSTPONE_BUCKET
from ingestd.paimon.spec.snapshot import BATCH_COMMIT_IDENTIFIER, Snapshot
from ingestd.paimon.table.files.data_file_indexes import (
    INDEX_SUFFIX,
    encode_indexes,
    index_file_path,
    read_file_indexes,
    with_index_data,
)
from ingestd.paimon.table.files.data_files import live_path, read_data_file
from ingestd.paimon.table.metadata.file_stats import same_comparison
from ingestd.paimon.table.metadata.file_store_scan import PartitionFilter, live_entries
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.rewrite.rewrite_commit import commit_rewrite, retry_lost
from ingestd.paimon.table.write.commit_message import CommitMessage, ManifestCommittable


@dataclass(frozen=True, slots=True)
class IndexedPartition:
    """A partition whose files lacked indexes.

    `files` is the number of its data files, `indexed` the number of files that got indexes.
    `snapshot` is None in a dry run.
    """

    partition: bytes
    files: int
    indexed: int
    snapshot: Snapshot | None = None


def rewrite_file_indexes(
    table: FileStoreTable,
    *,
    now_ms: int,
    partition_filter: PartitionFilter | None = None,
    dry_run: bool = False,
) -> Iterator[IndexedPartition]:
    """Write missing file indexes; yield each partition after its commit.

    The indexes of a file are written unless it has exactly those that the options require. With
    `dry_run`, nothing is written. `partition_filter` selects partitions (None: all). Raises
    ConfigError for a table whose options require no indexes, UnsupportedError for a table that
    cannot be written, FormatError for a damaged file, and CommitConflictError if other writers
    replaced files of a partition three times; partitions that were committed before keep their
    indexes.
    """
    if not column_indexes(table.schema):
        raise ConfigError(
            f"table {table.name} has no file indexes: name columns in an option such as "
            "'file-index.bloom-filter.columns' first"
        )
    refuse_unsupported(table.schema, for_write=not dry_run)
    entries = live_entries(table, load_state(table).manifests, partition_filter=partition_filter)
    for partition in dict.fromkeys(entry.partition for entry in entries):
        rewrite = partial(_rewritten, table, partition, now_ms, dry_run=dry_run)
        done = retry_lost(table, "file_index_rewrite_lost", rewrite)
        if done.indexed:
            yield done


def _rewritten(
    table: FileStoreTable, partition: bytes, now_ms: int, *, dry_run: bool
) -> IndexedPartition:
    state = load_state(table)
    live = live_entries(table, state.manifests, partition_filter=frozenset({partition}))
    entries = [entry for entry in live if entry.bucket != POSTPONE_BUCKET]
    lacking = [entry for entry in entries if _lacks_indexes(table, entry)]
    done = IndexedPartition(partition, len(entries), len(lacking))
    if dry_run or not lacking:
        return done
    messages: list[CommitMessage] = []

    def abort_files() -> None:
        _delete_indexes(table, messages)

    try:
        for entry in lacking:
            indexed = _indexed(table, entry)
            key = (partition, entry.bucket, entry.total_buckets)
            if indexed is not None:
                message = CommitMessage(
                    *key, compact_before=(entry.file,), compact_after=(indexed,)
                )
                messages.append(message)
    except BaseException:
        abort_files()
        raise
    if not messages:
        return replace(done, indexed=0)
    committable = ManifestCommittable(BATCH_COMMIT_IDENTIFIER, tuple(messages))
    result = commit_rewrite(table, committable, state=state, now_ms=now_ms, abort_files=abort_files)
    return replace(done, indexed=len(messages), snapshot=result.snapshot)


def _lacks_indexes(table: FileStoreTable, entry: ManifestEntry) -> bool:
    wanted = {(index.name, index.kind) for index in _indexes_of(table, entry.file)}
    present = read_file_indexes(table, entry.partition, entry.bucket, entry.file) or {}
    return wanted != {(name, kind) for name, kinds in present.items() for kind in kinds}


def _indexes_of(table: FileStoreTable, file: DataFileMeta) -> list[ColumnIndex]:
    """Return the indexes that a file can have, with the names of the columns in its own schema.

    Columns that it lacks are left out, and those whose type has changed so that readers would not
    use the index.
    """
    columns = {field.id: field for field in table.schemas(file.schema_id).fields}
    indexes = []
    for index in column_indexes(table.schema):
        new = table.schema.field(index.column)
        old = columns.get(new.id)
        if old is not None and same_comparison(old.type, new.type):
            indexes.append(replace(index, column=old.name))
    return indexes


def _indexed(table: FileStoreTable, entry: ManifestEntry) -> DataFileMeta | None:
    """Return the manifest entry of a file with its indexes; None if no index changes.

    Some indexes cannot hold all values, and are left out. A new index file may be written.
    """
    file, schema = entry.file, table.schemas(entry.file.schema_id)
    indexes = _indexes_of(table, file)
    then = table.with_schema(replace(schema, options=table.schema.options))
    fields = schema.select(list(dict.fromkeys(index.column for index in indexes)))
    rows = read_data_file(then, entry.partition, entry.bucket, file, fields)
    others = tuple(name for name in file.extra_files if not name.endswith(INDEX_SUFFIX))
    bare = replace(file, embedded_index=None, extra_files=others)
    data = encode_indexes(schema, rows, indexes)
    if data is None:
        return bare
    present = read_file_indexes(table, entry.partition, entry.bucket, file) or {}
    if decode_file_index(data, f"of {file.file_name}") == present:
        return None
    # A new name: older snapshots keep the index file that they refer to.
    path = live_path(table, entry.partition, entry.bucket, file)
    return with_index_data(table, path, bare, data, f"-{uuid.uuid4()}{INDEX_SUFFIX}")


def _delete_indexes(table: FileStoreTable, messages: Sequence[CommitMessage]) -> None:
    """Delete the new index files of messages that will not be committed; the data files stay."""
    for message in messages:
        for before, after in zip(message.compact_before, message.compact_after, strict=True):
            for name in set(after.extra_files) - set(before.extra_files):
                path = index_file_path(table, message.partition, message.bucket, after, name)
                table.io.delete_quietly(path)
