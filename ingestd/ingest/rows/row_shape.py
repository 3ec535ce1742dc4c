"""Rename, add and drop columns of a source table, as the settings of its target require.

Columns are renamed first; then route columns, metadata columns and computed columns are added; then
the row filter is applied; then columns that are not selected are dropped. Most tables have no such
settings.

Before images of updates are dropped afterwards, unless the target needs them. A table with the
changelog producer `input` provides its readers with the before images of updates and deletes, which
only the source knows. If the primary key has columns that the message key lacks, an update can
change it while the message key stays the same, so the old key is known only from the before image.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.cdc.base import ChangeBatch, RecordChunk
from ingestd.cdc.source_position import ordering_positions
from ingestd.errors import SchemaConflictError
from ingestd.ingest.computed.computed_columns import ComputedColumn, compute
from ingestd.ingest.computed.expressions.cells import Frame, true_rows
from ingestd.ingest.computed.metadata_columns import (
    SOURCE_POSITION,
    metadata_column,
    metadata_type,
)
from ingestd.ingest.computed.row_filter import RowFilter
from ingestd.ingest.rows.kept_deletes import deletion_times
from ingestd.ingest.rows.rejected_records import Failure
from ingestd.ingest.schemas.column_aliases import renamed
from ingestd.ingest.settings.context import KIND_COLUMN, SourceSettings, TableContext
from ingestd.ingest.settings.shape_settings import ShapeSettings
from ingestd.ingest.settings.soft_deletes import DELETED_AT_TYPE, SoftDeletes
from ingestd.paimon.merge.row_kinds import retraction_refusal
from ingestd.paimon.spec.arrow import Array, Values
from ingestd.paimon.spec.changelog_checks import writes_input
from ingestd.paimon.spec.data_types import DataType, RowKind
from ingestd.paimon.spec.row_selection import Mask, retractions
from ingestd.paimon.table.metadata.file_store_table import FileStoreTable

_TEXT = DataType("STRING")
_KINDS: Array = pa.array(["+I", "-U", "+U", "-D"])


@dataclass(frozen=True, slots=True)
class RowShape:
    """How the columns of a source table are renamed, extended and selected for its target.

    `table` is used in error messages. `aliases` maps new names to old names. `added` maps route
    columns to their values, and `key` are the route columns that precede the message key in the
    primary key. `computed` are the computed columns, each after the columns that it depends on. If
    `by_position`, rows must have a source position. `declared` are the columns with a configured
    type.
    """

    table: str
    settings: ShapeSettings
    aliases: Mapping[str, str] = field(default_factory=dict)
    added: Mapping[str, str] = field(default_factory=dict)
    key: tuple[str, ...] = ()
    computed: tuple[ComputedColumn, ...] = ()
    by_position: bool = False
    declared: frozenset[str] = frozenset()

    @property
    def soft_deletes(self) -> SoftDeletes | None:
        """How deletes are kept as rows, or None if they are applied."""
        return self.settings.soft_deletes(self.added)

    def as_in_source(self, types: Mapping[str, DataType]) -> dict[str, DataType]:
        """Return the types of the target's columns under their names in the source.

        A renamed column is included under its old and its new name; added columns are left out.
        Columns from which a NOT NULL column is computed are NOT NULL, too, because the key of a row
        may depend on them.
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


@dataclass(frozen=True, slots=True)
class ShapedBatch:
    """A batch with the columns of its target, and the failures of its rows.

    `filtered` is the number of rows that did not pass the row filter: they have become DELETE rows,
    or were removed if the table has no primary key. `unknown_keys` is the number of updates without
    a before image that may have changed the primary key.
    """

    batch: ChangeBatch
    failures: tuple[Failure, ...] = ()
    filtered: int = 0
    unknown_keys: int = 0

    def where(self, kept: Mask) -> "ShapedBatch":
        """Return the rows in a mask (rows,), with their failures."""
        failures = (replace(failure, rows=failure.rows[kept]) for failure in self.failures)
        return replace(self, batch=self.batch.filter(kept), failures=tuple(failures))


