"""The changelog of producer `input`: every row of a bucket that a batch brings, before merging.

Its files lie beside the data files and come with them, in the same snapshot. Rows are in the order
of their keys, and those of one key from the oldest to the newest, each with its own row kind.

Specification: https://paimon.apache.org/docs/1.4/primary-key-table/changelog-producer/
"""

import uuid
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from ingestd.paimon.merge.base import SortedKeys, load_merge_engine
from ingestd.paimon.merge.merging import ordered_rows
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.changelog_checks import changelog_producer
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.write.bucket_files import WrittenBucketFiles

INPUT = "input"


def writes_input(table: FileStoreTable) -> bool:
    """Return whether whoever writes rows of a table also writes its changelog."""
    return bool(table.schema.primary_keys) and changelog_producer(table.schema) == INPUT


def changelog_file_names(table: FileStoreTable) -> Callable[[], str]:
    """Return a source of names for new changelog files: one UUID, then a counter."""
    prefix = honoured.CHANGELOG_PREFIX.of(table.schema.options)
    extension = table.options.for_changelog().file_extension
    stem, count = f"{prefix}{uuid.uuid4()}", iter(range(1 << 31))
    return lambda: f"{stem}-{next(count)}.{extension}"


def changelog_files(
    table: FileStoreTable, partition_values: tuple[object, ...], bucket: int
) -> WrittenBucketFiles:
    """Where the changelog files of a bucket go, and how they are encoded."""
    return WrittenBucketFiles(
        table,
        partition_values,
        bucket,
        table.options.for_changelog(),
        changelog_file_names(table),
        indexed=False,
    )


def input_and_merged(table: FileStoreTable, rows: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The rows of a bucket in the order of its changelog, and one row of each key of them."""
    if not rows.num_rows:
        return rows, rows
    keys, rules = table.schema.trimmed_primary_keys, table.merge_rules
    order = ordered_rows(rows, keys, rules)
    ordered = rows.take(order.order)
    in_place = SortedKeys(np.arange(rows.num_rows), order.first)
    return ordered, load_merge_engine(rules.engine).merge(ordered, keys, in_place, rules)
