"""Delete the older rows of keys that occur in several buckets.

Files with older rows are rewritten without these rows, in the same level, by a COMPACT snapshot.
Readers of changes get no deletion, because the key remains. Only the files in which the keys were
found are rewritten; rows appended at the same time are kept.

Specification: https://paimon.apache.org/docs/1.4/concepts/spec/tableindex/#dynamic-bucket-index
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from ingestd.errors import ConfigError
from ingestd.paimon.format.base import BatchSize
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.arrow import array_of, to_arrow_type
from ingestd.paimon.spec.manifest import BucketKey, ManifestEntry
from ingestd.paimon.spec.merge_rules import merge_rules
from ingestd.paimon.spec.snapshot import BATCH_COMMIT_IDENTIFIER, Snapshot
from ingestd.paimon.table.compact.compact_bucket import CompactBucket
from ingestd.paimon.table.compact.rolling_write import RollingWriter
from ingestd.paimon.table.files.data_files import SYSTEM_FIELDS, DataFileReader
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.read.key_filter import KeyFilter
from ingestd.paimon.table.rewrite.bucket_keys import SharedHash
from ingestd.paimon.table.rewrite.rewrite_commit import (
    commit_rewrite,
    written_messages,
)
from ingestd.paimon.table.write.commit_message import CommitMessage, ManifestCommittable

_BATCH_SIZE = BatchSize(8 << 20)


@dataclass(frozen=True, slots=True)
class Dropped:
    """The number of deleted rows and of rewritten files, and the snapshot (None: no deletion)."""

    rows: int = 0
    files: int = 0
    snapshot: Snapshot | None = None


def refuse_undecided(table: FileStoreTable) -> None:
    """Raise ConfigError if sequence numbers do not determine which rows of a key are outdated.

    This depends on options of the table, such as the merge engine.
    """
    rules = merge_rules(table.schema)
    reasons = {
        f"'merge-engine' = '{rules.engine}'": rules.engine != "deduplicate",
        "'sequence.field'": bool(rules.sequence_fields),
        "'deletion-vectors.enabled' = 'true'": honoured.DELETION_VECTORS.of(table.schema.options),
    }
    reason = next((text for text, holds in reasons.items() if holds), None)
    if reason is not None:
        raise ConfigError(
            f"table {table.name} has {reason}: which rows of a key in several buckets are outdated "
            "does not follow from their sequence numbers; overwrite the partition with one row for "
            "each key"
        )


def drop_older(
    table: FileStoreTable,
    entries: Iterable[ManifestEntry],
    shared: Sequence[tuple[bytes, SharedHash]],
    *,
    now_ms: int,
) -> Dropped:
    """Delete the rows of shared keys, except in the bucket of the newest row of each key.

    `shared` has pairs of a serialized partition and a hash; `entries` are the live files in which
    the hashes were found. Raises CommitConflictError if another process has replaced one of the
    files, FormatError for a damaged file; the written files are then deleted.
    """
    state = load_state(table)
    to_delete = _keys_to_delete(table, shared)
    rewrites = (
        _without(table, entry, keys)
        for entry in entries
        if (keys := to_delete.get((entry.partition, entry.bucket))) is not None
    )
    messages = written_messages(table, (message for message in rewrites if message is not None))
    if not messages:
        return Dropped()
    committable = ManifestCommittable(BATCH_COMMIT_IDENTIFIER, messages)
    committed = commit_rewrite(table, committable, state=state, now_ms=now_ms)
    before = sum(file.row_count for message in messages for file in message.compact_before)
    after = sum(file.row_count for message in messages for file in message.compact_after)
    return Dropped(before - after, len(messages), committed.snapshot)


def _keys_to_delete(
    table: FileStoreTable, shared: Iterable[tuple[bytes, SharedHash]]
) -> Mapping[BucketKey, KeyFilter]:
    """Return the keys to delete, by partition and bucket."""
    keys_by_bucket: dict[BucketKey, list[tuple[object, ...]]] = defaultdict(list)
    for partition, shared_hash in shared:
        for key, keeper in zip(shared_hash.keys, shared_hash.keepers, strict=True):
            for bucket in shared_hash.buckets:
                if bucket != keeper:
                    keys_by_bucket[partition, bucket].append(key)
    return {
        bucket_key: KeyFilter({}, _table_of(table, keys))
        for bucket_key, keys in keys_by_bucket.items()
    }


def _table_of(table: FileStoreTable, keys: Sequence[tuple[object, ...]]) -> pa.Table:
    columns = zip(*keys, strict=True)
    return pa.table(
        {
            field.name: array_of(list(cells), to_arrow_type(field.type))
            for field, cells in zip(table.schema.key_fields, columns, strict=True)
        }
    )


def _without(table: FileStoreTable, entry: ManifestEntry, keys: KeyFilter) -> CommitMessage | None:
    """Rewrite a file without the rows of some keys; return None if it has no such row."""
    names = table.schema.trimmed_primary_keys
    bucket_key = (entry.partition, entry.bucket)
    gone = sum(
        int(np.count_nonzero(keys.mask(entry.partition, rows, names)))
        for rows in _parts(table, entry, system=False)
    )
    if not gone:
        return None
    bucket = CompactBucket(table, *bucket_key, entry.total_buckets, (entry.file,))
    message = CommitMessage(*bucket_key, entry.total_buckets, compact_before=(entry.file,))
    if gone == entry.file.row_count:
        return message
    writer = RollingWriter(bucket.target(entry.file.level))
    try:
        for rows in _parts(table, entry, system=True):
            kept = ~np.asarray(keys.mask(entry.partition, rows, names))
            writer.add(rows.filter(pa.array(kept)))
        return replace(message, compact_after=tuple(writer.close()))
    except BaseException:
        writer.abort()
        raise


def _parts(table: FileStoreTable, entry: ManifestEntry, *, system: bool) -> Iterator[pa.Table]:
    fields = (*table.schema.fields, *SYSTEM_FIELDS) if system else table.schema.key_fields
    reader = DataFileReader(table)
    for _, rows in reader.batches(entry.partition, entry.bucket, entry.file, fields, _BATCH_SIZE):
        yield rows
