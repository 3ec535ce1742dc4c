"""Rename, add and drop columns of a source table, as the settings of its target require.

In this order: columns are renamed; columns of the route, of the record, and computed ones are
added; columns that are not selected are dropped. Most tables have no such settings. Decoders look
up the column types of the targets here, by source table and under the names of the source.

Rows before changes are dropped, too, unless the target needs them. A table with the changelog
producer `input` shows its readers the row before an update or a delete, which only the source
knows. If a key is computed from a changed column, the message key does not change, so only the row
before the update shows it. All formats of the batch's sources then decode these rows.
"""

import time
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.cdc.base import ChangeBatch, RecordChunk, SourceTable
from ingestd.cdc.source_position import ordering_positions
from ingestd.errors import SchemaConflictError
from ingestd.ingest.computed.columns import ComputedColumn, compute, in_order
from ingestd.ingest.computed.expressions.cells import Frame
from ingestd.ingest.computed.metadata_columns import (
    METADATA_TYPES,
    SOURCE_POSITION,
    metadata_column,
)
from ingestd.ingest.rows.batch_rows import Failure
from ingestd.ingest.rows.router import Route, Router
from ingestd.ingest.schemas.column_aliases import renamed
from ingestd.ingest.schemas.column_history import (
    COLUMN_HISTORY_OPTION,
    read_column_history,
    with_old_names,
)
from ingestd.ingest.settings.context import (
    BatchContext,
    SourceSettings,
    TableContext,
    TableSettings,
)
from ingestd.ingest.settings.shape_settings import ShapeSettings
from ingestd.ingest.values.row_groups import Values
from ingestd.paimon.merge.row_kinds import retraction_refusal
from ingestd.paimon.spec import honoured_options as honoured
from ingestd.paimon.spec.changelog_checks import INPUT, writes_input
from ingestd.paimon.spec.data_types import DataType, RowKind
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable

Mask = npt.NDArray[np.bool_]
_TEXT = DataType("STRING")
ColumnTypes = Mapping[str, DataType]


@dataclass(frozen=True, slots=True)
class RowShape:
    """The column changes for the rows of one route.

    `table` is for messages, `aliases` maps new names to old ones, `added` are the route's own
    columns with their text, `key` those of them that precede a message key. `moving` are columns of
    the primary key that are computed from others, so that an update may change them. With
    `by_position` a row needs a source position.
    """

    table: str
    settings: ShapeSettings
    aliases: Mapping[str, str] = field(default_factory=dict)
    added: Mapping[str, str] = field(default_factory=dict)
    key: tuple[str, ...] = ()
    computed: tuple[ComputedColumn, ...] = ()
    moving: tuple[str, ...] = ()
    by_position: bool = False

    def as_in_source(self, types: Mapping[str, DataType]) -> dict[str, DataType]:
        """Return types of the target's columns under the names of the source.

        Columns that a key column is computed from are NOT NULL, too: they are needed to find the
        row.
        """
        added = {*self.settings.added(), *self.added}
        own = {name: data_type for name, data_type in types.items() if name not in added}
        needed = {
            source
            for name in added & types.keys()
            if not types[name].nullable
            for source in self.settings.sources_of(name)
        }
        own.update({name: own[name].not_null() for name in needed & own.keys()})
        old_names = {old: own[new] for new, old in self.aliases.items() if new in own}
        return {**old_names, **own}


def row_shape(route: Route, settings: TableSettings) -> RowShape | None:
    """Return the shape of the rows of a route; None if their columns do not change.

    Raises ConfigError for circular computed columns.
    """
    policy = settings.evolution
    shape, aliases = settings.shape, policy.aliases
    if policy.drop:
        shape = replace(shape, exclude=(*shape.exclude, *policy.drop))
    if shape.is_plain and not aliases and not route.columns:
        return None
    computed = in_order(shape.computed)
    # A configured key takes precedence over key columns of routes.
    key = route.key_columns if settings.primary_keys is None else ()
    moving = settings.computed_key
    return RowShape(
        route.table,
        shape,
        aliases,
        route.columns,
        key,
        computed,
        moving,
        by_position=settings.by_position,
    )


