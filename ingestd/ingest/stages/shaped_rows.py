"""Bring rows of a source table into the columns of their target table.

Messages may contradict the configuration: a column with the name of a computed one, a name that the
target cannot have, a type that a function does not take. The error is about all rows given here;
the caller finds the records that cause it. Updates and deletes of a table without a primary key are
dropped, or kept as rows with their kind, as `keyless-table-mode` says.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingestd.cdc.base import ChangeBatch, RecordChunk, RejectedRecord
from ingestd.errors import ConfigError, SchemaConflictError, UnsupportedError
from ingestd.ingest.rows.batch_rows import effective_positions, rejected_whole
from ingestd.ingest.rows.conform import Failure, conform
from ingestd.ingest.rows.row_shape import Shapes
from ingestd.ingest.schemas.column_history import apply_renames, read_column_history
from ingestd.ingest.settings.context import BatchContext, TableContext, TableSettings
from ingestd.paimon.spec.arrow import Array
from ingestd.paimon.spec.column_names import column_name_problems, nested_name_problems
from ingestd.paimon.spec.data_types import DataType, RowKind

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


class RowShaper:
    """Shapes the rows of one task."""

    def __init__(self, context: BatchContext, shapes: Shapes) -> None:
        self._context = context
        self._shapes = shapes

    def shape(self, source: str, chunk: RecordChunk, batch: ChangeBatch, table: str) -> ShapedRows:
        """Return the rows of a batch of the chunk for a target table, by identifier.

        Raises one of `IMPOSSIBLE`.
        """
        target, settings = self._context.tables.get(table), self._context.settings_of(table)
        skipped: dict[str, int] = {}
        if target is not None:
            if not is_audit(settings, batch, target):
                batch = self._shapes.as_wanted(chunk.topic, batch, target.table)
            batch, skipped = only_new(source, chunk, target, batch)
            column_history = read_column_history(target.table.schema.options, table)
            batch = apply_renames(batch, column_history, chunk)
        batch, skipped["ignored"] = latest_only(batch, settings, target)
        if not len(batch.offset):
            return ShapedRows(batch, batch, skipped)
        shaped, unmade = self._shapes.apply(source, chunk, batch, target)
        sensitive = self._context.routing.case_sensitive
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
        return _without(batch, invalid), ()
    failures = tuple(
        Failure(rows, "schema", REASON, _message(name, problem))
        for name, problem in invalid.items()
        if (rows := _rows_of(batch, name, whole=bool(lost))).any()
    )
    return (batch if lost else _without(batch, invalid)), failures


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
    there: npt.NDArray[np.bool_] = np.asarray(batch.columns.column(name).is_valid()) & ~retracts
    return there


def _without(batch: ChangeBatch, invalid: Mapping[str, str]) -> ChangeBatch:
    return replace(
        batch,
        columns=batch.columns.drop_columns([name for name in invalid if name in batch.types]),
        types={name: one for name, one in batch.types.items() if name not in invalid},
        unavailable={name: one for name, one in batch.unavailable.items() if name not in invalid},
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
        names = ".".join(part for part in batch.source if part)
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
