"""Bring rows of a source table into the columns of their target table, in its types and order.

A value that does not fit the table's type rejects its record only. Columns that the schema should
add or widen are reported instead of rows.

Messages may contradict the configuration: a column with the name of a computed one, a name that the
target cannot have, a type that a function does not take. The error is about all rows given here;
the caller finds the records that cause it. Updates and deletes of a table without a primary key are
dropped, or kept as rows with their kind, as `keyless-table-mode` says.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.cdc.base import ChangeBatch, RecordChunk, RejectedRecord
from ingestd.errors import ConfigError, SchemaConflictError, UnsupportedError
from ingestd.ingest.rows.batch_rows import Failure, effective_positions, rejected_whole
from ingestd.ingest.rows.blobs import KIND, OFFSET, POSITION, UNAVAILABLE_PREFIX
from ingestd.ingest.rows.row_shape import Shapes, apply_shape, as_wanted
from ingestd.ingest.schemas.column_history import (
    COLUMN_HISTORY_OPTION,
    apply_renames,
    read_column_history,
)
from ingestd.ingest.schemas.discovery import columns_beyond
from ingestd.ingest.settings.context import BatchContext, TableContext, TableSettings
from ingestd.ingest.settings.evolution_policy import EvolutionPolicy, judge_growth
from ingestd.ingest.values.row_groups import Values
from ingestd.ingest.values.value_casts import cast_values
from ingestd.paimon.merge.row_kinds import (
    NO_KIND,
    Kinds,
    ignored_kinds,
    kinds_of,
    retraction_refusal,
    retractions,
)
from ingestd.paimon.spec.arrow import Array, to_arrow_type
from ingestd.paimon.spec.column_names import column_name_problems, nested_name_problems
from ingestd.paimon.spec.data_types import CHARACTER_ROOTS, DataField, DataType, RowKind
from ingestd.paimon.spec.merge_rules import MergeRules, merge_rules
from ingestd.paimon.spec.schema import TableSchema

Mask = npt.NDArray[np.bool_]
_FOLLOW = EvolutionPolicy()
IMPOSSIBLE = (SchemaConflictError, ConfigError, UnsupportedError)
"""Raised by `shape` if rows contradict the settings of their table."""
REASON = "invalid-column-name"
KIND_COLUMN = "row_kind"
"""Column of an audit table: `+I`, `-U`, `+U` or `-D`, as in Paimon's audit log."""
_KINDS: Array = pa.array(["+I", "-U", "+U", "-D"])


@dataclass(frozen=True, slots=True)
class ShapedRows:
    """Rows of a change batch in the columns of their target.

    `batch` has the columns of the source, `shaped` those after the settings of the table; both are
    without the rows that were `skipped`, counted by reason. `failures` are invalid values of some
    rows; `lost` are the records if all of them are rejected. `rows` are in the target's columns,
    `failures` included; None if the target lacks the columns `beyond`, or does not exist.
    """

    batch: ChangeBatch
    shaped: ChangeBatch
    skipped: Mapping[str, int]
    failures: tuple[Failure, ...] = ()
    lost: tuple[RejectedRecord, ...] = ()
    rows: pa.Table | None = None
    beyond: Mapping[str, DataType] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RowShaper:
    """Shapes the rows of one task."""

    context: BatchContext
    shapes: Shapes

    def shape(self, source: str, chunk: RecordChunk, batch: ChangeBatch, table: str) -> ShapedRows:
        """Return the rows of a batch of the chunk for a target table, by identifier.

        Raises one of `IMPOSSIBLE`.
        """
        target, settings = self.context.tables.get(table), self.context.settings_of(table)
        row_shape = self.shapes.of(chunk.topic, batch.source)
        skipped: dict[str, int] = {}
        if target is not None:
            if not is_audit(settings, batch, target):
                batch = as_wanted(row_shape, batch, target.table)
            batch, skipped = only_new(source, chunk, target, batch)
            if COLUMN_HISTORY_OPTION in target.table.schema.options:
                column_history = read_column_history(target.table.schema.options, table)
                batch = apply_renames(batch, column_history, chunk)
        batch, skipped["ignored"] = latest_only(batch, settings, target)
        if not len(batch.offset):
            return ShapedRows(batch, batch, skipped)
        shaped, unmade = batch, tuple[Failure, ...]()
        if row_shape is not None:
            source_settings = self.context.sources[source]
            shaped, unmade = apply_shape(row_shape, batch, chunk, source_settings, target)
        sensitive = self.context.routing.case_sensitive
        shaped, invalid = without_invalid(shaped, settings, target, case_sensitive=sensitive)
        lost = rejected_whole(chunk, shaped.offset, invalid) if invalid else []
        if lost:
            return ShapedRows(batch, shaped, skipped, lost=tuple(lost))
        shaped = audited(shaped, settings, target)
        made = ShapedRows(batch, shaped, skipped, (*invalid, *unmade), beyond=shaped.types)
        if target is None:
            return made
        fixed, policy = settings.column_types, settings.evolution
        done = conform(shaped, target.table.schema, fixed, policy)
        failures = (*made.failures, *done.failures)
        return replace(made, failures=failures, rows=done.rows, beyond=done.beyond)


