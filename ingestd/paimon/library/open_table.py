"""An open table: its metadata, rows, changes, and writers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Unpack

import pyarrow as pa

from ingestd.paimon.casts.evolution import columns_schema
from ingestd.paimon.library.scan import (
    ChangeSelection,
    KeySelection,
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


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a warehouse, with the schema that it had when it was opened.

    The rows to read are selected by the keywords of `Selection`: `columns`, `where`, and one of
    `snapshot`, `tag`, `as_of`, `between`. The order of rows is not defined.
    """

    files: FileStoreTable
    """The table for other modules of `ingestd.paimon`."""

    @property
    def name(self) -> str:
        """Return the name ``database.table``."""
        return self.files.name

    @property
    def schema(self) -> pa.Schema:
        """Return the columns as an Arrow schema."""
        return columns_schema(self.files.schema.fields)

    @property
    def primary_keys(self) -> tuple[str, ...]:
        """Return the columns of the primary key; empty for an append table."""
        return self.files.schema.primary_keys

    @property
    def partition_keys(self) -> tuple[str, ...]:
        """Return the partition columns."""
        return self.files.schema.partition_keys

    @property
    def options(self) -> Mapping[str, str]:
        """Return the options of the table, by Paimon's names."""
        return self.files.schema.options

    def snapshot(self) -> Snapshot | None:
        """Return the newest snapshot, or None if the table has none."""
        return latest_snapshot(self.files.io, self.files.paths)

    def snapshots(self) -> list[Snapshot]:
        """Return the snapshots that have not expired, oldest first."""
        io, paths = self.files.io, self.files.paths
        return [read_snapshot(io, paths, snapshot_id) for snapshot_id in snapshot_ids(io, paths)]

    def tags(self) -> list[str]:
        """Return the names of all tags, sorted."""
        return tag_names(self.files.io, self.files.paths)

    def scan(self, **how: Unpack[Selection]) -> Scan:
        """Return a scan of the selected rows, which reads them on demand.

        Raises ConfigError for an unknown column, tag or snapshot, a timestamp before the first
        snapshot, an invalid condition, or several points in time.
        """
        return scan_rows(self.files, how)

    def changes(self, **how: Unpack[ChangeSelection]) -> Scan:
        """Return a scan of the selected changes, which reads them in commit order on demand.

        Raises ConfigError for an unknown column or an invalid condition.
        """
        return scan_changes(self.files, how)

    def get(self, keys: RowData, **how: Unpack[KeySelection]) -> pa.Table:
        """Return the rows with the given primary keys as an Arrow table, in no defined order.

        `keys` has the primary key columns; keys without a row are left out. Only files that may
        contain one of the keys are opened. Raises ConfigError for a table without a primary key,
        for invalid keys, and for an unknown column, tag or snapshot; and the errors of `Scan`.
        """
        return scan_keys(self.files, arrow_keys(self.files, keys), how).to_arrow()

    def to_arrow(self, **how: Unpack[Selection]) -> pa.Table:
        """Return the selected rows as an Arrow table. Raises the errors of `scan` and `Scan`."""
        return self.scan(**how).to_arrow()

    def to_pandas(self, **how: Unpack[Selection]) -> Any:  # noqa: ANN401  (a package that need not be installed)
        """Return the selected rows as a `pandas.DataFrame`.

        Raises the errors of `scan` and `Scan`.
        """
        return self.scan(**how).to_pandas()

    def to_polars(self, **how: Unpack[Selection]) -> Any:  # noqa: ANN401  (a package that need not be installed)
        """Return the selected rows as a `polars.DataFrame`.

        Raises the errors of `scan` and `Scan`.
        """
        return self.scan(**how).to_polars()

    def to_duckdb(self, **how: Unpack[Selection]) -> Any:  # noqa: ANN401  (a package that need not be installed)
        """Return the selected rows as a relation of DuckDB's default connection.

        Raises the errors of `scan` and `Scan`.
        """
        return self.scan(**how).to_duckdb()

    def writer(
        self, *, overwrite: bool = False, user: str | None = None, identifier: int | None = None
    ) -> Writer:
        """Return a writer for one commit.

        With `overwrite` its rows replace the rows of their partitions, or of the whole table if it
        is not partitioned. With `user` and `identifier`, a repeated commit takes effect only once;
        the identifier must increase with each commit of the user. Raises UnsupportedError, naming
        the option, for a table option that is not implemented for writing.
        """
        return Writer(self.files, overwrite=overwrite, user=user, identifier=identifier)

    def write(self, rows: RowData) -> Snapshot | None:
        """Write rows, commit them, and return the snapshot; None if there are no rows.

        Raises the errors of `Writer`.
        """
        with self.writer() as writer:
            writer.write(rows)
        return writer.snapshot

    def delete(self, rows: RowData) -> Snapshot | None:
        """Delete the rows with these keys, commit, and return the snapshot (None without keys).

        Raises the errors of `Writer`.
        """
        with self.writer() as writer:
            writer.delete(rows)
        return writer.snapshot
