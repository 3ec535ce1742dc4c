"""Write batches of rows to a table, and commit them in one snapshot.

All rows become visible at once, when the snapshot is committed.
"""

import time
import uuid
from types import TracebackType
from typing import Self

import numpy as np
import pyarrow as pa

from ingestd.errors import ArgumentError, CommitUnknownError, IngestdError, UnsupportedError
from ingestd.paimon.iceberg.iceberg_threads import PROCESS_THREADS
from ingestd.paimon.library.row_writer import RowWriter
from ingestd.paimon.library.table_rows import RowData, arrow_rows
from ingestd.paimon.spec.data_types import SEQUENCE_NUMBER, VALUE_KIND, RowKind
from ingestd.paimon.spec.options import BucketMode, bucket_mode
from ingestd.paimon.spec.snapshot import BATCH_COMMIT_IDENTIFIER, Snapshot
from ingestd.paimon.table.commit.overwrite import overwrite
from ingestd.paimon.table.commit.table_commit import CommitResult, commit
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.table_state import load_state
from ingestd.paimon.table.rewrite.rewrite_commit import delete_written
from ingestd.paimon.table.write.commit_message import CommitMessage, ManifestCommittable
from ingestd.paimon.table.write.writable import check_writable
from ingestd.wording import counted

_MILLIS = 1000
_CANNOT_REPLACE = (BucketMode.KEY_DYNAMIC, BucketMode.POSTPONE)