def only_new(
    source: str, chunk: RecordChunk, target: TableContext, batch: ChangeBatch
) -> tuple[ChangeBatch, dict[str, int]]:
    """Drop rows that the table contains, or that a truncate removed; return counts by reason."""
    covered = target.covered_until(source, chunk.topic, chunk.partition)
    new = batch.offset >= covered
    skipped = {"covered": int(np.count_nonzero(~new))}
    batch = batch.filter(new)
    if target.truncate_before is not None:
        positions = effective_positions(batch)
        newer = (positions > target.truncate_before) | (positions < 0)
        skipped["truncated"] = int(np.count_nonzero(~newer))
        batch = batch.filter(newer)
    return batch, skipped


def without_invalid(
    batch: ChangeBatch,
    settings: TableSettings,
    target: TableContext | None,
    *,
    case_sensitive: bool = True,
) -> tuple[ChangeBatch, tuple[Failure, ...]]:
    """Return the batch without invalid columns, and the rows that lose a value by it.

    These are all rows if such a column is part of the message key, or if no other is left. If the
    policy ignores refused columns, no row fails.
    """
    options = settings.options if target is None else target.table.schema.options
    names = (*batch.types, *batch.unavailable, *batch.primary_keys)
    invalid = {
        **nested_name_problems(batch.types, options),
        **column_name_problems(dict.fromkeys(names), options),
        **({} if case_sensitive else _capitals(names, target)),
    }
    if not invalid:
        return batch, ()
    lost = invalid.keys() & set(batch.primary_keys) or not batch.types.keys() - invalid.keys()
    if not lost and settings.evolution.on_refused == "ignore":
        return _without_columns(batch, invalid), ()
    failures = tuple(
        Failure(rows, "schema", REASON, _message(name, problem))
        for name, problem in invalid.items()
        if (rows := _rows_of(batch, name, whole=bool(lost))).any()
    )
    return (batch if lost else _without_columns(batch, invalid)), failures


def _capitals(names: Iterable[str], target: TableContext | None) -> dict[str, str]:
    """Return columns with capitals that a case-insensitive catalog does not add to a table."""
    known = () if target is None else target.table.schema.field_names
    problem = "has capitals, and warehouse.catalog.case-sensitive is false"
    return {name: problem for name in names if name != name.lower() and name not in known}


def _rows_of(batch: ChangeBatch, name: str, *, whole: bool) -> npt.NDArray[np.bool_]:
    if whole:
        return np.ones(len(batch.offset), np.bool_)
    if name not in batch.types:
        return np.zeros(len(batch.offset), np.bool_)
    # Values of a retraction outside the key are not used.
    retracts = (batch.row_kind == RowKind.DELETE) | (batch.row_kind == RowKind.UPDATE_BEFORE)
    valued: npt.NDArray[np.bool_] = np.asarray(batch.columns.column(name).is_valid()) & ~retracts
    return valued


def _without_columns(batch: ChangeBatch, invalid: Mapping[str, str]) -> ChangeBatch:
    return replace(
        batch,
        columns=batch.columns.drop_columns([name for name in invalid if name in batch.types]),
        types={n: data_type for n, data_type in batch.types.items() if n not in invalid},
        unavailable={n: marks for n, marks in batch.unavailable.items() if n not in invalid},
    )


def _message(name: str, problem: str) -> str:
    if "within it" in problem:
        way_out = "leave it out by select.exclude, or let the table's file.format be parquet"
    else:
        way_out = (
            "give it another name by the table's schema.aliases (new name: old name), or leave it "
            "out by select.exclude"
        )
    return f"column {name!r} {problem}; {way_out}"


def is_audit(settings: TableSettings, batch: ChangeBatch, target: TableContext | None) -> bool:
    """Return whether every change becomes a row: the (perhaps future) table has no key."""
    return settings.keyless_table_mode == "audit" and _is_keyless(settings, batch, target)


