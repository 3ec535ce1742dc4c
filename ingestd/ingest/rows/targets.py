"""The targets of source tables: the state and settings of the tables to which rows are written.

A task determines the target of each source table once, from its route, the settings of the target
table, and the state of this table at the start of the batch. Decoders look up column types here, by
source table and under the column names of the source.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from ingestd.cdc.base import ChangeBatch, ColumnTypes, RecordChunk, RejectedRecord, SourceTable
from ingestd.ingest.computed.computed_columns import in_order
from ingestd.ingest.computed.row_filter import filter_refusal
from ingestd.ingest.rows.rejected_records import Failure, judge_records
from ingestd.ingest.rows.router import NAMED_IN, Route, Router, sharing_problem
from ingestd.ingest.rows.row_shape import RowShape
from ingestd.ingest.schemas.column_history import (
    COLUMN_HISTORY_OPTION,
    read_column_history,
    with_old_names,
)
from ingestd.ingest.settings.context import (
    BatchContext,
    QualifiedSourceTable,
    TableContext,
    TableSettings,
)
from ingestd.ingest.settings.ordering import ordering_rejection
from ingestd.ingest.settings.rejection import SourceRejection
from ingestd.ingest.settings.soft_deletes import soft_delete_refusal


@dataclass(frozen=True, slots=True)
class Target:
    """The target table of a source table.

    `table` is its identifier. `context` is its state, or None if it does not exist. `shape` are the
    column changes that its settings and its route require, or None. `known` are the types of its
    columns; only key columns, and columns from which key columns are computed, are NOT NULL.
    `declared` are the configured types. Both use the column names of the source, and are None if no
    types are known or configured. `rejection` is the reason why the table accepts no rows of the
    source table, or None. `key_conflict` is the reason why its key cannot distinguish its sources,
    or None; if it is set, the pipeline must not write to the table. `case_sensitive` is whether the
    catalog accepts new columns with capital letters.
    """

    table: str
    source_table: QualifiedSourceTable
    settings: TableSettings
    context: TableContext | None
    shape: RowShape | None
    known: ColumnTypes | None
    declared: ColumnTypes | None
    rejection: SourceRejection | None
    key_conflict: str | None
    case_sensitive: bool


@dataclass(frozen=True, eq=False)
class Targets:
    """A cache of the targets of source tables in one task.

    The first use of `router` or `of` raises ConfigError if the routing is invalid.
    """

    _context: BatchContext
    _targets: dict[tuple[str, QualifiedSourceTable], Target | None] = field(default_factory=dict)

    @cached_property
    def router(self) -> Router:
        """The router for the routing of the batch."""
        return Router(self._context.routing, self._context.database)

    def of(self, topic: str, source_table: QualifiedSourceTable) -> Target | None:
        """Return the target of a source table, or None if it has no route.

        Raises PolicyStopError if routing does not include the source table and `unmatched` is
        "fail", ConfigError if computed columns depend on each other circularly, and FormatError if
        the column history of the table is damaged.
        """
        key = (topic, source_table)
        if key not in self._targets:
            route = self.router.route_of(topic, source_table.unqualified)
            if route is None:
                self._targets[key] = None
            else:
                settings = self._context.settings_of(route.table)
                self._targets[key] = _target(self._context, route, settings, source_table)
        return self._targets[key]


def _target(
    context: BatchContext,
    route: Route,
    settings: TableSettings,
    source_table: QualifiedSourceTable,
) -> Target:
    table = context.tables.get(route.table)
    shape = row_shape(route, settings)
    known = None if table is None else table_columns(table)
    declared = settings.column_types or None
    if shape is not None:
        known = None if known is None else shape.as_in_source(known)
        declared = None if declared is None else shape.as_in_source(declared)
    rejection = _rejection(context, route.table, source_table)
    if rejection is None and table is not None:
        rejection = (
            ordering_rejection(
                table.identifier,
                table.table.schema.options,
                settings.position_column,
                by_position=settings.is_ordered_by_position,
            )
            or _filter_rejection(table, settings)
            or _soft_delete_rejection(table, shape)
        )
    return Target(
        table=route.table,
        source_table=source_table,
        settings=settings,
        context=table,
        shape=shape,
        known=known,
        declared=declared,
        rejection=rejection,
        key_conflict=None if shape is None or table is None else _key_conflict(shape, table),
        case_sensitive=context.routing.case_sensitive,
    )


@dataclass(frozen=True, eq=False)
class TargetColumns(Mapping[SourceTable, ColumnTypes]):
    """The types of the target's columns for each source table of one topic, for decoders.

    Columns have their names in the source. Types are those of the existing table, or, if
    `only_declared`, those in the configuration; a source table without such types is missing.
    Iteration yields only source tables that already have rows in a table.
    """

    _context: BatchContext
    _targets: Targets
    _source: str
    _topic: str
    only_declared: bool = False

    def __getitem__(self, source_table: SourceTable) -> ColumnTypes:
        target = self._targets.of(self._topic, QualifiedSourceTable(self._source, *source_table))
        types = None
        if target is not None:
            types = target.declared if self.only_declared else target.known
        if types is None:
            raise KeyError(source_table)
        return types

    def __iter__(self) -> Iterator[SourceTable]:
        """Return an iterator over source tables whose types are in this mapping.

        Only source tables that have rows in an existing table are included.
        """
        known = {
            source_table.unqualified
            for table in self._context.tables.values()
            for source_table in table.source_tables
        }
        return (source_table for source_table in known if self.get(source_table) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def table_columns(target: TableContext) -> ColumnTypes:
    """Return the types of a table's columns, under their current and their former names.

    Only primary key columns are NOT NULL. Raises FormatError if the column history of the table is
    damaged.
    """
    schema = target.table.schema
    types = {
        column.name: column.type.not_null()
        if column.name in schema.primary_keys
        else column.type.as_nullable()
        for column in schema.fields
    }
    if COLUMN_HISTORY_OPTION not in schema.options:
        return types
    return with_old_names(types, read_column_history(schema.options, target.identifier))


def row_shape(route: Route, settings: TableSettings) -> RowShape | None:
    """Return how columns change for the rows of a route, or None if no column changes.

    Raises ConfigError if computed columns depend on each other circularly.
    """
    policy = settings.evolution
    shape, aliases = settings.shape, policy.aliases
    if policy.drop:
        shape = replace(shape, exclude=(*shape.exclude, *policy.drop))
    if shape.is_plain and not aliases and not route.columns:
        return None
    return RowShape(
        route.table,
        shape,
        aliases,
        route.columns,
        # A configured key takes precedence over key columns of routes.
        key=route.key_columns if settings.primary_keys is None else (),
        computed=in_order(shape.computed),
        by_position=settings.is_ordered_by_position,
        declared=frozenset(settings.column_types),
    )


def _key_conflict(shape: RowShape, target: TableContext) -> str | None:
    """Return why the key of a table does not distinguish its sources, or None if it does.

    The key does not distinguish them if it lacks a column that the route adds to the key.
    """
    keys = target.table.schema.primary_keys
    missing = [name for name in shape.key if name not in keys]
    if not keys or not missing:
        return None
    return (
        f"table {target.identifier}: its route needs column '{missing[0]}' in the primary key, "
        f"but it exists with the key {list(keys)}, by which rows of several sources would "
        "overwrite each other; drop or rename the table to create it again, or set its "
        "key in primary-keys"
    )


def _rejection(
    context: BatchContext, table: str, source_table: QualifiedSourceTable
) -> SourceRejection | None:
    """Return why a table accepts no rows of a source table, or None if it accepts them.

    A table accepts no rows if it is the dead-letter table, belongs to another source table, or
    cannot be created. The pipeline does not stop in these cases, because the name of the source
    table is taken from a message.
    """
    if table == context.dead_letters:
        problem = (
            f"{source_table} is routed to {table}, which is the dead-letter table; set another "
            f"target {NAMED_IN}"
        )
        return SourceRejection("route", "reserved-table", problem)
    if table in context.refused_tables:
        return context.refused_tables[table]
    owners = context.owners_of(table)
    if owners and source_table not in owners:
        shared = sharing_problem(context.routing, table, owners | {source_table})
        if shared is not None:
            return SourceRejection("route", "table-taken", shared)
    return None


def _filter_rejection(target: TableContext, settings: TableSettings) -> SourceRejection | None:
    """Return why a table cannot be written with the configured row filter, or None if it can."""
    refusal = None if settings.shape.where is None else filter_refusal(target.table.schema)
    if refusal is None:
        return None
    return SourceRejection("schema", "row-filter", f"table {target.identifier}: {refusal}")


def _soft_delete_rejection(target: TableContext, shape: RowShape | None) -> SourceRejection | None:
    """Return why a table cannot keep deleted rows as configured, or None if it can."""
    soft = None if shape is None else shape.soft_deletes
    refusal = None if soft is None else soft_delete_refusal(target.table.schema, soft)
    if refusal is None:
        return None
    return SourceRejection("schema", "soft-deletes", f"table {target.identifier}: {refusal}")


def rejected_unrouted(
    router: Router, chunk: RecordChunk, batch: ChangeBatch
) -> list[RejectedRecord]:
    """Return the rejections of all records of a batch that has no route.

    The result is empty if the configuration drops such records.
    """
    complaint = router.complaint(chunk.topic, batch.source)
    if complaint is None:
        return []
    return rejected_all(chunk, batch, SourceRejection("route", complaint.reason, complaint.message))


def rejected_all(
    chunk: RecordChunk, batch: ChangeBatch, rejection_reason: SourceRejection
) -> list[RejectedRecord]:
    """Return the rejections of all records of a batch, which have the same reason."""
    failure = Failure(np.ones(len(batch.offset), np.bool_), *rejection_reason)
    return judge_records(chunk, batch.offset, [failure])[1]