class Writer:
    """Writer of one snapshot, whose rows are visible after `commit`.

    Rows are written to files immediately; if keys may move between partitions, they are kept in
    memory until the commit. `Table.writer`, which describes the arguments, returns a writer for a
    `with` block: leaving the block commits, and if the block raises, the written files are deleted
    instead. `snapshot` is the committed snapshot (None: nothing was committed). A writer makes one
    commit, after which `write`, `delete` and `commit` raise ValueError. It must be used by one
    thread only.
    """

    def __init__(
        self,
        table: FileStoreTable,
        *,
        overwrite: bool = False,
        user: str | None = None,
        identifier: int | None = None,
    ) -> None:
        check_writable(table)
        if overwrite and bucket_mode(table.schema) in _CANNOT_REPLACE:
            raise UnsupportedError(
                f"table {table.name}: a table whose rows have no bucket of their own before they "
                "are written (bucket -2, or keys that move between partitions) cannot be "
                "overwritten from here; truncate it, then write"
            )
        if (user is None) != (identifier is None):
            raise ArgumentError("user and identifier belong together: who writes, and which commit")
        self.snapshot: Snapshot | None = None
        self._table = table
        self._user = str(uuid.uuid4()) if user is None else user
        self._identifier = BATCH_COMMIT_IDENTIFIER if identifier is None else identifier
        self._overwrite = overwrite
        self._state = load_state(table)
        self._next = self._state.max_sequence_number + 1
        self._row_writer = RowWriter(table, self._state, self._user, fresh=overwrite)
        self._buffered: list[pa.Table] = []
        self._messages: list[CommitMessage] = []
        self._open = True

    def write(self, data: RowData, *, partial: bool = False) -> None:
        """Write rows; in a table with a primary key, they replace or are merged with older rows.

        Rows that are written later are newer. In a table with a primary key, a row that lacks a
        column would replace its older value by null or the default: it is refused unless
        `partial` allows it or the merge engine keeps the value (`partial-update`, and most
        functions of `aggregation`). Raises ArgumentError for rows that do not fit the table, such
        as a null in a NOT NULL column without a default; UnsupportedError for a value of
        `rowkind.field` that the table does not support; StorageError if the storage fails.
        """
        self._add(arrow_rows(self._table, data, partial=partial), RowKind.INSERT)

    def delete(self, data: RowData) -> None:
        """Delete the rows with these keys; the partition columns must be given, too.

        Raises ArgumentError for a table without a primary key, and for rows without a value for a
        column that is NOT NULL and has no default, which includes the key columns; UnsupportedError
        if the merge engine does not support deletions; StorageError if the storage fails.
        """
        if not self._table.schema.primary_keys:
            raise ArgumentError(
                f"table {self._table.name} has no primary key: nothing to delete by"
            )
        rows = arrow_rows(self._table, data, partial=True)
        self._add(_marked_as_deleted(self._table, rows), RowKind.DELETE)

    def commit(self) -> Snapshot | None:
        """Commit the rows; return the snapshot, or None if there was nothing to commit.

        If the table has Iceberg metadata, a thread writes it after the commit. With `user` and
        `identifier`, a commit that was made before is not repeated; the user's newest snapshot is
        returned (None if it has expired). Raises CommitConflictError if another commit conflicts,
        for example because it assigned buckets to new keys of the same partition, or if other
        writers were first in every attempt: nothing is committed then; write the rows again with a
        new writer. Raises CommitUnknownError if it is unknown whether the snapshot was published:
        delete nothing, and look for the snapshot, or commit the rows again. Raises FencedError if
        another process committed as `user` meanwhile, and StorageError if the storage fails.
        """
        self._must_be_open()
        try:
            self._flush()
            self._messages += self._row_writer.index_files()
        except IngestdError:
            self.abort()
            raise
        # From here on, only an IngestdError means that nothing was committed: a signal may arrive
        # after the commit.
        self._open = False
        try:
            result = self._publish()
        except CommitUnknownError:
            raise
        except IngestdError:
            delete_written(self._table, self._messages)
            raise
        if result.status == "replayed":
            delete_written(self._table, self._messages)
        self.snapshot = None if result.status == "empty" else result.snapshot
        PROCESS_THREADS.submit(self._table.path, self._table, result)
        return self.snapshot

    def abort(self) -> None:
        """Delete the written files, unless the commit has begun, and close the writer."""
        if self._open:
            self._open = False
            delete_written(self._table, self._messages)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self.abort()
        elif self._open:
            self.commit()

    def _add(self, rows: pa.Table, kind: RowKind) -> None:
        self._must_be_open()
        _refuse_nulls(self._table, rows)
        if self._table.schema.primary_keys:
            numbers = np.arange(self._next, self._next + rows.num_rows, dtype=np.int64)
            self._next += rows.num_rows
            kinds = np.full(rows.num_rows, kind, np.int8)
            rows = rows.append_column(SEQUENCE_NUMBER, pa.array(numbers))
            rows = rows.append_column(VALUE_KIND, pa.array(kinds))
        if not rows.num_rows:
            return
        if self._row_writer.takes_all_at_once:
            self._buffered.append(rows)
        else:
            self._messages += self._row_writer.write(rows)

    def _flush(self) -> None:
        if self._buffered:
            rows, self._buffered = pa.concat_tables(self._buffered), []
            self._messages += self._row_writer.write(rows.combine_chunks())

    def _publish(self) -> CommitResult:
        committable = ManifestCommittable(self._identifier, tuple(self._messages))
        now_ms = int(time.time() * _MILLIS)
        commit_rows = overwrite if self._overwrite else commit
        return commit_rows(self._table, self._user, committable, state=self._state, now_ms=now_ms)

    def _must_be_open(self) -> None:
        if not self._open:
            raise ValueError("this writer has committed or given up; ask the table for another")


def _marked_as_deleted(table: FileStoreTable, rows: pa.Table) -> pa.Table:
    """Return the rows with the kind -D in the column of `rowkind.field`, which decides the kind."""
    name = table.merge_rules.rowkind_field
    if name is None:
        return rows
    at = rows.column_names.index(name)
    kinds = pa.array([RowKind.DELETE.symbol] * rows.num_rows, pa.string())
    return rows.set_column(at, rows.field(at), kinds)


def _refuse_nulls(table: FileStoreTable, rows: pa.Table) -> None:
    for field in table.schema.fields:
        missing = rows.column(field.name).null_count
        if missing and not field.type.nullable and field.default_value is None:
            raise ArgumentError(
                f"table {table.name}: column {field.name} is NOT NULL and "
                f"{counted(missing, 'row')} without a "
                "value for it"
            )