def latest_only(
    batch: ChangeBatch, settings: TableSettings, target: TableContext | None
) -> tuple[ChangeBatch, int]:
    """Drop deletes and old rows in mode `latest-only`; return the rest and the number dropped."""
    if settings.keyless_table_mode != "latest-only" or not _is_keyless(settings, batch, target):
        return batch, 0
    gone = np.isin(batch.row_kind, (RowKind.DELETE, RowKind.UPDATE_BEFORE))
    return _as_inserts(batch.filter(~gone)), int(np.count_nonzero(gone))


def audited(
    batch: ChangeBatch, settings: TableSettings, target: TableContext | None
) -> ChangeBatch:
    """Turn changes into rows with a column of their kind, in mode `audit`.

    Raises SchemaConflictError if the source has a column of the same name.
    """
    if not is_audit(settings, batch, target):
        return batch
    return _as_inserts(_with_kinds(batch))


def _is_keyless(settings: TableSettings, batch: ChangeBatch, target: TableContext | None) -> bool:
    if target is not None:
        return not target.table.schema.primary_keys
    keys = settings.primary_keys
    return not (batch.primary_keys if keys is None else keys)


def _with_kinds(batch: ChangeBatch) -> ChangeBatch:
    if KIND_COLUMN in batch.types:
        names = ".".join(name for name in batch.source if name)
        raise SchemaConflictError(
            f"keyless-table-mode 'audit' writes the kind of each change to '{KIND_COLUMN}', but "
            f"{names} has a column of that name; leave it out by select.exclude, or let "
            "keyless-table-mode be latest-only"
        )
    column = _KINDS.take(batch.row_kind)
    return replace(
        batch,
        columns=batch.columns.append_column(KIND_COLUMN, column),
        types={**batch.types, KIND_COLUMN: DataType("STRING")},
    )


def _as_inserts(batch: ChangeBatch) -> ChangeBatch:
    """Turn changes into inserts; cells that the source left out become null."""
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
    """Rows for a table, or the columns that the table must add or widen first.

    `rows` has the table's columns, `_VALUE_KIND` (int8), the offset, the source position (-1 if
    unknown) unless all are unknown, and masks of left-out cells. It includes the rows of
    `failures`. In tables without a key only streamed rows have a position.
    """

    rows: pa.Table | None
    beyond: Mapping[str, DataType] = field(default_factory=dict)
    failures: tuple[Failure, ...] = ()


def conform(
    batch: ChangeBatch,
    schema: TableSchema,
    declared: Mapping[str, DataType],
    policy: EvolutionPolicy = _FOLLOW,
) -> Conformed:
    """Return the rows of a batch as rows of a table with that schema.

    `declared` are the configured column types; `policy` sets how far the schema may follow the
    batch. A result without rows and without columns means that the table has to apply declared
    changes of the policy first.
    """
    types = {name: declared.get(name, batch.types[name]) for name in batch.types}
    verdict = judge_growth(schema, _beyond(batch, schema, types, policy), policy, types)
    if not policy.is_settled(schema):
        return Conformed(None, verdict.grow)
    if verdict.moved:
        return conform(_moved(batch, verdict.moved), schema, declared, policy)
    if verdict.grow:
        return Conformed(None, verdict.grow)
    retracts = (batch.row_kind == RowKind.DELETE) | (batch.row_kind == RowKind.UPDATE_BEFORE)
    columns: dict[str, Values] = {}
    failures = list(_refused_columns(batch, schema, verdict.refused, policy, retracts))
    for target in schema.fields:
        column = _Column(batch, target, target.name in schema.primary_keys, retracts)
        columns[target.name] = column.values(verdict.refused.get(target.name))
        failures.extend(column.failures)
    rules = merge_rules(schema)
    kinds = _row_kinds(batch, columns, rules)
    failures.extend(_unmergeable(kinds, rules, bool(schema.primary_keys)))
    columns.update(_row_columns(batch, schema, kinds))
    return Conformed(pa.table(columns), {}, tuple(failures))


def _beyond(
    batch: ChangeBatch,
    schema: TableSchema,
    types: Mapping[str, DataType],
    policy: EvolutionPolicy,
) -> dict[str, DataType]:
    """Return the columns that the table lacks, or has with too narrow a type for the values."""
    always = policy.mode not in (None, "evolve")
    return {
        name: data_type
        for name, data_type in columns_beyond(schema, types).items()
        if not _fits_by_value(batch, name, schema, always=always)
    }


