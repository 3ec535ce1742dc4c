"""Tables that ingestd itself writes, small and whole: assign buckets, write, commit.

    table = native_table(warehouse, [("id", "INT"), ("v", "STRING")], keys=["id"])
    put(table, [{"id": 1, "v": "a"}])

Cells are as ``ingestd.paimon.spec.arrow.column_values`` gives them: whole numbers for dates and
timestamps.
"""

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ingestd.paimon.io.file_io import FileIO, LocalFileIO
from ingestd.paimon.spec.arrow import column_of, column_values
from ingestd.paimon.spec.binary_row import serialize_row
from ingestd.paimon.spec.bucket import hash_columns
from ingestd.paimon.spec.data_types import SEQUENCE_NUMBER, VALUE_KIND, parse_type
from ingestd.paimon.spec.options import BucketMode, bucket_mode
from ingestd.paimon.spec.paths import POSTPONE_BUCKET, TablePaths
from ingestd.paimon.spec.schema import new_schema
from ingestd.paimon.spec.schema_apply import apply_changes
from ingestd.paimon.spec.schema_change import SchemaChange
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.paimon.table.buckets.bucket_assigner import DynamicBucketAssigner, assign_fixed
from ingestd.paimon.table.commit.table_commit import CommitResult, commit
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.schema_manager import latest_schema, publish_schema
from ingestd.paimon.table.metadata.table_state import TableState, load_state
from ingestd.paimon.table.write.commit_message import CommitMessage, ManifestCommittable
from ingestd.paimon.table.write.postpone import postponed_table
from ingestd.paimon.table.write.table_write import data_file_names, write_bucket

NOW_MS = 1_700_000_000_000
USER = "native"
Rows = Sequence[Mapping[str, Any]]


def native_table(
    warehouse: Path | str,
    columns: Sequence[tuple[str, Any]],
    *,
    keys: Sequence[str] = (),
    partitions: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
    io: FileIO | None = None,
) -> FileStoreTable:
    """Create ``db.t``; types as in a schema file."""
    typed = [(name, parse_type(t)) for name, t in columns]
    schema = new_schema(typed, keys, partitions, options or {}, NOW_MS)
    files: FileIO = LocalFileIO(sync=False) if io is None else io
    path = f"{warehouse}/db.db/t"
    assert publish_schema(files, TablePaths(path), schema)
    return FileStoreTable(path, schema, files, "db.t")


def open_native(warehouse: Path | str) -> FileStoreTable:
    """Return ``db.t`` of a warehouse with its newest schema, by any writer."""
    io, path = LocalFileIO(sync=False), f"{warehouse}/db.db/t"
    schema = latest_schema(io, TablePaths(path))
    assert schema is not None
    return FileStoreTable(path, schema, io, "db.t")


def alter(table: FileStoreTable, *changes: SchemaChange) -> FileStoreTable:
    """The table with its next schema."""
    schema = apply_changes(table.schema, changes, NOW_MS)
    assert publish_schema(table.io, table.paths, schema)
    return table.with_schema(schema)


def rows_table(schema: TableSchema, rows: Rows, first_sequence: int = 0) -> pa.Table:
    """Rows as a writer takes them; ``_kind`` is the number of the row kind."""
    columns = {f.name: column_of([row.get(f.name) for row in rows], f.type) for f in schema.fields}
    kinds = pa.array([row.get("_kind", 0) for row in rows], pa.int8())
    if schema.primary_keys:
        numbers = np.arange(first_sequence, first_sequence + len(rows), dtype=np.int64)
        columns |= {SEQUENCE_NUMBER: pa.array(numbers), VALUE_KIND: kinds}
    return pa.table(columns)


def put(
    table: FileStoreTable,
    rows: Rows,
    *,
    identifier: int | None = None,
    user: str = USER,
    now_ms: int = NOW_MS,
) -> CommitResult:
    """Write rows and commit them in one snapshot."""
    state = load_state(table)
    base = state.max_sequence_number + 1
    messages = tuple(write(table, state, rows_table(table.schema, rows, base)))
    number = (state.snapshot.id if state.snapshot else 0) + 1 if identifier is None else identifier
    committable = ManifestCommittable(number, messages)
    return commit(table, user, committable, state=state, now_ms=now_ms)


def write(table: FileStoreTable, state: TableState, rows: pa.Table) -> Iterator[CommitMessage]:
    """Messages of uncommitted files for rows in arrival order."""
    if bucket_mode(table.schema) is BucketMode.POSTPONE:
        table = postponed_table(table, USER)
    new_name = data_file_names(table)
    for values, part in split_by(rows, table.schema.partition_keys):
        partition = serialize_row(table.partition_types, values)
        buckets, index = _assign(table, state, partition, part)
        entries = {entry.bucket: entry for entry in index}
        for (bucket,), own in split_by(
            part.append_column("_bucket", pa.array(buckets)), ["_bucket"]
        ):
            number = int(str(bucket))
            own = own.drop(["_bucket"])
            message = write_bucket(table, partition, number, own, new_name=new_name)
            mine = (entries[number],) if number in entries else ()
            yield CommitMessage(
                message.partition,
                message.bucket,
                message.total_buckets,
                new_files=message.new_files,
                changelog_files=message.changelog_files,
                new_index_files=mine,
            )


def _assign(
    table: FileStoreTable, state: TableState, partition: bytes, rows: pa.Table
) -> tuple[Any, Sequence[Any]]:
    mode = bucket_mode(table.schema)
    if mode is BucketMode.HASH_FIXED:
        return assign_fixed(table, rows), ()
    if mode is BucketMode.POSTPONE:
        return np.full(rows.num_rows, POSTPONE_BUCKET, np.int32), ()
    if mode is BucketMode.BUCKET_UNAWARE:
        return np.zeros(rows.num_rows, np.int32), ()
    names = table.schema.trimmed_primary_keys
    types = [table.schema.field(name).type for name in names]
    hashes = hash_columns([rows.column(name) for name in names], types)
    assigner = DynamicBucketAssigner(table, partition, state.index_entries.values(), 0, 1)
    return assigner.assign(hashes), assigner.prepare_commit()


def split_by(rows: pa.Table, names: Sequence[str]) -> Iterator[tuple[tuple[object, ...], pa.Table]]:
    """Rows by the values of some columns, groups in order of appearance."""
    if not names:
        yield (), rows
        return
    groups: dict[tuple[object, ...], list[int]] = defaultdict(list)
    cells = zip(*(column_values(rows.column(name)) for name in names), strict=True)
    for position, key in zip(itertools.count(), cells, strict=False):
        groups[key].append(position)
    for key, positions in groups.items():
        yield key, rows.take(positions)
