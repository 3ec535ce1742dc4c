"""Another number of buckets for a table: its rows rewritten, partition by partition.

Each OVERWRITE snapshot replaces whole partitions, and only if their files are still those that
were read: nothing that another process writes meanwhile is lost. A partition keeps its old number
of buckets until it is rewritten, so an interrupted rescale goes on where it was when it is called
again.

Specification: https://paimon.apache.org/docs/1.4/maintenance/rescale-bucket/
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from ingestd.errors import ConfigError
from ingestd.paimon.spec.index_manifest import IndexManifestEntry
from ingestd.paimon.spec.manifest import ManifestEntry
from ingestd.paimon.spec.options import BucketMode, bucket_mode, refuse_unsupported
from ingestd.paimon.spec.paths import POSTPONE_BUCKET
from ingestd.paimon.spec.snapshot import BATCH_COMMIT_IDENTIFIER, Snapshot
from ingestd.paimon.table.compact.bucket import CompactBucket
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.scan import PartitionFilter, live_entries
from ingestd.paimon.table.metadata.table_state import TableState, load_state
from ingestd.paimon.table.metadata.texts import partition_name
from ingestd.paimon.table.rewrite.rescale_rows import Rewrite, rewritten
from ingestd.paimon.table.rewrite.rewrite_commit import delete_made, land
from ingestd.paimon.table.write.commit_message import CommitMessage, ManifestCommittable

_Index = dict[int, list[IndexManifestEntry]]
COMMIT_BYTES = 1 << 30
"""Partitions are committed together until they have this many bytes."""


@dataclass(frozen=True, slots=True)
class PartitionRescale:
    """A partition that is in another number of buckets than it should."""

    partition: bytes
    buckets: int
    entries: tuple[ManifestEntry, ...]

    @property
    def rows(self) -> int:
        """Rows that its files hold, before they are merged."""
        return sum(entry.file.row_count for entry in self.entries)

    @property
    def bytes(self) -> int:
        """Bytes of its files."""
        return sum(entry.file.file_size for entry in self.entries)


@dataclass(frozen=True, slots=True)
class Rescaled:
    """What was committed together: the partitions, the rows they have, and the snapshot."""

    partitions: tuple[PartitionRescale, ...]
    rows: int
    files: int
    snapshot: Snapshot | None


def refuse_rescale(table: FileStoreTable, buckets: int) -> None:
    """ConfigError for a table or a number of buckets that cannot be."""
    mode = bucket_mode(table.schema)
    if mode not in (BucketMode.HASH_FIXED, BucketMode.POSTPONE):
        raise ConfigError(
            f"table {table.name} has 'bucket' = '{table.options.bucket}': only tables with a fixed "
            "number of buckets, or with -2, can be rescaled"
        )
    if buckets < 1:
        raise ConfigError(f"{buckets} is no number of buckets: use at least 1")
    refuse_unsupported(table.schema, for_write=True)


def plan_rescale(
    table: FileStoreTable,
    buckets: int,
    partition_filter: PartitionFilter | None = None,
    state: TableState | None = None,
) -> list[PartitionRescale]:
    """The partitions that `rescale` would rewrite; only manifests are read.

    Raises as `refuse_rescale`; ConfigError if rows wait for their bucket in one of them.
    """
    refuse_rescale(table, buckets)
    state = load_state(table) if state is None else state
    parts: dict[bytes, list[ManifestEntry]] = defaultdict(list)
    for entry in live_entries(table, state.manifests, partition_filter=partition_filter):
        parts[entry.partition].append(entry)
    plans = []
    for partition, entries in parts.items():
        if all(entry.total_buckets == buckets for entry in entries):
            continue
        if any(entry.bucket == POSTPONE_BUCKET for entry in entries):
            name = partition_name(table, partition)
            raise ConfigError(
                f"table {table.name}{', partition ' + name if name else ''}: rows wait for their "
                "bucket; give them one first with `ingestd compact`"
            )
        plans.append(PartitionRescale(partition, entries[0].total_buckets, tuple(entries)))
    return plans


def rescale(
    table: FileStoreTable,
    buckets: int,
    *,
    clock_ms: Callable[[], int],
    partition_filter: PartitionFilter | None = None,
) -> Iterator[Rescaled]:
    """Rewrite the partitions that lie in another number of buckets; what each commit has done.

    `table` is as of a schema whose option `bucket` is that number already, unless rows of the
    table wait for their buckets. Raises as `plan_rescale`; CommitConflictError if the files of a
    partition were changed meanwhile; FormatError for damaged files. What was committed stays, what
    was not leaves nothing behind. CommitUnknownError if the storage does not say: files stay.
    """
    if bucket_mode(table.schema) is BucketMode.HASH_FIXED and table.options.bucket != buckets:
        raise ValueError(f"option 'bucket' is {table.options.bucket}, not {buckets}")
    plans = plan_rescale(table, buckets, partition_filter)
    for together in _groups(plans):
        state = load_state(table)
        now = plan_rescale(table, buckets, frozenset(one.partition for one in together), state)
        if now:
            yield _rescaled(table, buckets, state, now, clock_ms())


def _groups(plans: Iterable[PartitionRescale]) -> Iterator[list[PartitionRescale]]:
    group, size = list[PartitionRescale](), 0
    for plan in plans:
        group.append(plan)
        size += plan.bytes
        if size >= COMMIT_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group


def _rescaled(
    table: FileStoreTable,
    buckets: int,
    state: TableState,
    plans: Sequence[PartitionRescale],
    now_ms: int,
) -> Rescaled:
    made: list[CommitMessage] = []
    try:
        for plan in plans:
            rewrite = Rewrite(table, plan.partition, plan.buckets, buckets)
            made.extend(rewritten(rewrite, _old_buckets(table, state, plan)))
    except BaseException:
        delete_made(table, made)
        raise
    committable = ManifestCommittable(
        BATCH_COMMIT_IDENTIFIER,
        tuple(made),
        overwrite=True,
        replaced=frozenset(plan.partition for plan in plans),
        rewrites=frozenset(entry.identifier for plan in plans for entry in plan.entries),
    )
    abort_files = partial(delete_made, table, made)
    result = land(table, committable, abort_files, state=state, now_ms=now_ms)
    files = [file for message in made for file in message.new_files]
    return Rescaled(
        tuple(plans), sum(file.row_count for file in files), len(files), result.snapshot
    )


def _old_buckets(
    table: FileStoreTable, state: TableState, plan: PartitionRescale
) -> list[CompactBucket]:
    files: dict[int, list[ManifestEntry]] = defaultdict(list)
    for entry in plan.entries:
        files[entry.bucket].append(entry)
    index: _Index = defaultdict(list)
    for one in state.index_of(plan.partition):
        index[one.bucket].append(one)
    return [
        CompactBucket(
            table,
            plan.partition,
            bucket,
            plan.buckets,
            tuple(entry.file for entry in entries),
            tuple(index[bucket]),
        )
        for bucket, entries in sorted(files.items())
    ]
