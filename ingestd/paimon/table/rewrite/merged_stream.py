"""Read the merged rows of one bucket in key order, in bounded memory.

Sorted runs are read in batches, as in a compaction; deletions are dropped. Rows of append tables
are read file by file.
"""

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from ingestd.paimon.spec.data_file import DataFileMeta
from ingestd.paimon.spec.data_types import DataField
from ingestd.paimon.table.compact.compact_bucket import CompactBucket
from ingestd.paimon.table.compact.row_merge import RowRules, compact_block
from ingestd.paimon.table.compact.sorted_input import BucketInput, Source, batch_size
from ingestd.paimon.table.compact.sorted_runs import Levels
from ingestd.paimon.table.files.data_files import SYSTEM_FIELDS, DataFileReader
from ingestd.paimon.table.files.deletion_vectors import DeletionVectors
from ingestd.paimon.table.read.scan_plan import sections

Runs = Sequence[Sequence[DataFileMeta]]
"""Sorted runs: files in key order; a key is in at most one file of a run."""


def bucket_rows(bucket: CompactBucket) -> Iterator[pa.Table]:
    """Yield the rows of a bucket, without deleted rows.

    Rows of primary-key tables are merged, in key order, and have the system columns. Rows of append
    tables are in the order of their sequence numbers. Raises FormatError for a data file that is
    missing or damaged.
    """
    table = bucket.table
    vectors = DeletionVectors.of(table, bucket.index)
    reader = DataFileReader(table, vectors)
    if not table.schema.primary_keys:
        yield from _appended(bucket, reader)
        return
    types = [field.type for field in table.schema.key_fields]
    fields = (*SYSTEM_FIELDS, *table.schema.fields)
    for section in sections(types, bucket.files):
        runs = Levels.of(types, section, 1).runs
        sources = [Source(run.level, run.files, fields) for run in runs]
        yield from _merged(bucket, reader, sources)


def merged_runs(bucket: CompactBucket, runs: Runs) -> Iterator[pa.Table]:
    """Yield the merged rows of sorted runs of a primary-key table's bucket, in key order.

    Each of `runs` has files in key order, with each key in at most one of them; the runs may be in
    any order. The rows have the system columns; deleted rows are left out. Deletion vectors are not
    applied. Raises FormatError for a data file that is missing or damaged.
    """
    fields = (*SYSTEM_FIELDS, *bucket.table.schema.fields)
    sources = [Source(0, tuple(run), fields) for run in runs]
    yield from _merged(bucket, DataFileReader(bucket.table), sources)


def _merged(
    bucket: CompactBucket, reader: DataFileReader, sources: Sequence[Source]
) -> Iterator[pa.Table]:
    schema = bucket.table.schema
    names = schema.trimmed_primary_keys
    rules = RowRules(bucket.table.merge_rules, names, schema.field_names, drops_deletes=True)
    bucket_input = BucketInput(reader, bucket.partition, bucket.bucket, names)
    for block in bucket_input.blocks(sources):
        rows = compact_block(block, sources, rules).rows
        if rows.num_rows:
            yield rows


def _appended(bucket: CompactBucket, reader: DataFileReader) -> Iterator[pa.Table]:
    fields = bucket.table.schema.fields
    files = sorted(bucket.files, key=lambda file: file.min_sequence_number)
    yield from stored_parts(reader, bucket, files, fields)


def stored_parts(
    reader: DataFileReader,
    bucket: CompactBucket,
    files: Iterable[DataFileMeta],
    fields: Sequence[DataField],
) -> Iterator[pa.Table]:
    """Yield the unmerged rows of files of a bucket, with the columns `fields`, file by file.

    No part is empty. Raises FormatError for a data file that is missing or damaged.
    """
    for file in files:
        bucket_key = (bucket.partition, bucket.bucket)
        for _, rows in reader.batches(*bucket_key, file, fields, batch_size(1)):
            if rows.num_rows:
                yield rows


def bounded_chunks(parts: Iterable[pa.Table], most_bytes: int) -> Iterator[pa.Table]:
    """Yield consecutive parts joined to chunks of at most `most_bytes` bytes in memory.

    A part that is larger is a chunk by itself.
    """
    held, size = list[pa.Table](), 0
    for rows in parts:
        if held and size + rows.nbytes > most_bytes:
            yield pa.concat_tables(held)
            held, size = [], 0
        held.append(rows)
        size += rows.nbytes
    if held:
        yield pa.concat_tables(held)
