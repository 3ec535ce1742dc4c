"""Convert change batches to rows of the target table: its columns, in its types and order.

A value that does not fit the table's type rejects its record only. Columns that the schema should
add or widen are reported instead of rows.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.cdc.base import ChangeBatch
from ingestd.errors import UnsupportedError
from ingestd.ingest.rows.blobs import KIND, OFFSET, POSITION, UNAVAILABLE_PREFIX
from ingestd.ingest.schemas.discovery import columns_beyond
from ingestd.ingest.settings.evolution_policy import EvolutionPolicy, judge_growth
from ingestd.ingest.values.row_groups import Values
from ingestd.ingest.values.value_casts import cast_values
from ingestd.paimon.merge.merged_rows import Kinds, retractions
from ingestd.paimon.merge.row_kinds import NO_KIND, ignored_kinds, kinds_of, retraction_refusal
from ingestd.paimon.spec.arrow import to_arrow_type
from ingestd.paimon.spec.data_types import CHARACTER_ROOTS, DataField, DataType, RowKind
from ingestd.paimon.spec.merge_rules import MergeRules, merge_rules
from ingestd.paimon.spec.schema import TableSchema

Mask = npt.NDArray[np.bool_]
_FOLLOW = EvolutionPolicy()


@dataclass(frozen=True, slots=True)
class Failure:
    """Rows that the table rejects, and why; `stage` and `reason` as in dead letters."""

    rows: Mask
    stage: str
    reason: str
    message: str


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
    found = {name: declared.get(name, batch.types[name]) for name in batch.types}
    verdict = judge_growth(schema, _beyond(batch, schema, found, policy), policy, found)
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
    kinds = _kinds(batch, columns, rules)
    failures.extend(_unmergeable(kinds, rules, bool(schema.primary_keys)))
    columns.update(_row_columns(batch, schema, kinds))
    return Conformed(pa.table(columns), {}, tuple(failures))


def _beyond(
    batch: ChangeBatch,
    schema: TableSchema,
    found: Mapping[str, DataType],
    policy: EvolutionPolicy,
) -> dict[str, DataType]:
    """Return the columns that the table lacks, or has with too narrow a type for the values."""
    always = policy.mode not in (None, "evolve")
    return {
        name: data_type
        for name, data_type in columns_beyond(schema, found).items()
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


def _kinds(batch: ChangeBatch, columns: Mapping[str, Values], rules: MergeRules) -> Kinds:
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