def apply_shape(
    shape: RowShape,
    batch: ChangeBatch,
    chunk: RecordChunk,
    source: SourceSettings,
    target: TableContext | None,
) -> ShapedBatch:
    """Apply a shape to a batch of a chunk; rows are filtered only if the table exists.

    `target` is the state of the table (None: the table does not exist).

    Raises SchemaConflictError if the source has a column with the name of an added column, a column
    of the message key is not selected, the row filter refers to a column that does not exist, or a
    function does not accept a type. Raises UnsupportedError if `op_ts` is selected and messages do
    not contain it.
    """
    work, now_ms = _Work(shape, renamed(batch, shape.aliases)), time.time_ns() // 1_000_000
    work.add_route()
    work.add_metadata(chunk, source)
    if shape.settings.deletion_column is not None:
        work.add_deletion_times(shape.settings.deletion_column, chunk, source)
    for column in shape.computed:
        work.compute(column, now_ms)
    left_out, filtered = None, 0
    if shape.settings.where is not None and target is not None:
        filtered, left_out = work.filter(shape.settings.where, target.table)
    keys = () if target is None else target.table.schema.primary_keys
    batch, failures = work.result(), work.failures(keys)
    shaped = ShapedBatch(batch, failures, filtered)
    return shaped if left_out is None else shaped.where(~left_out)


def _whole(values: Values) -> Values:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


