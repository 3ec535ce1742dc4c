"""Compact small files of append tables, and remove rows marked by deletion vectors.

In tables with buckets, files adjacent by sequence number are joined, so that rows stay in order. In
tables without buckets, files are grouped by size.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/compaction/#compaction
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.compaction_options import compaction_options
from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.spec.index_manifest import IndexManifestEntry
from ingestd.paimon.table.compact.compact_bucket import CompactBucket
from ingestd.paimon.table.compact.merge_tree_compact import small_file_size
from ingestd.paimon.table.compact.rolling_write import RollingWriter
from ingestd.paimon.table.compact.sorted_input import batch_size
from ingestd.paimon.table.files.data_files import DataFileReader
from ingestd.paimon.table.files.deletion_vectors import DeletionVectors, write_deletion_vectors
from ingestd.paimon.table.files.row_tracking import rewritten_files, rewritten_table
from ingestd.paimon.table.write.commit_message import CommitMessage

_FULL_FILES = 3
"""Minimum number of files that a full compaction of a bucket joins."""


@dataclass(frozen=True, slots=True)
class AppendPlan:
    """A planned compaction of files of an append table's bucket.

    `inputs` are the files to join, in this order; `reason` names the trigger.
    """

    bucket: CompactBucket
    inputs: tuple[DataFileMeta, ...]
    reason: str

    def run(self) -> tuple[CommitMessage, tuple[DataFileMeta, ...]]:
        """Compact the files; return the commit message and the new files.

        If this fails, the new files are deleted. Raises FormatError for a file that is missing or
        damaged, StorageError if the storage fails.
        """
        table = rewritten_table(self.bucket.table)
        bucket = replace(self.bucket, table=table)
        vectors = DeletionVectors.of(table, bucket.index)
        reader = DataFileReader(table, vectors)
        writer = RollingWriter(bucket.target(0), self.inputs[0].min_sequence_number)
        try:
            for file in self.inputs:
                bucket_key = (bucket.partition, bucket.bucket)
                for _, rows in reader.batches(
                    *bucket_key, file, table.schema.fields, batch_size(1)
                ):
                    writer.add(rows)
            files = rewritten_files(self.bucket.table, writer.close())
            index, gone = _index_without(
                bucket, vectors, {input_file.file_name for input_file in self.inputs}
            )
        except BaseException:
            writer.abort()
            raise
        message = CommitMessage(
            bucket.partition,
            bucket.bucket,
            bucket.total_buckets,
            compact_before=self.inputs,
            compact_after=files,
            new_index_files=index,
            removed_index_files=gone,
        )
        return message, files


def plan_append(bucket: CompactBucket, *, has_buckets: bool, full: bool) -> list[AppendPlan]:
    """Plan the compactions of a bucket, or of a partition of a table without buckets.

    `has_buckets` is whether the table has fixed buckets. With `full`, two small files (three
    with fixed buckets) suffice for a compaction, and all files with deleted rows are rewritten.
    Returns [] if no compaction is due, and for a table whose files are left to Paimon's clustering.
    """
    if honoured.INCREMENTAL_CLUSTERING.of(bucket.table.schema.options):
        return []
    deleted = _deleted_rows(bucket)
    if has_buckets:
        groups = _bucket_groups(bucket, deleted, full=full)
    else:
        groups = _packed(bucket, deleted, full=full)
    reason = "full" if full else "small-files"
    return [AppendPlan(bucket, tuple(files), reason) for files in groups]


def _bucket_groups(
    bucket: CompactBucket, deleted: dict[str, int], *, full: bool
) -> list[list[DataFileMeta]]:
    files = sorted(bucket.files, key=lambda file: file.min_sequence_number)
    if full:
        chosen = _full(bucket, files, deleted)
        return [chosen] if chosen else []
    options, target = compaction_options(bucket.table.schema), bucket.table.options.target_file_size
    window: list[DataFileMeta] = []
    for file in files:
        window.append(file)
        if len(window) >= options.min_file_num:
            return [window]
        if sum(input_file.file_size for input_file in window) >= 2 * target:
            window.pop(0)
    return []


def _full(
    bucket: CompactBucket, files: list[DataFileMeta], deleted: dict[str, int]
) -> list[DataFileMeta]:
    """Return the files of a bucket for a full compaction: all but the leading large files.

    `deleted` has the number of deleted rows of files with deletion vectors; such files are not
    skipped. Returns [] if too few of the files are small. With deletion vectors, or if the options
    require that all files are rewritten, the number of small files does not matter.
    """
    table = bucket.table
    vectors = honoured.DELETION_VECTORS.of(table.schema.options)
    rewrites_all = compaction_options(table.schema).rewrites_all
    if not rewrites_all and not vectors and len(files) < _FULL_FILES:
        return []
    small = small_file_size(table.options.target_file_size)
    at = 0
    while not rewrites_all and at < len(files):
        if files[at].file_size < small or files[at].file_name in deleted:
            break
        at += 1
    rest = files[at:]
    if vectors or rewrites_all:
        settled = len(rest) == 1 and rest[0].file_name not in deleted and not rewrites_all
        return [] if settled else rest
    few = sum(1 for file in rest if file.file_size < small)
    return rest if few > len(rest) - few and len(rest) >= _FULL_FILES else []


def _packed(
    bucket: CompactBucket, deleted: dict[str, int], *, full: bool
) -> list[list[DataFileMeta]]:
    """Return groups of files to join: small files, and files with many deleted rows.

    Files whose deletion vectors share an index file are in one group, so that the index file is
    rewritten only once.
    """
    table = bucket.table
    options, small = (
        compaction_options(table.schema),
        small_file_size(table.options.target_file_size),
    )
    candidates = [
        file
        for file in bucket.files
        if file.file_size < small
        or deleted.get(file.file_name, 0) > options.delete_ratio * file.row_count
        or (full and (options.rewrites_all or file.file_name in deleted))
    ]
    groups: dict[str, list[DataFileMeta]] = defaultdict(list)
    index_of = {
        dv_range.data_file_name: entry.file_name
        for entry in bucket.vector_files
        for dv_range in entry.dv_ranges or ()
    }
    for file in candidates:
        groups[index_of.get(file.file_name, "")].append(file)
    plain = sorted(groups.pop("", []), key=lambda file: file.file_size)
    bins = list(_bins(bucket, sorted(groups.values(), key=_size), least=1))
    least = 2 if full else options.min_file_num
    return bins + list(_bins(bucket, [[file] for file in plain], least=least))


def _bins(
    bucket: CompactBucket, groups: Iterable[list[DataFileMeta]], *, least: int
) -> Iterator[list[DataFileMeta]]:
    """Join groups in order, and yield the joined files whenever they have the size of two targets.

    The target size is `target-file-size`; `open_file_cost` is added to the size of each file. The
    files that remain at the end are yielded if there are at least `least` of them.
    """
    options, target = compaction_options(bucket.table.schema), bucket.table.options.target_file_size
    files: list[DataFileMeta] = []
    for group in groups:
        files += group
        weight = _size(files) + len(files) * options.open_file_cost
        if len(files) > 1 and weight >= 2 * target:
            yield files
            files = []
    if files and len(files) >= least:
        yield files


def _size(files: Sequence[DataFileMeta]) -> int:
    return sum(file.file_size for file in files)


def _deleted_rows(bucket: CompactBucket) -> dict[str, int]:
    """Return the number of deleted rows of each data file that has a deletion vector, by name."""
    vectors = DeletionVectors.of(bucket.table, bucket.index)
    names = {dv_range.data_file_name for entry in bucket.vector_files for dv_range in
             entry.dv_ranges or ()}  # fmt: skip
    return {
        file.file_name: vectors.cardinality(bucket.partition, bucket.bucket, file)
        for file in bucket.files
        if file.file_name in names
    }


def _index_without(
    bucket: CompactBucket, vectors: DeletionVectors, gone: set[str]
) -> tuple[tuple[IndexManifestEntry, ...], tuple[str, ...]]:
    """Rewrite the index files with deletion vectors of the files `gone`, without these vectors.

    Returns the entries of the new index files, and the names of the index files that they replace.
    """
    new_index_files: list[IndexManifestEntry] = []
    replaced: list[str] = []
    bucket_key = (bucket.partition, bucket.bucket)
    for entry in bucket.vector_files:
        names = [dv_range.data_file_name for dv_range in entry.dv_ranges or ()]
        if not gone.intersection(names):
            continue
        replaced.append(entry.file_name)
        left = {name: vectors.deleted_rows(*bucket_key, name) for name in names if name not in gone}
        if left:
            new_index_files.append(write_deletion_vectors(bucket.table, *bucket_key, left))
    return tuple(new_index_files), tuple(replaced)
