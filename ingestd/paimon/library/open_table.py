"""An open table: its metadata, rows, changes, and writers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Unpack

import pyarrow as pa

from ingestd.paimon.casts.evolution import columns_schema
from ingestd.paimon.library.scan import ChangeSelection, Scan, Selection, scan_changes, scan_rows
from ingestd.paimon.library.table_rows import RowData
from ingestd.paimon.library.writer import Writer
from ingestd.paimon.spec.snapshot import Snapshot
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.metadata.snapshot_manager import (
    latest_snapshot,
    read_snapshot,
    snapshot_ids,
)
from ingestd.paimon.table.metadata.time_travel import tag_names


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a warehouse, with the schema that it had when it was opened.

    Which rows are read is said by keywords, those of `Selection`: `columns`, `where`, and one of
    `snapshot`, `tag`, `as_of`, `between`. Rows come in no particular order.
    """

    files: FileStoreTable
    """The handle that the rest of `ingestd.paimon` works with."""

    @property
    def name(self) -> str:
        """``database.table``."""
        return self.files.name

    @property
    def schema(self) -> pa.Schema:
        """Return the columns."""
        return columns_schema(self.files.schema.fields)

    @property
    def primary_keys(self) -> tuple[str, ...]:
        """Return columns of the primary key; none in an append table."""
        return self.files.schema.primary_keys

    @property
    def partition_keys(self) -> tuple[str, ...]:
        """Return columns that rows are put into directories by."""
        return self.files.schema.partition_keys

    @property
    def options(self) -> Mapping[str, str]:
        """Return the options of the table, under Paimon's names."""
        return self.files.schema.options

    def snapshot(self) -> Snapshot | None:
        """Return the newest snapshot; None before the first."""
        return latest_snapshot(self.files.io, self.files.paths)

    def snapshots(self) -> list[Snapshot]:
        """Return the snapshots that have not expired, oldest first."""
        io, paths = self.files.io, self.files.paths
        return [read_snapshot(io, paths, snapshot_id) for snapshot_id in snapshot_ids(io, paths)]

    def tags(self) -> list[str]:
        """Return names of snapshots that are kept, sorted."""
        return tag_names(self.files.io, self.files.paths)

    def scan(self, **how: Unpack[Selection]) -> Scan:
        """Return rows that are read when they are taken.

        ConfigError for a column, tag or moment that does not exist, a condition that cannot be
        read, several points in time, or a snapshot that is not there.
        """
        return scan_rows(self.files, how)

    def changes(self, **how: Unpack[ChangeSelection]) -> Scan:
        """Return changes in the order in which they were committed, read when they are taken.

        Raises ConfigError for a column that does not exist or a condition that cannot be read.
        """
        return scan_changes(self.files, how)

    def to_arrow(self, **how: Unpack[Selection]) -> pa.Table:
        """Return rows as an Arrow table. Raises as `scan` and `Scan`."""
        return self.scan(**how).to_arrow()

    def to_pandas(self, **how: Unpack[Selection]) -> Any:  # noqa: ANN401  (a package that need not be installed)
        """Return rows as a `pandas.DataFrame`. Raises as `scan` and `Scan`."""
        return self.scan(**how).to_pandas()

    def to_polars(self, **how: Unpack[Selection]) -> Any:  # noqa: ANN401  (a package that need not be installed)
        """Return rows as a `polars.DataFrame`. Raises as `scan` and `Scan`."""
        return self.scan(**how).to_polars()

    def to_duckdb(self, **how: Unpack[Selection]) -> Any:  # noqa: ANN401  (a package that need not be installed)
        """Return rows as a relation of DuckDB's own connection. Raises as `scan` and `Scan`."""
        return self.scan(**how).to_duckdb()

    def writer(
        self, *, overwrite: bool = False, user: str | None = None, identifier: int | None = None
    ) -> Writer:
        """Return a writer of one commit.

        With `overwrite` its rows replace those of the partitions that they are in, or of a table
        without partitions. `user` and `identifier` (growing with each commit of that user) make a
        commit that is tried again land once.

        UnsupportedError names an option of the table that is not implemented for writing.
        """
        return Writer(self.files, overwrite=overwrite, user=user, identifier=identifier)

    def write(self, rows: RowData) -> Snapshot | None:
        """Write rows and commit them; the snapshot. Raises as `Writer`."""
        with self.writer() as writer:
            writer.write(rows)
        return writer.snapshot

    def delete(self, rows: RowData) -> Snapshot | None:
        """Delete the rows that have these keys and commit that. Raises as `Writer`."""
        with self.writer() as writer:
            writer.delete(rows)
        return writer.snapshot