class _Work:
    """The columns of one batch while a shape is applied."""

    def __init__(self, shape: RowShape, batch: ChangeBatch) -> None:
        self._failures: list[Failure] = []
        self._uncomputed: dict[str, tuple[ComputedColumn, Mask]] = {}
        """Computed columns with the rows for which they fail."""
        self._shape = shape
        self._batch = batch
        self._values: dict[str, Values] = {
            name: batch.columns.column(name)
            for name in batch.types
            if not shape.settings.is_replaced(name)
        }
        self._types = {name: batch.types[name] for name in self._values}
        self._unavailable = {
            name: marks
            for name, marks in batch.unavailable.items()
            if not shape.settings.is_replaced(name)
        }
        self._own = frozenset((*self._values, *self._unavailable))

    @property
    def _rows(self) -> int:
        return len(self._batch.offset)

    @property
    def _retracts(self) -> Mask:
        return retractions(self._batch.row_kind)

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
            self._add(name, values, metadata_type(column))

    def add_deletion_times(self, name: str, chunk: RecordChunk, source: SourceSettings) -> None:
        times = deletion_times(self._batch, chunk, source)
        self._add(name, times, DELETED_AT_TYPE)
        unknown = self._retracts & np.asarray(times.is_null())
        if bool(unknown.any()):
            message = f"column '{name}': neither the delete nor its Kafka record has a time"
            self._failures.append(Failure(unknown, "cast", "unknown-time", message))

    def _positions(self, data_format: str) -> Values:
        """Return the source position of each row, or null if it is unknown; shape (rows,).

        Rows that lack a required position are recorded as failures, except snapshot rows, for which
        null is valid and sorts first.
        """
        batch = self._batch
        positions = ordering_positions(batch.position, batch.snapshot_row)
        unknown = positions < 0
        lacking = unknown & ~batch.snapshot_row
        if self._shape.by_position and bool(lacking.any()):
            message = f"its {data_format} message does not contain its position in the source's log"
            self._failures.append(Failure(lacking, "cast", "unknown-position", message))
        return pa.array(positions, pa.int64(), mask=unknown)

    def compute(self, column: ComputedColumn, now_ms: int) -> None:
        left_out = [
            self._unavailable[source] for source in column.sources if source in self._unavailable
        ]
        if left_out:
            self._unavailable[column.name] = np.logical_or.reduce(left_out)
        outcome = compute(column, self._types, self._frame(column, now_ms))
        if outcome is None:
            return
        self._add(column.name, outcome.values, outcome.type)
        if bool(outcome.failed.any()):
            self._uncomputed[column.name] = column, outcome.failed

    def _frame(self, column: ComputedColumn | RowFilter, now_ms: int = 0) -> Frame:
        there = {name: self._values[name] for name in column.sources if name in self._values}
        return Frame({name: _whole(values) for name, values in there.items()}, self._rows, now_ms)

    def failures(self, keys: Sequence[str]) -> tuple[Failure, ...]:
        """Return the rows that failed, with the reasons; `keys` are the table's primary key."""
        failures = list(self._failures)
        for name, (column, failed) in self._uncomputed.items():
            if name not in keys:
                # Values of a retraction outside the key are not used.
                failed = failed & ~self._retracts
            if bool(failed.any()):
                names = ", ".join(f"'{source}'" for source in column.sources)
                message = f"{column}: invalid value of column {names}"
                failures.append(Failure(failed, "cast", "computed", message))
        return tuple(failures)

    def filter(self, where: RowFilter, table: FileStoreTable) -> tuple[int, Mask | None]:
        """Apply the row filter of a table; return the number of failing rows, and a mask (rows,).

        The mask contains the rows to drop. If the table has a primary key, it is None, and failing
        rows become DELETE rows instead.
        """
        retracts, keyed = self._retracts, bool(table.schema.primary_keys)
        self._check_sources(where, ~retracts)
        # Without a key a before image is a row of its own; it is kept if it lacks a value.
        kept = retracts if keyed else retracts & self._lacks(self._source_columns(where))
        outcome = where.run(self._types, self._frame(where))
        marks = [self._unavailable[name] for name in where.sources if name in self._unavailable]
        unknown = np.logical_or.reduce([outcome.failed, *marks, *self._failed_for(where)]) & ~kept
        if bool(unknown.any()):
            message = (
                f"{where}: a value that it depends on is invalid, or was left out by the source "
                "because the update did not change it; let the source send whole rows, such as by "
                "REPLICA IDENTITY FULL"
            )
            self._failures.append(Failure(unknown, "cast", "where", message))
        failing = ~(true_rows(outcome.values) | unknown | kept)
        if keyed and bool(failing.any()):
            self._delete(failing, table)
        return int(np.count_nonzero(failing)), None if keyed else failing

    def _lacks(self, names: Sequence[str]) -> Mask:
        """Return a mask (rows,) of the rows in which one of these columns is null or omitted.

        Before images may lack values in this way.
        """
        lacking = np.zeros(self._rows, np.bool_)
        for name in names:
            if name not in self._values:
                return np.ones(self._rows, np.bool_)
            lacking |= np.asarray(self._values[name].is_null())
            lacking |= self._unavailable.get(name, False)
        return lacking

    def _delete(self, failing: Mask, table: FileStoreTable) -> None:
        """Turn the rows in a mask into deletes, without the values that a delete does not need.

        Merge engines would merge these values into later rows, and files would contain them.
        """
        kinds = np.where(failing, np.int8(RowKind.DELETE), self._batch.row_kind)
        self._batch = replace(self._batch, row_kind=kinds)
        self._unavailable = {name: mask & ~failing for name, mask in self._unavailable.items()}
        schema, order = table.schema, table.merge_rules.sequence_fields
        needed = {*schema.primary_keys, *schema.partition_keys, *order}
        kept_rows = pa.array(np.arange(self._rows), mask=failing)
        for name in self._values.keys() - needed:
            self._values[name] = self._values[name].take(kept_rows)

    def _failed_for(self, where: RowFilter) -> list[Mask]:
        """Return the failed rows of the computed columns on which the row filter depends."""
        needed = self._shape.settings.depends_on(where.sources)
        return [failed for name, (_, failed) in self._uncomputed.items() if name in needed]

    def _source_columns(self, where: RowFilter) -> list[str]:
        """Return the columns on which the row filter depends, directly or by computed columns."""
        settings = self._shape.settings
        return sorted(set().union(*(settings.sources_of(name) for name in where.sources)))

    def _check_sources(self, where: RowFilter, rows: Mask) -> None:
        """Raise SchemaConflictError if a row lacks a column of `where` that is not declared.

        `rows` is a mask (rows,) of the rows to check, and columns are those that computed columns
        of `where` depend on. The source may have renamed the column, so the rows must not become
        deletes.
        """
        added = {*self._shape.added, *self._shape.settings.added()}
        for name in self._source_columns(where):
            if name in added or name in self._shape.declared:
                continue
            lacking = self._batch.lacks(name) & ~self._unavailable.get(name, np.False_)
            if bool((lacking & rows).any()):
                raise SchemaConflictError(
                    f"table {self._shape.table}: {where}: the rows of {self._batch.source} have no "
                    f"column '{name}'; correct the condition, or set the column's type in "
                    "schema.column-types if messages leave it out when it is null"
                )

    def _add(self, name: str, values: Values, data_type: DataType) -> None:
        if name in self._types:
            raise SchemaConflictError(
                f"table {self._shape.table}: column '{name}' is to be added, but "
                f"{self._batch.source} has a column of that "
                "name; give it another name (metadata columns: a metadata-column-prefix, the time "
                "of deletes: deleted-at), or "
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


def with_kinds(batch: ChangeBatch) -> ChangeBatch:
    """Return the batch with an additional column of row kinds, `KIND_COLUMN`.

    Raises SchemaConflictError if the source has a column of that name.
    """
    if KIND_COLUMN in batch.types:
        raise SchemaConflictError(
            f"keyless-table-mode 'audit' writes the kind of each change to '{KIND_COLUMN}', but "
            f"{batch.source} has a column of that name; leave it out by select.exclude, or let "
            "keyless-table-mode be latest-only"
        )
    column = _KINDS.take(batch.row_kind)
    return replace(
        batch,
        columns=batch.columns.append_column(KIND_COLUMN, column),
        types={**batch.types, KIND_COLUMN: DataType("STRING")},
    )


def writes_before_images(table: FileStoreTable) -> bool:
    """Return whether the changelog of a table contains before images of updates."""
    rules = table.merge_rules
    takes_input = writes_input(table.schema) and rules.rowkind_field is None
    return takes_input and retraction_refusal(rules) is None


def without_before_images(
    shaped: ShapedBatch, table: FileStoreTable, key: Sequence[str], changes: ChangeBatch
) -> ShapedBatch:
    """Remove the before images that the table does not need, and count updates of unknown keys.

    `key` are the primary key columns that the message key lacks. All before images remain if the
    changelog of the table contains them, and none remain if `key` is empty. Otherwise a before
    image becomes a DELETE of the old key if the row after the update has other values in `key`, or
    is missing; all others are removed. Updates without a before image are counted in
    `unknown_keys`, unless `key` is empty or messages have no key. They are counted in `changes`,
    the rows before a row filter may have turned them into deletes.
    """
    batch = shaped.batch
    kinds, offsets = batch.row_kind, batch.offset
    before = kinds == RowKind.UPDATE_BEFORE
    paired = np.zeros(len(kinds), np.bool_)
    paired[:-1] = before[:-1] & (offsets[1:] == offsets[:-1])
    if key and batch.primary_keys:
        unknown = changes.row_kind == RowKind.UPDATE_AFTER
        unknown[1:] &= ~paired[:-1]
        shaped = replace(shaped, unknown_keys=int(np.count_nonzero(unknown)))
    if not before.any() or writes_before_images(table):
        return shaped
    moved = before & ~paired if key else np.zeros_like(before)
    where = np.flatnonzero(paired)
    moved[where] = ~_equal(batch, key, where, where + 1)
    kinds = np.where(moved, np.int8(RowKind.DELETE), kinds)
    return replace(shaped, batch=replace(batch, row_kind=kinds)).where(~before | moved)


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
    """Return a mask of the rows whose values are equal; null equals null."""
    equal: Values = pc.equal(left, right)
    same: Values = pc.fill_null(equal, False)
    marks: Mask = np.asarray(same)
    nulls: Mask = np.asarray(left.is_null()) & np.asarray(right.is_null())
    return marks | nulls
