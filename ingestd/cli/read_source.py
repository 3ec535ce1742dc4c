"""The options of `ingestd read`, and the rows that they request."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from ingestd.cli.rows_output import PrintedRows
from ingestd.errors import ConfigError
from ingestd.paimon.catalog.base import Catalog
from ingestd.paimon.catalog.sys_tables import SYS, read_sys_table, sys_fields
from ingestd.paimon.spec.data_types import DataField
from ingestd.paimon.spec.literals import timestamp_millis
from ingestd.paimon.spec.predicate import Predicate, matching
from ingestd.paimon.spec.predicate_text import parse_predicate
from ingestd.paimon.table.files.row_tracking import with_row_ids
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable
from ingestd.paimon.table.read.binlog import binlog_fields, packed_rows, single_rows
from ingestd.paimon.table.read.fallback_branch import fallback_branch, snapshot_rows
from ingestd.paimon.table.read.incremental_read import (
    CHANGE_FIELDS,
    change_fields,
    iter_added_rows,
    iter_changed,
    iter_changelog,
)
from ingestd.paimon.table.read.point_read import PointReader
from ingestd.paimon.table.read.scan_options import BETWEEN, ScanTarget, requested_target
from ingestd.paimon.table.read.table_read import TableReader
from ingestd.paimon.table.system.system_tables import read_system_table, system_table

AUDIT_LOG = "audit_log"
BINLOG = "binlog"
READ_OPTIMIZED = "ro"
ROW_TRACKING = "row_tracking"
_DATA_VIEWS = frozenset({None, AUDIT_LOG, BINLOG, READ_OPTIMIZED, ROW_TRACKING})
"""Names of the views of a table's own rows; None is the table itself."""


@dataclass(frozen=True, slots=True)
class Request:
    """The validated options of `ingestd read`.

    `where` is a SQL condition, and `columns` are names with commas between them. `first` and `last`
    are the options `--from` and `--to`, ids of snapshots. `view` is the name of a view of the
    table's own rows, or None for the table itself. Raises ConfigError if the options contradict
    each other.
    """

    where: str | None = None
    columns: str | None = None
    snapshot: int | None = None
    tag: str | None = None
    as_of: str | None = None
    changelog: bool = False
    audit_log: bool = False
    first: int | None = None
    last: int | None = None
    view: str | None = None

    def __post_init__(self) -> None:
        if sum(value is not None for value in (self.snapshot, self.tag, self.as_of)) > 1:
            raise ConfigError("--snapshot, --tag and --as-of name one point in time: give one")
        if self.changelog and self.is_time_travel:
            raise ConfigError("--changelog takes --from and --to instead of --snapshot")
        if self.is_time_travel and self.is_range:
            raise ConfigError("--from and --to exclude --snapshot, --tag and --as-of")
        if self.changelog and self.audit_log:
            raise ConfigError("--changelog prints row kinds already: leave out --audit-log")
        if self.view == READ_OPTIMIZED and (self.changelog or self.is_range):
            raise ConfigError("$ro shows the table as of its last full compaction: no changes")
        if self.view == ROW_TRACKING and self.changelog:
            raise ConfigError("$row_tracking shows rows with their ids: leave out --changelog")

    @property
    def names(self) -> tuple[str, ...] | None:
        """The requested columns, or None for all columns."""
        return None if self.columns is None else tuple(self.columns.split(","))

    @property
    def is_time_travel(self) -> bool:
        """Whether the rows of a past snapshot, a tag or a time are requested."""
        return self.snapshot is not None or self.tag is not None or self.as_of is not None

    @property
    def is_range(self) -> bool:
        """Whether the rows of a range of snapshots are requested, by `first` or `last`."""
        return self.first is not None or self.last is not None


def requested_rows(table: FileStoreTable, view: str | None, request: Request) -> PrintedRows:
    """Return the requested rows of a table or of a view of it, which are read when iterated.

    `view` is the name of the view (None: the table itself). Raises ConfigError, UnsupportedError,
    StorageError or FormatError, now or during the iteration, if the rows cannot be read.
    """
    if view not in _DATA_VIEWS:
        return _system_rows(table, view or "", request)
    request = replace(request, view=view)
    if view == AUDIT_LOG or (view == BINLOG and not request.changelog):
        request = replace(request, audit_log=True)
    if request.changelog:
        changes = _changes(table, request)
        return _as_binlog(changes, CHANGE_FIELDS[1].name) if view == BINLOG else changes
    rows = _rows(table, request)
    return _as_binlog(rows) if view == BINLOG else rows


def looked_up_rows(table: FileStoreTable, keys: pa.Table, request: Request) -> PrintedRows:
    """Return the rows of a table that have one of the given primary keys, read when iterated.

    `keys` has the columns of the primary key; `request` selects the columns and the snapshot.
    Raises ConfigError, UnsupportedError, StorageError or FormatError, now or during the iteration,
    if the rows cannot be read.
    """
    reader = PointReader.of(table, _target(table, request), keys, request.names)
    return PrintedRows(reader.rows(), reader.fields(), in_order=False)


