"""Scans of tables, which are read on demand as Arrow, pandas, Polars or DuckDB."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from typing import Any

import pyarrow as pa

from ingestd.errors import ArgumentError, ConfigError
from ingestd.paimon.casts.evolution import columns_schema
from ingestd.paimon.spec.data_types import DataField
from ingestd.paimon.spec.literals import timestamp_millis
from ingestd.paimon.spec.predicate import Predicate, matching
from ingestd.paimon.spec.predicate_text import parse_predicate
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.read.fallback_branch import fallback_branch, snapshot_rows
from ingestd.paimon.table.read.incremental_read import (
    change_fields,
    iter_added_rows,
    iter_changed,
    iter_changelog,
)
from ingestd.paimon.table.read.point_read import PointReader
from ingestd.paimon.table.read.scan_options import ScanTarget, requested_target
from ingestd.paimon.table.read.table_read import TableReader, selected_fields

_MILLIS = 1000


@dataclass(frozen=True, slots=True)
class Selection:
    """The arguments by which the methods of `Table` select rows, columns and a point in time.

    `columns`: names, in the requested order (None: all). `where`: a condition (None: all rows). At
    most one of `snapshot`, `tag`, `as_of` and `between` is not None; otherwise ArgumentError is
    raised.
    """

    columns: Sequence[str] | None = None
    where: str | None = None
    snapshot: int | None = None
    tag: str | None = None
    as_of: str | datetime | None = None
    between: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        times = ("snapshot", "tag", "as_of", "between")
        given = [name for name in times if getattr(self, name) is not None]
        if len(given) > 1:
            raise ArgumentError(f"{' and '.join(given)} each name a point in time: give one")


@dataclass(frozen=True, slots=True)
class Scan:
    """Rows or changes of a table, which are read when they are consumed.

    Each method call reads them again: rows from the snapshot that was selected when the scan was
    created, changes without a range up to the newest snapshot at that moment. Reading raises
    FormatError for a damaged file, StorageError if the storage fails, UnsupportedError for a table
    with features that are not supported, and ArgumentError if a snapshot of a range has expired.
    """

    schema: pa.Schema
    _parts: Callable[[], Iterator[pa.Table]]

    def batches(self) -> pa.RecordBatchReader:
        """Return a reader of the rows in batches, which reads files while it is consumed.

        At most three units are in memory; a unit is one data file, or the files of a bucket whose
        key ranges overlap.
        """
        return pa.RecordBatchReader.from_batches(self.schema, self._record_batches())

    def to_arrow(self) -> pa.Table:
        """Return all rows as one Arrow table."""
        return self.batches().read_all()

    def to_pandas(self) -> Any:  # noqa: ANN401  (a package that need not be installed)
        """Return all rows as a `pandas.DataFrame`.

        Raises ConfigError, which names the extra to install, if pandas is missing.
        """
        optional_package("pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:  # noqa: ANN401  (a package that need not be installed)
        """Return all rows as a `polars.DataFrame`.

        Raises ConfigError if Polars is not installed.
        """
        return optional_package("polars").from_arrow(self.to_arrow())

    def to_duckdb(self, connection: Any = None) -> Any:  # noqa: ANN401  (a package that need not be installed)
        """Return the rows as a DuckDB relation, which reads them on demand and only once.

        `connection` is the DuckDB connection to use (None: the default connection). Raises
        ConfigError if DuckDB is not installed.
        """
        duckdb = optional_package("duckdb")
        return (duckdb if connection is None else connection).from_arrow(self.batches())

    def _record_batches(self) -> Iterator[pa.RecordBatch]:
        for rows in self._parts():
            yield from rows.cast(self.schema).to_batches()


def scan_rows(table: FileStoreTable, how: Selection) -> Scan:
    """Return a scan of the rows that `how` selects.

    Without a point in time, the table's scan options apply. Raises ArgumentError for an unknown
    column, tag or snapshot, a timestamp before the first snapshot, or an invalid condition or
    range; ConfigError or UnsupportedError for scan options that are invalid or not implemented, or
    a fallback branch that cannot be read.
    """
    if how.between is not None:
        after, last = _range(how.between)
        reader = _reader(table, how)
        return _scan(reader.row_fields(), lambda: iter_changed(reader, after + 1, last))
    target = _target(table, how)
    if target.between is not None:
        after, last = target.between
        added = partial(iter_added_rows, table, after + 1, last)
        return _matching_scan(table, table.schema.fields, how, added)
    reader = _reader(target.at(table), how)
    fallback = fallback_branch(table, target)
    return _scan(reader.row_fields(), lambda: snapshot_rows(reader, target.snapshot, fallback))


def scan_keys(table: FileStoreTable, keys: pa.Table, how: Selection) -> Scan:
    """Return a scan of the rows with the given primary keys, as of the point in time of `how`.

    `keys` has the primary key columns in the types of the table; keys without a row are left out.
    Raises ArgumentError for an unknown column, tag or snapshot, or a timestamp before the first
    snapshot; ConfigError for scan options that are invalid or select changes, UnsupportedError for
    scan options that are not implemented.
    """
    reader = PointReader.of(table, _target(table, how), keys, how.columns)
    return _scan(reader.fields(), reader.rows)


def scan_changes(table: FileStoreTable, how: Selection) -> Scan:
    """Return a scan of the changes that `how` selects, in commit order.

    Without a range, these are all changes that have not expired. Raises ArgumentError for an
    unknown column, or an invalid condition or range.
    """
    after, last = _range(how.between) if how.between is not None else (None, None)
    first = None if after is None else after + 1
    changes = partial(iter_changelog, table, first, last)
    return _matching_scan(table, change_fields(table), how, changes)


def _matching_scan(
    table: FileStoreTable,
    fields: Sequence[DataField],
    how: Selection,
    read_parts: Callable[[], Iterator[pa.Table]],
) -> Scan:
    """Return a scan of the rows of `read_parts` that match `where`, with the requested columns."""
    predicate = _predicate(how.where, fields)
    shown = _shown(table, fields, how.columns)
    types = {field.name: field.type for field in fields}
    names = [field.name for field in shown]

    def parts() -> Iterator[pa.Table]:
        for rows in read_parts():
            yield matching(predicate, rows, types).select(names)

    return _scan(shown, parts)


def _scan(fields: Sequence[DataField], parts: Callable[[], Iterator[pa.Table]]) -> Scan:
    return Scan(columns_schema(tuple(fields)), parts)


def _reader(table: FileStoreTable, how: Selection) -> TableReader:
    predicate = _predicate(how.where, table.schema.fields)
    reader = TableReader(table, how.columns, predicate)
    reader.fields()
    return reader


def _predicate(where: str | None, fields: Sequence[DataField]) -> Predicate | None:
    return None if where is None else parse_predicate(where, fields)


def _target(table: FileStoreTable, how: Selection) -> ScanTarget:
    millis = None if how.as_of is None else _millis(how.as_of)
    return requested_target(table, snapshot=how.snapshot, tag=how.tag, as_of_millis=millis)


def _millis(moment: str | datetime) -> int:
    if isinstance(moment, str):
        return timestamp_millis(moment)
    known = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return int(known.timestamp() * _MILLIS)


def _range(between: tuple[int, int]) -> tuple[int, int]:
    after, last = between
    if not 0 <= after <= last:
        raise ArgumentError(f"between={between}: write (AFTER, UNTIL), two snapshot ids in order")
    return after, last


def _shown(
    table: FileStoreTable, fields: Sequence[DataField], columns: Sequence[str] | None
) -> tuple[DataField, ...]:
    if columns is None:
        return tuple(fields)
    by_name = {field.name: field for field in fields}
    selected_fields(table, [name for name in columns if name not in by_name])
    return tuple(by_name[name] for name in columns)


def optional_package(name: str) -> Any:  # noqa: ANN401  (a package that need not be installed)
    """Import and return a package.

    Raises ConfigError, which names the extra to install, if the package is missing.
    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise ConfigError(
            f"{name} is not installed: `pip install 'ingestd-paimon[{name}]'`"
        ) from error
