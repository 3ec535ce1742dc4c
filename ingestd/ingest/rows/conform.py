"""Convert rows of a source table to the columns of their target table, in its types and order.

Rows that the target already covers are dropped, and column changes that its settings require are
applied first. If a value does not fit the type in the table, only its record is rejected. If the
table has to add or widen columns, these are reported instead of rows. Messages may conflict with
the configuration: a column has the name of a computed column, or a type that a function does not
accept. Such an error is raised for all rows passed to this module; the caller finds the records
that cause it. Updates and deletes of a table without a primary key are handled according to
`keyless-table-mode`: they are rejected, dropped, or stored as rows with their kind.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.cdc.base import ChangeBatch, RecordChunk, RejectedRecord
from ingestd.cdc.source_position import effective_positions
from ingestd.errors import ConfigError, SchemaConflictError, UnsupportedError
from ingestd.ingest.rows.blobs import KIND, OFFSET, POSITION, UNAVAILABLE_PREFIX
from ingestd.ingest.rows.kept_deletes import deletes_without_column, keep_deletes
from ingestd.ingest.rows.omitted_values import deletes_without_sequence, omitted_sequences
from ingestd.ingest.rows.partition_names import unnamed_partitions
from ingestd.ingest.rows.rejected_records import Failure, judge_records, rejected_whole
from ingestd.ingest.rows.row_shape import (
    ShapedBatch,
    apply_shape,
    with_kinds,
    without_before_images,
)
from ingestd.ingest.rows.targets import Target
from ingestd.ingest.schemas.column_history import (
    COLUMN_HISTORY_OPTION,
    apply_renames,
    read_column_history,
)
from ingestd.ingest.schemas.discovery import Discovery
from ingestd.ingest.settings.context import (
    KeylessTableMode,
    QualifiedSourceTable,
    SourceSettings,
    TableContext,
)
from ingestd.ingest.settings.evolution_policy import EvolutionPolicy, judge_growth
from ingestd.ingest.settings.soft_deletes import SoftDeletes
from ingestd.ingest.values.source_points import is_after, times_of
from ingestd.ingest.values.type_merge import merge_types
from ingestd.ingest.values.value_casts import cast_values, unsized
from ingestd.paimon.merge.row_kinds import (
    NO_KIND,
    Kinds,
    ignored_kinds,
    kinds_of,
    retraction_refusal,
)
from ingestd.paimon.spec.arrow import Values, to_arrow_type
from ingestd.paimon.spec.column_names import column_name_problems, nested_name_problems
from ingestd.paimon.spec.data_types import CHARACTER_ROOTS, DataField, DataType, RowKind
from ingestd.paimon.spec.merge_rules import MergeRules, merge_rules
from ingestd.paimon.spec.row_selection import Mask, retractions
from ingestd.paimon.spec.table_schema import TableSchema

_FOLLOW = EvolutionPolicy()
IMPOSSIBLE = (SchemaConflictError, ConfigError, UnsupportedError)
"""The errors that `shape_rows` raises if rows conflict with the settings of their table."""
REASON = "invalid-column-name"


@dataclass(frozen=True, slots=True)
class ShapedRows:
    """The rows of a change batch in the columns of their target, or the columns that it lacks.

    `table` is the identifier of the target, or None if the batch has no route. `skipped` counts
    dropped rows by reason. `batch` are the remaining rows in the columns of the source, or None if
    no row remains. `rows` are the rows of valid records in the columns of the target. If the target
    does not exist or lacks columns, `rows` is None, and `discovery` contains these columns.
    `unknown_keys` counts updates without a before image that may have changed the primary key. If
    `needs_before_images`, only before images can show that an update changed the primary key.
    """

    table: str | None
    source_table: QualifiedSourceTable
    skipped: Mapping[str, int] = field(default_factory=dict)
    rejected: Sequence[RejectedRecord] = ()
    batch: ChangeBatch | None = None
    rows: pa.Table | None = None
    discovery: Discovery | None = None
    unknown_keys: int = 0
    needs_before_images: bool = False


def shape_rows(
    target: Target, chunk: RecordChunk, batch: ChangeBatch, source: SourceSettings
) -> ShapedRows:
    """Convert a batch of the chunk to rows of its target, by the settings of target and source.

    Covered, truncated and filtered rows are counted as skipped, and invalid records are rejected.
    If the target lacks a column or type, the result has a discovery and no rows. Raises
    SchemaConflictError, ConfigError or UnsupportedError if rows conflict with the settings,
    FormatError for a damaged column history.
    """
    mode = keyless_mode(target, batch)
    key = () if mode == "audit" else _key_beyond_message(target, batch)
    may_move = bool(key) and bool((batch.row_kind != RowKind.INSERT).any())
    batch, skipped = _wanted_rows(target, chunk, batch, mode, key)
    result = ShapedRows(target.table, target.source_table, skipped, needs_before_images=may_move)
    if not len(batch.offset):
        return result
    reshaped = _reshaped(target, chunk, batch, source, key)
    skipped["filtered"], shaped = reshaped.filtered, reshaped.batch
    shaped, invalid = without_invalid(target, shaped)
    result = replace(result, unknown_keys=reshaped.unknown_keys)
    rejected: Sequence[RejectedRecord] = ()
    if invalid and (rejected := rejected_whole(chunk, shaped.offset, invalid)):
        return replace(result, rejected=rejected)
    if mode == "audit":
        shaped = _as_inserts(with_kinds(shaped))
    conformed = _conformed(target, shaped)
    if (rows := conformed.rows) is None:
        discovery = _discovery(target, chunk, batch, shaped, conformed.beyond)
        return replace(result, batch=batch, discovery=discovery)
    if failures := (*invalid, *reshaped.failures, *conformed.failures):
        valid, rejected = judge_records(chunk, shaped.offset, failures)
        rows = rows.filter(valid)
    return replace(result, rejected=rejected, batch=batch, rows=rows)


def _key_beyond_message(target: Target, batch: ChangeBatch) -> tuple[str, ...]:
    """Return the primary key columns that an update can change under the same message key."""
    if target.context is None:
        return ()
    keys, known = target.context.table.schema.primary_keys, set(batch.primary_keys)
    if (shape := target.shape) is None:
        return tuple(name for name in keys if name not in known)
    known |= {new for new, old in shape.aliases.items() if old in known}
    known |= {*shape.added, *(name for name, _ in shape.settings.metadata_columns())}
    return tuple(name for name in keys if not shape.settings.sources_of(name) <= known)


def _wanted_rows(
    target: Target,
    chunk: RecordChunk,
    batch: ChangeBatch,
    mode: KeylessTableMode | None,
    key: Sequence[str],
) -> tuple[ChangeBatch, dict[str, int]]:
    """Return the rows of a batch that its target accepts, and counts of dropped rows by reason.

    Columns that the source has renamed have their current names. Before images that the target does
    not need are dropped without a count, unless they may show a change of the columns `key`. In
    mode "latest-only", deletes and before images are dropped, and the other rows become inserts.
    """
    context, skipped = target.context, dict[str, int]()
    if context is not None:
        if mode != "audit" and not key and (batch.row_kind == RowKind.UPDATE_BEFORE).any():
            batch = without_before_images(ShapedBatch(batch), context.table, (), batch).batch
        batch, skipped = only_new(target.source_table.source, chunk, context, batch)
        if COLUMN_HISTORY_OPTION in context.table.schema.options:
            column_history = read_column_history(context.table.schema.options, target.table)
            batch = apply_renames(batch, column_history, chunk)
    if mode == "latest-only":
        retracts = retractions(batch.row_kind)
        skipped["ignored"] = int(np.count_nonzero(retracts))
        batch = _as_inserts(batch.filter(~retracts))
    return batch, skipped


def _reshaped(
    target: Target,
    chunk: RecordChunk,
    batch: ChangeBatch,
    source: SourceSettings,
    key: Sequence[str],
) -> ShapedBatch:
    """Return the batch with the rows and columns that its target requires."""
    shape, context = target.shape, target.context
    batch = deletes_without_sequence(batch, context, shape)
    shaped = (
        ShapedBatch(batch) if shape is None else apply_shape(shape, batch, chunk, source, context)
    )
    if context is None or not key:
        return shaped
    return without_before_images(shaped, context.table, key, batch)


def _discovery(
    target: Target,
    chunk: RecordChunk,
    batch: ChangeBatch,
    shaped: ChangeBatch,
    beyond: Mapping[str, DataType],
) -> Discovery:
    return Discovery(
        target.table,
        target.source_table,
        dict(beyond),
        shaped.primary_keys,
        chunk.topic,
        chunk.partition,
        int(batch.offset[0]),
        fresh=target.context is None,
    )


def only_new(
    source: str, chunk: RecordChunk, context: TableContext, batch: ChangeBatch
) -> tuple[ChangeBatch, dict[str, int]]:
    """Drop rows that the table already covers, or that are older than a truncate of the table.

    A row without a source position counts as newer than the truncate, unless it precedes the
    truncate in the same topic partition. Returns the remaining rows, and the number of dropped rows
    by reason.
    """
    where = (source, chunk.topic, chunk.partition)
    new = batch.offset >= context.covered_until(*where)
    needed = new & (batch.offset >= context.truncated_until(*where))
    if not needed.all():
        batch = batch.filter(needed)
    if context.truncate_before is not None:
        positions, times = effective_positions(batch.position), times_of(chunk, batch.offset)
        batch = batch.filter((positions < 0) | is_after(positions, times, context.truncate_before))
    count = int(np.count_nonzero(new))
    return batch, {"covered": len(new) - count, "truncated": count - len(batch.offset)}


def without_invalid(target: Target, batch: ChangeBatch) -> tuple[ChangeBatch, tuple[Failure, ...]]:
    """Remove columns with invalid names; return the batch, and failures of rows that lose a value.

    If a key column is invalid, or all columns are, the batch is unchanged and all its rows fail.
    Otherwise no row fails if the policy ignores columns that are not allowed.
    """
    context, settings = target.context, target.settings
    options = settings.options if context is None else context.table.schema.options
    names = (*batch.types, *batch.unavailable, *batch.primary_keys)
    own = {
        **column_name_problems(dict.fromkeys(names), options),
        **({} if target.case_sensitive else _capitals(names, context)),
    }
    invalid = {**nested_name_problems(batch.types, options), **own}
    if not invalid:
        return batch, ()
    lost = invalid.keys() & set(batch.primary_keys) or not batch.types.keys() - invalid.keys()
    if not lost and settings.evolution.on_refused == "ignore":
        return _without_columns(batch, invalid), ()
    failures = tuple(
        Failure(rows, "schema", REASON, _message(name, problem, nested=name not in own))
        for name, problem in invalid.items()
        if (rows := _rows_of(batch, name, whole=bool(lost))).any()
    )
    return (batch if lost else _without_columns(batch, invalid)), failures


def _capitals(names: Iterable[str], context: TableContext | None) -> dict[str, str]:
    """Return the new columns with capital letters, which some catalogs reject, and the problem."""
    known = () if context is None else context.table.schema.field_names
    problem = "has capitals, and warehouse.catalog.case-sensitive is false"
    return {name: problem for name in names if name != name.lower() and name not in known}


def _rows_of(batch: ChangeBatch, name: str, *, whole: bool) -> Mask:
    if whole:
        return np.ones(len(batch.offset), np.bool_)
    if name not in batch.types:
        return np.zeros(len(batch.offset), np.bool_)
    # Values of a retraction outside the key are not used.
    retracts = retractions(batch.row_kind)
    valued: Mask = np.asarray(batch.columns.column(name).is_valid()) & ~retracts
    return valued


def _without_columns(batch: ChangeBatch, invalid: Mapping[str, str]) -> ChangeBatch:
    return replace(
        batch,
        columns=batch.columns.drop_columns([name for name in invalid if name in batch.types]),
        types={n: data_type for n, data_type in batch.types.items() if n not in invalid},
        unavailable={n: marks for n, marks in batch.unavailable.items() if n not in invalid},
    )


def _message(name: str, problem: str, *, nested: bool) -> str:
    if nested:
        way_out = "leave it out by select.exclude, or let the table's file.format be parquet"
    else:
        way_out = (
            "give it another name by the table's schema.aliases (new name: old name), or leave it "
            "out by select.exclude"
        )
    return f"column {name!r} {problem}; {way_out}"


def keyless_mode(target: Target, batch: ChangeBatch) -> KeylessTableMode | None:
    """Return how updates and deletes are handled, or None if the table has or will have a key.

    Returns None also if no mode is configured, which has the same effect as "reject".
    """
    context, settings = target.context, target.settings
    if context is not None:
        keys: Sequence[str] = context.table.schema.primary_keys
    else:
        keys = batch.primary_keys if settings.primary_keys is None else settings.primary_keys
    return None if keys else settings.keyless_table_mode


def _as_inserts(batch: ChangeBatch) -> ChangeBatch:
    """Return the batch with all changes as inserts; values that the source omitted become null."""
    columns = batch.columns
    for name, left_out in batch.unavailable.items():
        if name not in batch.types:
            continue
        values = columns.column(name)
        filled = pc.if_else(pa.array(left_out), pa.scalar(None, values.type), values)
        columns = columns.set_column(columns.column_names.index(name), name, filled)
    kinds = np.full(len(batch.offset), RowKind.INSERT, np.int8)
    return replace(batch, columns=columns, unavailable={}, row_kind=kinds)


@dataclass(frozen=True, slots=True)
class Conformed:
    """Rows of a batch in the columns of a table, or the columns that the table must get first.

    `rows` has the columns of the table, `_VALUE_KIND` (int8), the offset, the source position (-1
    if unknown; left out if all are), and masks of omitted values. Rows of `failures` are included.
    It is None if the schema must change first; `beyond` then maps columns to their new types.
    """

    rows: pa.Table | None
    beyond: Mapping[str, DataType] = field(default_factory=dict)
    failures: tuple[Failure, ...] = ()


def _conformed(target: Target, batch: ChangeBatch) -> Conformed:
    if target.context is None:
        return Conformed(None, batch.types)
    schema, settings = target.context.table.schema, target.settings
    soft = None if target.shape is None else target.shape.soft_deletes
    return conform(batch, schema, settings.column_types, settings.evolution, soft)


def conform(
    batch: ChangeBatch,
    schema: TableSchema,
    declared: Mapping[str, DataType],
    policy: EvolutionPolicy = _FOLLOW,
    soft: SoftDeletes | None = None,
) -> Conformed:
    """Convert the rows of a batch to rows of a table with this schema.

    `declared` are the configured column types, `policy` sets which schema changes are allowed, and
    `soft` how deletes are kept. If the result has neither rows nor columns, the table has to apply
    declared changes first. Raises UnsupportedError if a nested NOT NULL column has no value.
    """
    types = {name: declared.get(name, batch.types[name]) for name in batch.types}
    verdict = judge_growth(schema, _beyond(batch, schema, types, policy), policy, types)
    if not policy.is_settled(schema) or (verdict.grow and not verdict.moved):
        return Conformed(None, verdict.grow)
    if verdict.moved:
        return conform(_moved(batch, verdict.moved), schema, declared, policy, soft)
    batch, retracts = unsized(batch, declared), retractions(batch.row_kind)
    columns: dict[str, Values] = {}
    failures = list(_refused_columns(batch, schema, verdict.refused, policy, retracts))
    rules = merge_rules(schema)
    used = {*schema.primary_keys, *rules.sequence_fields}
    for table_column in schema.fields:
        is_key = table_column.name in schema.primary_keys
        unused = np.zeros_like(retracts) if table_column.name in used else retracts
        column = _Column(batch, table_column, is_key, unused)
        columns[table_column.name] = column.values(verdict.refused.get(table_column.name))
        failures.extend(column.failures)
    kinds = _row_kinds(batch, columns, rules)
    columns.update(_row_columns(batch, schema, kinds))
    columns.update(omitted_sequences(columns, rules))
    if soft is not None:
        failures.extend(deletes_without_column(batch, schema, soft))
        columns.update(keep_deletes(columns, schema, soft))
    failures.extend(_unmergeable(columns[KIND].to_numpy(), rules, bool(schema.primary_keys)))
    if schema.partition_keys:
        failures.extend(unnamed_partitions(schema, columns))
    return Conformed(pa.table(columns), {}, tuple(failures))


def _beyond(
    batch: ChangeBatch,
    schema: TableSchema,
    types: Mapping[str, DataType],
    policy: EvolutionPolicy,
) -> dict[str, DataType]:
    """Return the columns that the table lacks, or whose type is too narrow for the values.

    If the policy stores values that do not fit in a separate column, a column of which values are
    omitted counts as too narrow, because the omitted values may not fit.
    """
    always = policy.mode not in (None, "evolve")
    apart = batch.unavailable if policy.on_refused == "new-column" else ()
    return {
        name: data_type
        for name, data_type in columns_beyond(schema, types).items()
        if name in apart or not _fits_by_value(batch, name, schema, always=always)
    }


def columns_beyond(schema: TableSchema, types: Mapping[str, DataType]) -> dict[str, DataType]:
    """Return the columns of messages that a table lacks, or has with a type that is too narrow.

    `types` and the result map columns of the messages to their types.
    """
    current = {column.name: column.type for column in schema.fields}
    beyond: dict[str, DataType] = {}
    for name, data_type in types.items():
        known = current.get(name)
        if known is None or merge_types(known, data_type) != known.as_nullable():
            beyond[name] = data_type
    return beyond


def _fits_by_value(batch: ChangeBatch, name: str, schema: TableSchema, *, always: bool) -> bool:
    """Return whether all values fit into the column of the table, although their type does not.

    This is checked for VARCHAR columns, because most sources report no lengths; for key and
    partition columns, whose type cannot change; and for all columns if `always`, because the types
    of the table may not change.
    """
    if name not in schema.field_names:
        return False
    target = schema.field(name).type
    if not always and name not in (*schema.primary_keys, *schema.partition_keys):
        both_text = {target.root, batch.types[name].root} <= CHARACTER_ROOTS
        if not both_text or target.root == "CHAR":
            return False
    failed = cast_values(batch.columns.column(name), batch.types[name], target)[1]
    return not bool(failed.any())


def _moved(batch: ChangeBatch, names: Mapping[str, str]) -> ChangeBatch:
    """Return the batch with columns renamed according to `names`."""
    return replace(
        batch,
        columns=batch.columns.rename_columns(
            [names.get(name, name) for name in batch.columns.column_names]
        ),
        types={names.get(name, name): data_type for name, data_type in batch.types.items()},
        unavailable={names.get(name, name): marks for name, marks in batch.unavailable.items()},
    )


def _refused_columns(
    batch: ChangeBatch,
    schema: TableSchema,
    refused: Mapping[str, str],
    policy: EvolutionPolicy,
    retracts: Mask,
) -> Iterator[Failure]:
    """Yield a failure of the rows with a value for each new column that is refused, not ignored."""
    for name, why in refused.items():
        if name in schema.field_names or policy.on_refused == "ignore":
            continue
        there = np.asarray(batch.columns.column(name).is_valid()) & ~retracts
        if bool(there.any()):
            message = f"column {name} ({batch.types[name]}) is refused: {why}"
            yield Failure(there, "schema", "refused-change", message)


def _row_kinds(batch: ChangeBatch, columns: Mapping[str, Values], rules: MergeRules) -> Kinds:
    """Return the row kinds (n,), which are read from a column if `rowkind.field` is set."""
    if rules.rowkind_field is None:
        return batch.row_kind.astype(np.int8, copy=False)
    return kinds_of(columns[rules.rowkind_field])


def _row_columns(batch: ChangeBatch, schema: TableSchema, kinds: Kinds) -> dict[str, Values]:
    columns = {
        KIND: pa.array(kinds),
        OFFSET: pa.array(batch.offset.astype(np.int64, copy=False)),
    }
    if bool((batch.position >= 0).any()):
        columns[POSITION] = pa.array(batch.position.astype(np.int64, copy=False))
    for name, left_out in batch.unavailable.items():
        if name in schema.field_names and bool(left_out.any()):
            columns[UNAVAILABLE_PREFIX + name] = pa.array(left_out)
    return columns


def _unmergeable(kinds: Kinds, rules: MergeRules, keyed: bool) -> Iterator[Failure]:
    """Yield failures for rows whose row kind is invalid or not supported by the table."""
    if not bool((kinds != RowKind.INSERT).any()):
        return  # inserts are supported by every table
    unknown = kinds == NO_KIND
    if bool(unknown.any()):
        message = f"column {rules.rowkind_field} ('rowkind.field') is none of +I, -U, +U, -D"
        yield Failure(unknown, "merge", "row-kind", message)
    ignored = ignored_kinds(rules, kinds)
    if keyed:
        rejection_reason = retraction_refusal(rules)
        refused = retractions(kinds) & ~ignored
        if rejection_reason is not None and bool(refused.any()):
            yield Failure(refused, "merge", "deletion", rejection_reason)
        return
    changes = (kinds != RowKind.INSERT) & ~ignored & ~unknown
    if bool(changes.any()):
        message = (
            "an update or delete of a table without a primary key; keep it as a row by "
            "keyless-table-mode, or move the table away and let it be created again with its key "
            "in primary-keys"
        )
        yield Failure(changes, "key", "change-without-key", message)


class _Column:
    """The conversion of one column of a batch for its target, with the rows that fail."""

    def __init__(self, batch: ChangeBatch, target: DataField, is_key: bool, unused: Mask) -> None:
        """Create a conversion; `unused` is a mask (n,) of the rows whose value is not used.

        These are retractions, unless the column is part of the key or orders rows.
        """
        self.failures: list[Failure] = []
        self._batch = batch
        self._target = target
        self._is_key = is_key
        self._unused = unused

    def values(self, refused: str | None) -> Values:
        """Return the values in the type of the target, and record the rows that fail.

        Values that do not fit are null, or a placeholder in a NOT NULL column. `refused` is the
        reason why the type in the table may not be widened, or None.
        """
        name = self._target.name
        if name not in self._batch.types:
            arrow_type: Values = to_arrow_type(self._target.type)
            values: Values = pa.nulls(len(self._batch.offset), arrow_type)
        else:
            column = self._batch.columns.column(name)
            source = self._batch.types[name]
            values, failed = cast_values(column, source, self._target.type)
            if failed.any():
                kind = ("cast", "cast") if refused is None else ("schema", "refused-change")
                message = f"column {name}: a value of {source} does not fit {self._target.type}"
                why = f"; {refused}" if refused else ""
                self._fail(failed & ~self._unused, *kind, message + why)
        if not self._target.type.nullable and values.null_count:
            values = self._without_nulls(values)
        return values

    def _without_nulls(self, values: Values) -> Values:
        nulls = np.asarray(values.is_null())
        name = self._target.name
        if self._is_key:
            self._fail(nulls, "key", "null-key", f"primary key column {name} is null")
        else:
            self._fail(
                nulls & ~self._unused,
                "cast",
                "null",
                f"column {name} is NOT NULL and has no value",
            )
        return pc.fill_null(values, _zero(values.type))

    def _fail(self, rows: Mask, stage: str, reason: str, message: str) -> None:
        if bool(rows.any()):
            self.failures.append(Failure(rows, stage, reason, message))


def _zero(arrow_type: pa.DataType) -> Values:
    """Return a placeholder for a NOT NULL value that is never read.

    Raises UnsupportedError for nested types.
    """
    if pa.types.is_string(arrow_type) or pa.types.is_binary(arrow_type):
        return pa.scalar("", pa.string()).cast(arrow_type)
    if pa.types.is_nested(arrow_type):
        raise UnsupportedError(
            f"a NOT NULL column of type {arrow_type} cannot be left out of a delete; make it "
            "nullable"
        )
    if pa.types.is_decimal(arrow_type):
        return pa.scalar(Decimal(0), arrow_type)
    if pa.types.is_temporal(arrow_type):
        width = pa.int32() if arrow_type.bit_width == 32 else pa.int64()
        return pa.scalar(0, width).cast(arrow_type)
    return pa.scalar(0).cast(arrow_type)