def _rows(table: FileStoreTable, request: Request) -> PrintedRows:
    if request.is_range:
        reader = _reader(table, request)
        tables = iter_changed(reader, request.first or 1, request.last)
        return PrintedRows(tables, reader.row_fields(), in_order=False)
    target = _target(table, request)
    if target.between is not None:
        return _added_rows(table, request, target.between)
    reader = _reader(target.at(table), request)
    fallback = fallback_branch(table, target)
    if fallback is not None and request.view == ROW_TRACKING:
        fallback = replace(fallback, table=with_row_ids(fallback.table))
    rows = snapshot_rows(reader, target.snapshot, fallback)
    return PrintedRows(rows, reader.row_fields(), in_order=False)


def _added_rows(table: FileStoreTable, request: Request, between: tuple[int, int]) -> PrintedRows:
    """Return the rows that were added after the snapshot `between[0]`, up to `between[1]`.

    These ids are set by the table's option `incremental-between`. Raises ConfigError if row kinds
    or a view are requested.
    """
    if request.audit_log or request.view is not None:
        raise ConfigError(
            f"table {table.name}: option '{BETWEEN}' applies to the table itself, not to its "
            "views; specify --changelog or --snapshot"
        )
    fields = table.schema.fields
    added = iter_added_rows(table, between[0] + 1, between[1])
    return _matching(added, fields, _shown(fields, request.names, table.name), request)


def _matching(
    tables: Iterable[pa.Table],
    fields: Sequence[DataField],
    shown: tuple[DataField, ...],
    request: Request,
) -> PrintedRows:
    """Return the rows for which the condition is true, in the columns `shown`."""
    predicate = _predicate(request, fields)
    types = {field.name: field.type for field in fields}
    names = [field.name for field in shown]
    return PrintedRows(
        (matching(predicate, table, types).select(names) for table in tables), shown, in_order=True
    )


def _reader(table: FileStoreTable, request: Request) -> TableReader:
    if request.view == ROW_TRACKING:
        table = with_row_ids(table)
    predicate = _predicate(request, table.schema.fields)
    top_level = request.view == READ_OPTIMIZED
    return TableReader(
        table, request.names, predicate, audit=request.audit_log, top_level=top_level
    )


def _as_binlog(rows: PrintedRows, kind: str | None = None) -> PrintedRows:
    """Return rows in the layout of `$binlog`, in which every column is an array.

    `kind` names the column of row kinds; with it, both rows of an update become one. Raises
    ConfigError if the rows lack this column.
    """
    fields = binlog_fields(rows.fields)
    if kind is None:
        return PrintedRows(
            (single_rows(part, fields) for part in rows.parts), fields, rows.in_order
        )
    if not any(field.name == kind for field in fields):
        raise ConfigError(f"$binlog joins rows by their kind: name {kind} in --columns, too")
    parts = (packed_rows(part, fields, kind) for part in rows.parts)
    return PrintedRows(parts, fields, rows.in_order)


def _predicate(request: Request, fields: Sequence[DataField]) -> Predicate | None:
    return None if request.where is None else parse_predicate(request.where, fields)


def _target(table: FileStoreTable, request: Request) -> ScanTarget:
    millis = None if request.as_of is None else timestamp_millis(request.as_of)
    return requested_target(table, snapshot=request.snapshot, tag=request.tag, as_of_millis=millis)


def _changes(table: FileStoreTable, request: Request) -> PrintedRows:
    fields = change_fields(table)
    changes = iter_changelog(table, request.first, request.last)
    return _matching(changes, fields, _shown(fields, request.names, table.name), request)


def _system_rows(table: FileStoreTable, view: str, request: Request) -> PrintedRows:
    fields = system_table(view).fields
    if request.changelog or request.audit_log or request.is_range:
        raise ConfigError(f"${view} is not a table with changes")
    rows = read_system_table(table, view, _target(table, request).snapshot)
    return _matching([rows], fields, _shown(fields, request.names, f"{table.name}${view}"), request)


def sys_rows(catalog: Catalog, name: str, request: Request) -> PrintedRows:
    """Return the requested rows of a table of the database `sys` of a catalog.

    Raises ConfigError for an unknown table, and if changes or a point in time are requested.
    """
    fields, title = sys_fields(name), f"{SYS}.{name}"
    if request.changelog or request.audit_log or request.is_range or request.is_time_travel:
        raise ConfigError(f"{title} shows the catalog as it is now: no changes, no snapshots")
    parts = read_sys_table(catalog, name)
    return _matching(parts, fields, _shown(fields, request.names, title), request)


def _shown(
    fields: Sequence[DataField], columns: Sequence[str] | None, name: str
) -> tuple[DataField, ...]:
    if columns is None:
        return tuple(fields)
    by_name = {field.name: field for field in fields}
    unknown = [column for column in columns if column not in by_name]
    if unknown:
        raise ConfigError(
            f"{name} has no column {', '.join(unknown)}; its columns are {', '.join(by_name)}"
        )
    return tuple(by_name[column] for column in columns)