@dataclass(frozen=True, slots=True)
class Shapes:
    """The shapes of all source tables, cached."""

    _context: BatchContext
    _router: Router
    _known: dict[tuple[str, SourceTable], RowShape | None] = field(default_factory=dict)

    def of(self, topic: str, source_table: SourceTable) -> RowShape | None:
        """Return the shape of a source table's rows; None for unchanged or excluded rows."""
        key = (topic, source_table)
        if key not in self._known:
            route = self._router.route_of(topic, source_table)
            settings = self._context.settings_of(route.table) if route else None
            self._known[key] = row_shape(route, settings) if route and settings else None
        return self._known[key]

    def check_key(self, topic: str, source_table: SourceTable, target: TableContext | None) -> None:
        """Raise SchemaConflictError if the target exists without the key of its route."""
        shape = self.of(topic, source_table)
        if shape is not None and target is not None:
            _refuse_other_key(shape, target)


def _refuse_other_key(shape: RowShape, target: TableContext) -> None:
    """Raise SchemaConflictError if the table's key does not distinguish its sources."""
    keys = target.table.schema.primary_keys
    missing = [name for name in shape.key if name not in keys]
    if keys and missing:
        raise SchemaConflictError(
            f"table {target.identifier}: its route needs column '{missing[0]}' in the primary key, "
            f"but it exists with the key {list(keys)}, by which rows of several sources would "
            "overwrite each other; drop or rename the table to create it again, or set its "
            "key in primary-keys"
        )