def _fits_by_value(batch: ChangeBatch, name: str, schema: TableSchema, *, always: bool) -> bool:
    """Return whether the values fit although the type does not.

    Checked for text, since most sources do not report lengths, for keys, whose type cannot change,
    and `always` in tables whose types may not change.
    """
    if name not in schema.field_names:
        return False
    target = schema.field(name).type
    if not always and name not in (*schema.primary_keys, *schema.partition_keys):
        both_text = {target.root, batch.types[name].root} <= CHARACTER_ROOTS
        if not both_text or target.root == "CHAR":
            return False
    values, failed = cast_values(batch.columns.column(name), batch.types[name], target)
    del values
    return not bool(failed.any())


def _moved(batch: ChangeBatch, names: Mapping[str, str]) -> ChangeBatch:
    """Return the batch with some columns renamed."""
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
    """Yield rows that have a value in a refused column."""
    for name, why in refused.items():
        if name in schema.field_names or policy.on_refused == "ignore":
            continue
        there = np.asarray(batch.columns.column(name).is_valid()) & ~retracts
        if bool(there.any()):
            message = f"column {name} ({batch.types[name]}) is refused: {why}"
            yield Failure(there, "schema", "refused-change", message)


def _row_kinds(batch: ChangeBatch, columns: Mapping[str, Values], rules: MergeRules) -> Kinds:
    """Return the row kinds, from a column of the table if its options name one."""
    if rules.rowkind_field is None:
        return batch.row_kind.astype(np.int8, copy=False)
    return kinds_of(columns[rules.rowkind_field])


def _row_columns(batch: ChangeBatch, schema: TableSchema, kinds: Kinds) -> dict[str, Values]:
    columns = {
        KIND: pa.array(kinds),
        OFFSET: pa.array(batch.offset.astype(np.int64, copy=False)),
    }
    # Rows of a snapshot share one position, so it does not identify a row.
    position = (
        batch.position if schema.primary_keys else np.where(batch.snapshot_row, -1, batch.position)
    )
    if bool((position >= 0).any()):
        columns[POSITION] = pa.array(position.astype(np.int64, copy=False))
    for name, left_out in batch.unavailable.items():
        if name in schema.field_names and bool(left_out.any()):
            columns[UNAVAILABLE_PREFIX + name] = pa.array(left_out)
    return columns


def _unmergeable(kinds: Kinds, rules: MergeRules, keyed: bool) -> Iterator[Failure]:
    """Yield rows with an invalid row kind, and changes that the table does not support."""
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
            "an update or delete of a table without a primary key; name its key in the table's "
            "primary-keys to apply it, or keep it as a row by keyless-table-mode"
        )
        yield Failure(changes, "key", "change-without-key", message)


class _Column:
    """One column of the target, converted from the batch; records the rows that fail."""

    def __init__(self, batch: ChangeBatch, target: DataField, is_key: bool, retracts: Mask) -> None:
        self.failures: list[Failure] = []
        self._batch = batch
        self._target = target
        self._is_key = is_key
        self._retracts = retracts

    def values(self, refused: str | None) -> Values:
        """Return the values in the target's type; invalid cells are null.

        `refused` states why the table's type cannot change to that of the values, None if it can.
        """
        name, arrow_type = self._target.name, to_arrow_type(self._target.type)
        count = len(self._batch.offset)
        if name not in self._batch.types:
            values: Values = _nulls(count, arrow_type)
        else:
            column = self._batch.columns.column(name)
            source = self._batch.types[name]
            values, failed = cast_values(column, source, self._target.type)
            # Values of a retraction outside the key are not used.
            self._fail(
                failed if self._is_key else failed & ~self._retracts,
                "cast" if refused is None else "schema",
                "cast" if refused is None else "refused-change",
                f"column {name}: a value of {source} does not fit {self._target.type}"
                + (f"; {refused}" if refused else ""),
            )
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
                nulls & ~self._retracts,
                "cast",
                "null",
                f"column {name} is NOT NULL and has no value",
            )
        return pc.fill_null(values, _zero(values.type))

    def _fail(self, rows: Mask, stage: str, reason: str, message: str) -> None:
        if bool(rows.any()):
            self.failures.append(Failure(rows, stage, reason, message))


def _nulls(count: int, arrow_type: Values) -> Values:
    return pa.nulls(count, arrow_type)


def _zero(arrow_type: pa.DataType) -> Values:
    """Return a value for a NOT NULL cell that is never read."""
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
