"""An open table: its metadata, rows, changes, and writers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from textwrap import shorten
from typing import Any

import pyarrow as pa

from ingestd.errors import ArgumentError
from ingestd.paimon.casts.evolution import columns_schema
from ingestd.paimon.iceberg.iceberg_threads import PROCESS_THREADS
from ingestd.paimon.library.scan import (
    Scan,
    Selection,
    scan_changes,
    scan_keys,
    scan_rows,
)
from ingestd.paimon.library.table_rows import RowData, arrow_keys
from ingestd.paimon.library.writer import Writer
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import (
    latest_snapshot,
    read_snapshot,
    snapshot_ids,
)
from ingestd.paimon.table.metadata.time_travel import tag_names
from ingestd.wording import counted

_WIDTH = 100
"""Maximum number of characters of a text in the representation of a table."""


@dataclass(frozen=True, slots=True, repr=False)
class Table:
    """A table of a warehouse, with the schema that it had when it was opened.

    The rows to read are selected by keywords: `columns`, names in the requested order; `where`, a
    condition such as ``"status = 'open' AND amount > 10"``; and a point in time by one of
    `snapshot`, an id, `tag`, a name, `as_of`, a timestamp (UTC without a time zone), or `between`,
    two snapshot ids. `between` selects the rows that APPEND snapshots wrote after the first id, up
    to and including the second: merged by key, without rows that one of these snapshots deleted.
    Compactions and overwrites in this range are ignored. The order of rows is not defined.

    In conditions, NaN is greater than all numbers and -0.0 is less than 0.0, as in Java.
    """

    files: FileStoreTable
    """The handle of the table, for other modules of `ingestd.paimon`."""

    @property
    def name(self) -> str:
        """The name ``database.table``."""
        return self.files.name

    @property
    def schema(self) -> pa.Schema:
        """The columns as an Arrow schema."""
        return columns_schema(self.files.schema.fields)

    @property
    def primary_keys(self) -> tuple[str, ...]:
        """The columns of the primary key; empty for an append table."""
        return self.files.schema.primary_keys

    @property
    def partition_keys(self) -> tuple[str, ...]:
        """The partition columns."""
        return self.files.schema.partition_keys

    @property
    def options(self) -> Mapping[str, str]:
        """The options of the table, by Paimon's names."""
        return self.files.schema.options

    def snapshot(self) -> Snapshot | None:
        """Return the newest snapshot, or None if the table has none.

        It is looked up at each call, and its schema may be newer than that of this object.
        """
        return latest_snapshot(self.files.io, self.files.paths)

    def snapshots(self) -> list[Snapshot]:
        """Return the snapshots that have not expired, oldest first."""
        io, paths = self.files.io, self.files.paths
        return [read_snapshot(io, paths, snapshot_id) for snapshot_id in snapshot_ids(io, paths)]

    def tags(self) -> list[str]:
        """Return the names of all tags, sorted."""
        return tag_names(self.files.io, self.files.paths)

    def scan(
        self,
        *,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        snapshot: int | None = None,
        tag: str | None = None,
        as_of: str | datetime | None = None,
        between: tuple[int, int] | None = None,
    ) -> Scan:
        """Return a scan of the selected rows, which reads them on demand.

        Without a point in time, the scan options of the table apply, and without these, the newest
        snapshot is read. Raises ArgumentError for an unknown column, tag or snapshot, a timestamp
        before the first snapshot, an invalid condition or range, or several points in time;
        ConfigError and UnsupportedError for scan options that are invalid or not implemented.
        """
        how = Selection(
            columns=columns, where=where, snapshot=snapshot, tag=tag, as_of=as_of, between=between
        )
        return scan_rows(self.files, how)

    def changes(
        self,
        *,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        between: tuple[int, int] | None = None,
    ) -> Scan:
        """Return a scan of the selected changes, which reads them in commit order on demand.

        The result begins with two additional columns: `_snapshot`, an id, and `rowkind` (+I, -U,
        +U, -D). `between` are two snapshot ids: the changes after the first, up to and including
        the second (None: all changes that have not expired, up to the newest when they are read).

        Raises ArgumentError for an unknown column, or an invalid condition or range.
        """
        how = Selection(columns=columns, where=where, between=between)
        return scan_changes(self.files, how)

    def get(
        self,
        keys: RowData,
        *,
        columns: Sequence[str] | None = None,
        snapshot: int | None = None,
        tag: str | None = None,
        as_of: str | datetime | None = None,
    ) -> pa.Table:
        """Return the rows with the given primary keys as an Arrow table, in no defined order.

        `keys` has the primary key columns; keys without a row are left out. Only files that may
        contain one of the keys are opened. Raises ArgumentError for a table without a primary key,
        for invalid keys, for an unknown column, tag or snapshot, for a timestamp before the first
        snapshot, and for several points in time; FormatError for a damaged file, StorageError if
        the storage fails, UnsupportedError for a table with features that are not supported.
        """
        how = Selection(columns=columns, snapshot=snapshot, tag=tag, as_of=as_of)
        return scan_keys(self.files, arrow_keys(self.files, keys), how).to_arrow()

    def to_arrow(
        self,
        *,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        snapshot: int | None = None,
        tag: str | None = None,
        as_of: str | datetime | None = None,
        between: tuple[int, int] | None = None,
    ) -> pa.Table:
        """Return the selected rows as an Arrow table.

        Raises ArgumentError for an invalid selection, ConfigError for invalid scan options,
        FormatError for a damaged file, StorageError if the storage fails, UnsupportedError for
        features of the table that are not supported.
        """
        return self.scan(
            columns=columns, where=where, snapshot=snapshot, tag=tag, as_of=as_of, between=between
        ).to_arrow()

    def to_pandas(
        self,
        *,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        snapshot: int | None = None,
        tag: str | None = None,
        as_of: str | datetime | None = None,
        between: tuple[int, int] | None = None,
    ) -> Any:  # noqa: ANN401  (a package that need not be installed)
        """Return the selected rows as a `pandas.DataFrame`.

        Raises ConfigError if pandas is missing, and the errors of `to_arrow`.
        """
        return self.scan(
            columns=columns, where=where, snapshot=snapshot, tag=tag, as_of=as_of, between=between
        ).to_pandas()

    def to_polars(
        self,
        *,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        snapshot: int | None = None,
        tag: str | None = None,
        as_of: str | datetime | None = None,
        between: tuple[int, int] | None = None,
    ) -> Any:  # noqa: ANN401  (a package that need not be installed)
        """Return the selected rows as a `polars.DataFrame`.

        Raises ConfigError if Polars is missing, and the errors of `to_arrow`.
        """
        return self.scan(
            columns=columns, where=where, snapshot=snapshot, tag=tag, as_of=as_of, between=between
        ).to_polars()

    def to_duckdb(
        self,
        *,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        snapshot: int | None = None,
        tag: str | None = None,
        as_of: str | datetime | None = None,
        between: tuple[int, int] | None = None,
    ) -> Any:  # noqa: ANN401  (a package that need not be installed)
        """Return the selected rows as a relation of DuckDB's default connection.

        Raises ConfigError if DuckDB is missing, and the errors of `to_arrow`.
        """
        return self.scan(
            columns=columns, where=where, snapshot=snapshot, tag=tag, as_of=as_of, between=between
        ).to_duckdb()

    def count(self, *, where: str | None = None) -> int:
        """Return the number of rows that match a condition (None: of all rows).

        Only the primary key columns (without a primary key, the first column) and the columns of
        the condition are read. Raises ArgumentError for an invalid condition, and the other errors
        of `to_arrow`.
        """
        read = self.primary_keys or self.files.schema.field_names[:1]
        return sum(batch.num_rows for batch in self.scan(columns=read, where=where).batches())

    def head(self, rows: int = 5) -> pa.Table:
        """Return at most `rows` rows as an Arrow table; reading stops when they are found.

        Raises ArgumentError for a negative number, and the errors of `to_arrow`.
        """
        if rows < 0:
            raise ArgumentError(f"rows={rows}: a number of rows is not negative")
        scan = self.scan()
        batches: list[pa.RecordBatch] = []
        missing = rows
        for batch in scan.batches():
            batches.append(batch[:missing])
            missing -= len(batches[-1])
            if missing <= 0:
                break
        return pa.Table.from_batches(batches, schema=scan.schema)

    def wait_for_iceberg(self) -> None:
        """Wait until the Iceberg metadata of this process's commits to the table is written.

        A commit does not wait for it. Failures are logged, and the next commit catches up. A
        process that ends waits by itself.
        """
        PROCESS_THREADS.wait(self.files.path)

    def history(self) -> pa.Table:
        """Return the snapshots that have not expired as an Arrow table, oldest first.

        Columns: `snapshot`, an id; `committed`, a UTC timestamp; `kind`, such as APPEND; `schema`,
        an id; `changed`, the records that the snapshot added minus those that it removed; `total`,
        the records of the table. Records are counted before they are merged by key (null if
        unknown).
        """
        snapshots = self.snapshots()
        times = pa.array([snapshot.time_millis for snapshot in snapshots], pa.int64())
        return pa.table(
            {
                "snapshot": pa.array([snapshot.id for snapshot in snapshots], pa.int64()),
                "committed": times.cast(pa.timestamp("ms", "UTC")),
                "kind": pa.array(
                    [str(snapshot.commit_kind) for snapshot in snapshots], pa.string()
                ),
                "schema": pa.array([snapshot.schema_id for snapshot in snapshots], pa.int64()),
                "changed": pa.array(
                    [snapshot.delta_record_count for snapshot in snapshots], pa.int64()
                ),
                "total": pa.array(
                    [snapshot.total_record_count for snapshot in snapshots], pa.int64()
                ),
            }
        )

    def __repr__(self) -> str:
        """Return the table in six lines: name, keys, columns, options and newest snapshot."""
        return "\n".join(f"{title:<15}{text}" for title, text in self._summary())

    def _repr_html_(self) -> str:
        """Return the table as HTML, for notebooks."""
        rows = "".join(
            f"<tr><th>{escape(title)}</th><td>{escape(text)}</td></tr>"
            for title, text in self._summary()
        )
        return f"<table>{rows}</table>"

    def _summary(self) -> list[tuple[str, str]]:
        newest = self.snapshot()
        columns = [f"{field.name} {field.type}" for field in self.files.schema.fields]
        options = [f"{name}={value}" for name, value in sorted(self.options.items())]
        lines = [
            ("Paimon table", self.name),
            ("primary key", ", ".join(self.primary_keys) or "none (append table)"),
            ("partitioned by", ", ".join(self.partition_keys) or "none"),
            (counted(len(columns), "column"), ", ".join(columns)),
            ("options", ", ".join(options) or "none"),
            ("snapshot", "none" if newest is None else _snapshot_text(newest)),
        ]
        return [(title, shorten(text, _WIDTH, placeholder=" ...")) for title, text in lines]

    def writer(
        self, *, overwrite: bool = False, user: str | None = None, identifier: int | None = None
    ) -> Writer:
        """Return a writer for one commit.

        With `overwrite` its rows replace the rows of their partitions, or of the whole table if it
        is not partitioned or its option `dynamic-partition-overwrite` is false. With `user` and
        `identifier`, a repeated commit takes effect only once; the identifier must increase with
        each commit of the user. Raises UnsupportedError, naming the option, for a table option that
        is not implemented for writing, and for a table that cannot be overwritten; ArgumentError if
        only one of `user` and `identifier` is given.
        """
        return Writer(self.files, overwrite=overwrite, user=user, identifier=identifier)

    def write(self, rows: RowData, *, partial: bool = False) -> Snapshot | None:
        """Write rows, commit them, and return the snapshot (None without rows).

        `partial` allows rows that lack columns of a primary-key table. Raises ArgumentError for
        rows that do not fit the table, CommitConflictError or CommitUnknownError if the commit
        fails, and the other errors of `Writer.write` and `Writer.commit`.
        """
        with self.writer() as writer:
            writer.write(rows, partial=partial)
        return writer.snapshot

    def delete(self, rows: RowData) -> Snapshot | None:
        """Delete the rows with these keys, commit, and return the snapshot (None without keys).

        `rows` has the primary key and partition columns, and all other NOT NULL columns without a
        default; keys without a row have no effect. Raises ArgumentError for a table without a
        primary key or for invalid keys, CommitConflictError or CommitUnknownError if the commit
        fails, and the other errors of `Writer.delete` and `Writer.commit`.
        """
        with self.writer() as writer:
            writer.delete(rows)
        return writer.snapshot


def _snapshot_text(snapshot: Snapshot) -> str:
    moment = datetime.fromtimestamp(snapshot.time_millis / 1000, UTC)
    return f"{snapshot.id}, committed {moment:%Y-%m-%d %H:%M:%S} UTC"
