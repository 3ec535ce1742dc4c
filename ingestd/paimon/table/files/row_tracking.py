"""Row tracking: the id of each row of a keyless table, and the snapshot that wrote it.

Specification: https://paimon.apache.org/docs/1.4/append-table/row-tracking/#row-tracking

The rows of a new file are numbered from the first row id in its manifest entry, and have the
sequence number of the entry, which is the id of their snapshot. A compaction merges files, so it
stores both in columns. Files of a table with data evolution that have the same row ids have columns
of the same rows; each column is read from the newest file that has it.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.errors import ConfigError, FormatError
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.data_file import DataFileMeta, FileSource
from ingestd.paimon.spec.data_types import (
    ROW_ID,
    ROW_ID_ID,
    SEQUENCE_NUMBER,
    SEQUENCE_NUMBER_ID,
    DataField,
    DataType,
)
from ingestd.paimon.spec.manifest import FileKind, ManifestEntry
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.spec.table_schema import TableSchema
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable

SEQUENCE_FIELD = DataField(SEQUENCE_NUMBER_ID, SEQUENCE_NUMBER, DataType("BIGINT", nullable=False))
TRACKING_FIELDS = (
    DataField(ROW_ID_ID, ROW_ID, DataType("BIGINT", nullable=False)),
    SEQUENCE_FIELD,
)
"""The last two columns of the system table `row_tracking`."""
_NO_SCHEMA = -1
"""The id of a schema that is not stored."""


def with_row_ids(table: FileStoreTable) -> FileStoreTable:
    """Return the table with the columns `_ROW_ID` and `_SEQUENCE_NUMBER` after its columns.

    Raises ConfigError if the table has no row tracking.
    """
    schema = table.schema
    if not table.options.row_tracking:
        raise ConfigError(
            f"table {table.name} has no row ids: 'row-tracking.enabled' must be set when a table "
            "is created"
        )
    fields = (*schema.fields, *TRACKING_FIELDS)
    return table.with_schema(replace(schema, id=_NO_SCHEMA, fields=fields))


def rewritten_table(table: FileStoreTable) -> FileStoreTable:
    """Return the handle of a table with which its files are rewritten.

    If the table has row tracking, the handle has the additional columns `_ROW_ID` and
    `_SEQUENCE_NUMBER`, so that rows keep their values of these columns; otherwise it is `table`
    itself.
    """
    return with_row_ids(table) if table.options.row_tracking else table


def rewritten_files(
    table: FileStoreTable, files: Sequence[DataFileMeta]
) -> tuple[DataFileMeta, ...]:
    """Return the manifest entries of files that were written with the handle `rewritten_table`.

    If the table has row tracking, the entries get its schema, and state that the files also have
    the columns `_ROW_ID` and `_SEQUENCE_NUMBER`.
    """
    schema, written = table.schema, rewritten_table(table).schema
    if written is schema:
        return tuple(files)
    # Java finds no statistics of a file whose entry leaves their columns out.
    return tuple(
        replace(
            file,
            schema_id=schema.id,
            write_cols=written.field_names,
            value_stats_cols=file.stats_columns(schema.field_names),
        )
        for file in files
    )


def assign_row_ids(
    entries: tuple[ManifestEntry, ...], previous: Snapshot | None
) -> tuple[ManifestEntry, ...]:
    """Return the entries of the snapshot after `previous` (None: first), with ids for new rows.

    Added files that are not from a compaction get their first row id, and the id of the snapshot as
    their sequence number. Files of compactions have their row ids in a column, so they get none.
    """
    number = previous.id + 1 if previous else 1
    first = (previous.next_row_id if previous else None) or 0
    assigned: list[ManifestEntry] = []
    for entry in entries:
        if entry.kind == FileKind.ADD and entry.file.file_source == FileSource.APPEND:
            file = replace(
                entry.file, min_sequence_number=number, max_sequence_number=number,
                first_row_id=first,
            )  # fmt: skip
            entry, first = replace(entry, file=file), first + file.row_count
        assigned.append(entry)
    return tuple(assigned)


def tracked_fields(schema: TableSchema, file: DataFileMeta) -> tuple[DataField, ...]:
    """Return the columns that a data file of a keyless table has, by its manifest entry.

    `schema` is the schema of the file. After a rewrite, `_ROW_ID` and `_SEQUENCE_NUMBER` are among
    the columns.
    """
    if file.write_cols is None:
        return schema.fields
    by_name = {field.name: field for field in (*schema.fields, *TRACKING_FIELDS)}
    return tuple(by_name[name] for name in file.write_cols if name in by_name)


def has_row_ids(fields: Sequence[DataField]) -> bool:
    """Return whether `_ROW_ID` or `_SEQUENCE_NUMBER` is among the fields of a keyless table."""
    return any(field.id in (ROW_ID_ID, SEQUENCE_NUMBER_ID) for field in fields)


def fill_row_ids(rows: pa.Table, positions: npt.NDArray[np.int64], file: DataFileMeta) -> pa.Table:
    """Return rows of a file with values of `_ROW_ID` and `_SEQUENCE_NUMBER` where these are null.

    `positions` are the numbers of the rows in the file, from 0. Columns that the rows lack are not
    added. Raises FormatError if a row has no id.
    """
    columns: dict[str, Any] = dict(zip(rows.column_names, rows.columns, strict=True))
    if ROW_ID in columns and columns[ROW_ID].null_count:
        columns[ROW_ID] = pc.coalesce(columns[ROW_ID], pa.array(positions + _first(file)))
    if SEQUENCE_NUMBER in columns:
        number = pa.scalar(file.max_sequence_number, pa.int64())
        columns[SEQUENCE_NUMBER] = pc.coalesce(columns[SEQUENCE_NUMBER], number)
    return pa.table(columns)


def row_groups(
    table: FileStoreTable, files: Sequence[DataFileMeta]
) -> list[tuple[DataFileMeta, ...]]:
    """Group files that have columns of the same rows, in the order of the rows.

    Without data evolution, each file is a group, in the given order. Otherwise a group begins with
    the files that have all its rows, newest first; blob files follow, each of which may have only a
    part of the rows. Raises FormatError if a file has no row ids, or if it has rows of a group, but
    neither has all of them nor is a blob file.
    """
    if not honoured.DATA_EVOLUTION.of(table.schema.options):
        return [(file,) for file in files]
    ordered = sorted(files, key=lambda f: (_first(f), is_blob_file(f), -f.max_sequence_number))
    groups: list[list[DataFileMeta]] = []
    end = 0
    for file in ordered:
        first, head = _first(file), groups[-1][0] if groups else None
        if first >= end and not is_blob_file(file):
            groups.append([file])
            end = first + file.row_count
            continue
        inside = head is not None and first + file.row_count <= end
        same = head is not None and (first, file.row_count) == (_first(head), head.row_count)
        if not inside or not (same or is_blob_file(file)):
            raise FormatError(
                f"data file {file.file_name} has the rows {first} to "
                f"{first + file.row_count - 1}, which are not those of the other files"
            )
        groups[-1].append(file)
    return [tuple(sorted(group, key=is_blob_file)) for group in groups]


def is_blob_file(file: DataFileMeta) -> bool:
    """Return whether a file has the values of one BLOB column only."""
    return file.file_name.endswith(".blob")


def _first(file: DataFileMeta) -> int:
    if file.first_row_id is None:
        raise FormatError(f"data file {file.file_name} has no row ids, which its table requires")
    return file.first_row_id


def column_sources(
    table: FileStoreTable, group: Sequence[DataFileMeta], fields: Sequence[DataField]
) -> list[tuple[list[DataFileMeta], list[DataField]]]:
    """Return which columns to read from which files of a group of `row_groups`.

    Each item has files and the columns to read from them. A column is read from the newest file
    that has it; `_ROW_ID`, and columns that no file has, are read from the first file of the group.
    An item with several files has blob files, whose rows follow each other. Raises FormatError if
    blob files do not have all rows.
    """
    ids = [{f.id for f in tracked_fields(table.schemas(file.schema_id), file)} for file in group]
    sources: dict[int, list[DataField]] = {}
    blobs: list[tuple[list[DataFileMeta], list[DataField]]] = []
    for field in fields:
        stored = [i for i, known in enumerate(ids) if field.id in known]
        source = 0 if field.id == ROW_ID_ID or not stored else stored[0]
        if is_blob_file(group[source]) and source > 0:
            blobs.append((_successive(group[0], [group[i] for i in stored]), [field]))
        else:
            sources.setdefault(source, []).append(field)
    plain = [([group[source]], wanted) for source, wanted in sources.items()]
    return [*plain, *blobs] or [([group[0]], [])]


def _successive(whole: DataFileMeta, files: Sequence[DataFileMeta]) -> list[DataFileMeta]:
    """Return the newest of the blob files for each row of `whole`, in the order of the rows.

    `files` are ordered by row id, the newer of two with the same one first.
    """
    kept: list[DataFileMeta] = []
    expected = _first(whole)
    for file in files:
        if _first(file) == expected:
            kept.append(file)
            expected += file.row_count
    if expected != _first(whole) + whole.row_count:
        raise FormatError(f"blob files of {whole.file_name} do not have its rows")
    return kept


def joined(parts: Sequence[pa.Table], fields: Sequence[DataField]) -> pa.Table:
    """Return the columns of `parts`, which have the same rows, in the order of `fields`.

    If several parts have a column, it is taken from the last of them. Raises KeyError if a column
    of `fields` is in no part.
    """
    columns: dict[str, Any] = {}
    for part in parts:
        columns.update(zip(part.column_names, part.columns, strict=True))
    return pa.table({field.name: columns[field.name] for field in fields})
