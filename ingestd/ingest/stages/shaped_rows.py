"""Rows of one source table on their way into the columns of their target.

What messages bring may contradict what the configuration asks for: a column of the name that a
computed one is to have, a type that a function does not take. That is an error about the rows
given here; the caller finds the records that cause it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from ingestd.cdc.base import ChangeBatch, RecordChunk, RejectedRecord
from ingestd.errors import ConfigError, SchemaConflictError, UnsupportedError
from ingestd.ingest.rows.batch_rows import effective_positions, rejected_whole, select_rows
from ingestd.ingest.rows.conform import Failure, conform
from ingestd.ingest.rows.invalid_columns import without_invalid
from ingestd.ingest.rows.keyless_changes import audited, is_audit, latest_only
from ingestd.ingest.rows.row_shape import Shapes
from ingestd.ingest.schemas.apply_renames import apply_renames
from ingestd.ingest.schemas.column_history import read_column_history
from ingestd.ingest.settings.context import BatchContext, TableContext
from ingestd.paimon.spec.data_types import DataType

IMPOSSIBLE = (SchemaConflictError, ConfigError, UnsupportedError)
"""What `shape` raises where the rows contradict the settings of their table."""


@dataclass(frozen=True, slots=True)
class ShapedRows:
    """Rows as their target is to have them.

    `batch` has the columns of the source, `shaped` those that the settings make of them; both lack
    rows that are `skipped`, counted by reason. Some of the rows are among the `failures`, or all
    records are `lost`. `rows` are in the target's columns, `failures` included; None as long as it
    lacks the columns `beyond`, or does not exist.
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
        """The rows of a batch of the chunk, for the target with that identifier.

        Changes nothing but what it returns. Raises one of `IMPOSSIBLE`.
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
    """Without rows that the table holds already, or was truncated after, and their counts."""
    covered = target.covered_until(source, chunk.topic, chunk.partition)
    new = batch.offset >= covered
    skipped = {"covered": int(np.count_nonzero(~new))}
    batch = select_rows(batch, new)
    if target.truncate_before is not None:
        positions = effective_positions(batch)
        newer = (positions > target.truncate_before) | (positions < 0)
        skipped["truncated"] = int(np.count_nonzero(~newer))
        batch = select_rows(batch, newer)
    return batch, skipped