def apply_shape(
    shape: RowShape,
    batch: ChangeBatch,
    chunk: RecordChunk,
    source: SourceSettings,
    target: TableContext | None,
) -> tuple[ChangeBatch, tuple[Failure, ...]]:
    """Apply a shape to a batch of a chunk as `reshape`, at the current time.

    If an update changed the key, a DELETE of the old one is added for tables whose changelog has no
    rows before updates.
    """
    batch, failures = reshape(shape, batch, chunk, source, time.time_ns() // 1_000_000)
    if not shape.moving or target is None or writes_before_images(target.table):
        return batch, failures
    batch, kept = deletes_of_moved(batch, shape.moving)
    return batch, tuple(replace(failure, rows=failure.rows[kept]) for failure in failures)


def reshape(
    shape: RowShape, batch: ChangeBatch, chunk: RecordChunk, source: SourceSettings, now_ms: int
) -> tuple[ChangeBatch, tuple[Failure, ...]]:
    """Apply a shape to a batch of a chunk; return it with the rows whose computation failed.

    `now_ms` is the result of `now()`. Raises SchemaConflictError if the source has a column with
    the name of an added one, a key column is not selected, or a function does not accept a type.
    """
    work = _Work(shape, renamed(batch, shape.aliases))
    work.add_route()
    work.add_metadata(chunk, source)
    for column in shape.computed:
        work.compute(column, now_ms)
    return work.result(), tuple(work.failures)


def _whole(values: Values) -> Values:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


class _Work:
    """The columns of one batch during the changes."""

    def __init__(self, shape: RowShape, batch: ChangeBatch) -> None:
        self.failures: list[Failure] = []
        self._shape = shape
        self._batch = batch
        self._values: dict[str, Values] = {
            name: batch.columns.column(name)
            for name in batch.types
            if not shape.settings.gives_way(name)
        }
        self._types = {name: batch.types[name] for name in self._values}
        self._unavailable = {
            name: marks
            for name, marks in batch.unavailable.items()
            if not shape.settings.gives_way(name)
        }
        self._own = frozenset((*self._values, *self._unavailable))

    @property
    def _rows(self) -> int:
        return len(self._batch.offset)

    @property
    def _retracts(self) -> Mask:
        kinds = self._batch.row_kind
        marks: Mask = (kinds == RowKind.DELETE) | (kinds == RowKind.UPDATE_BEFORE)
        return marks

    def add_route(self) -> None:
        for name, text in self._shape.added.items():
            self._add(name, pa.repeat(pa.scalar(text, pa.string()), self._rows), _TEXT)

    def add_metadata(self, chunk: RecordChunk, source: SourceSettings) -> None:
        batch = self._batch
        data_format, framing = source.data_format, source.format_settings.framing
        for name, column in self._shape.settings.metadata_columns():
            if column == SOURCE_POSITION:
                values = self._positions(data_format)
            else:
                values = metadata_column(
                    column, chunk, batch.source, batch.offset, data_format, framing=framing
                )
            self._add(name, values, METADATA_TYPES[column])

    def _positions(self, data_format: str) -> Values:
        """Return source positions; a snapshot row without one gets null, the oldest of all."""
        batch = self._batch
        places = ordering_positions(batch.position, batch.snapshot_row)
        unknown = places < 0
        lacking = unknown & ~batch.snapshot_row
        if self._shape.by_position and bool(lacking.any()):
            message = f"its {data_format} message does not contain its position in the source's log"
            self.failures.append(Failure(lacking, "cast", "unknown-position", message))
        return pa.array(places, pa.int64(), mask=unknown)

    def compute(self, column: ComputedColumn, now_ms: int) -> None:
        left_out = [
            self._unavailable[source] for source in column.sources if source in self._unavailable
        ]
        if left_out:
            self._unavailable[column.name] = np.logical_or.reduce(left_out)
        made = compute(column, self._types, self._frame(column, now_ms))
        if made is None:
            return
        self._add(column.name, made.values, made.type)
        failed = made.failed
        if column.name not in self._shape.moving:
            # Values of a retraction outside the key are not used.
            failed = failed & ~self._retracts
        if bool(failed.any()):
            names = ", ".join(f"'{name}'" for name in column.sources)
            message = f"{column}: invalid value of column {names}"
            self.failures.append(Failure(failed, "cast", "computed", message))

    def _frame(self, column: ComputedColumn, now_ms: int) -> Frame:
        there = {name: self._values[name] for name in column.sources if name in self._values}
        return Frame({name: _whole(values) for name, values in there.items()}, self._rows, now_ms)

    def _add(self, name: str, values: Values, data_type: DataType) -> None:
        if name in self._types:
            raise SchemaConflictError(
                f"table {self._shape.table}: column '{name}' is to be added, but "
                f"{'.'.join(name for name in self._batch.source if name)} has a column of that "
                "name; give it another name (metadata columns: a metadata-column-prefix), or "
                "leave out the source's by select.exclude"
            )
        self._values[name], self._types[name] = values, data_type

    def result(self) -> ChangeBatch:
        settings, batch = self._shape.settings, self._batch
        left_out = frozenset(name for name in self._own if not settings.selects(name))
        names = [name for name in self._types if name not in left_out]
        lost = [name for name in batch.primary_keys if name in left_out]
        if lost:
            raise SchemaConflictError(
                f"table {self._shape.table}: column '{lost[0]}' of the message key is excluded; "
                "include it in select"
            )
        return replace(
            batch,
            columns=pa.table({name: self._values[name] for name in names}),
            types={name: self._types[name] for name in names},
            primary_keys=(*self._shape.key, *batch.primary_keys) if batch.primary_keys else (),
            unavailable={n: m for n, m in self._unavailable.items() if n not in left_out},
        )


@dataclass(frozen=True, eq=False)
class _ByRoute(Mapping[SourceTable, ColumnTypes]):
    """Column types by source table, looked up through its route."""

    _context: BatchContext
    _router: Router
    _topic: str
    _known: dict[SourceTable, ColumnTypes | None] = field(default_factory=dict)

    def __getitem__(self, source_table: SourceTable) -> ColumnTypes:
        if source_table not in self._known:
            route = self._router.route_of(self._topic, source_table)
            types = None if route is None else self._types(route.table)
            if route is not None and types is not None:
                shape = row_shape(route, self._context.settings_of(route.table))
                types = types if shape is None else shape.as_in_source(types)
            self._known[source_table] = types
        types = self._known[source_table]
        if types is None:
            raise KeyError(source_table)
        return types

    def __iter__(self) -> Iterator[SourceTable]:
        """Yield the source tables that are known to feed the context's tables."""
        known = {
            feed.source_table for table in self._context.tables.values() for feed in table.feeds
        }
        return (source_table for source_table in known if self.get(source_table) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @abstractmethod
    def _types(self, table: str) -> ColumnTypes | None:
        """Return types by column of a target table, None if it is unknown."""


class TableColumns(_ByRoute):
    """Types of the columns of the target tables at the start of the batch.

    Only columns of the primary key are NOT NULL.
    """

    def _types(self, table: str) -> ColumnTypes | None:
        target = self._context.tables.get(table)
        if target is None:
            return None
        schema = target.table.schema
        types = {
            column.name: column.type.not_null()
            if column.name in schema.primary_keys
            else column.type.as_nullable()
            for column in schema.fields
        }
        if COLUMN_HISTORY_OPTION not in schema.options:
            return types
        return with_old_names(types, read_column_history(schema.options, table))


class DeclaredColumns(_ByRoute):
    """Configured types for columns of the target tables."""

    def _types(self, table: str) -> ColumnTypes | None:
        return self._context.settings_of(table).column_types or None


def wants_images(context: BatchContext) -> bool:
    """Return whether a table of the batch, or one it may create, needs rows before changes.

    Needed for the changelog producer `input`, for a key computed from columns outside the message
    key, and for a table without a key that keeps every change.
    """
    if announced(context) or context.computes_keys():
        return True
    all_settings = (context.defaults, *context.settings.values())
    if any(settings.keyless_table_mode == "audit" for settings in all_settings):
        return True
    return any(writes_input(table.table.schema) for table in context.tables.values())


def announced(context: BatchContext) -> bool:
    """Return whether the configuration sets the changelog producer `input` for any table."""
    all_settings = (context.defaults, *context.settings.values())
    return any(
        honoured.CHANGELOG_PRODUCER.of(settings.options) == INPUT for settings in all_settings
    )


def as_wanted(shape: RowShape | None, batch: ChangeBatch, table: FileStoreTable) -> ChangeBatch:
    """Return the changes without rows before updates, unless the table or the shape needs them.

    A table needs none if row kinds are in a column, or if rows cannot be retracted: then an update
    is only the row after it, as without a changelog.
    """
    if (shape is not None and shape.moving) or writes_before_images(table):
        return batch
    return batch.filter(batch.row_kind != RowKind.UPDATE_BEFORE)


def writes_before_images(table: FileStoreTable) -> bool:
    """Return whether the changelog of a table contains rows before updates."""
    rules = table.merge_rules
    takes_input = writes_input(table.schema) and rules.rowkind_field is None
    return takes_input and retraction_refusal(rules) is None


def deletes_of_moved(batch: ChangeBatch, key: Sequence[str]) -> tuple[ChangeBatch, Mask]:
    """Add a DELETE for each row before an update whose columns of `key` changed.

    Other rows before updates are removed; the mask states which rows were kept.
    """
    before = batch.row_kind == RowKind.UPDATE_BEFORE
    where = np.flatnonzero(before)
    if not len(where):
        return batch, np.ones(len(before), np.bool_)
    following = np.minimum(where + 1, len(before) - 1)
    paired = (batch.offset[following] == batch.offset[where]) & (following > where)
    moved = np.zeros(len(before), np.bool_)
    moved[where] = ~paired | ~_equal(batch, key, where, following)
    kinds = np.where(moved, np.int8(RowKind.DELETE), batch.row_kind)
    keep = ~before | moved
    return replace(batch, row_kind=kinds).filter(keep), keep


def _equal(
    batch: ChangeBatch,
    key: Sequence[str],
    rows: npt.NDArray[np.int64],
    others: npt.NDArray[np.int64],
) -> Mask:
    equal = np.ones(len(rows), np.bool_)
    for name in key:
        values: Values = batch.columns.column(name)
        equal &= _same(values.take(pa.array(rows)), values.take(pa.array(others)))
    return equal


def _same(left: Values, right: Values) -> Mask:
    """Return whether values are equal, with null equal to null."""
    equal: Values = pc.equal(left, right)
    same: Values = pc.fill_null(equal, False)
    marks: Mask = np.asarray(same)
    nulls: Mask = np.asarray(left.is_null()) & np.asarray(right.is_null())
    return marks | nulls
