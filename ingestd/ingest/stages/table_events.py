"""Events about whole tables: truncates and schema changes.

A truncate or schema change that the table has to apply is reported to the driver, which applies it
and runs the batch again. Events that cannot be applied are rejected or stop the pipeline, according
to the policy of the table.
"""

from collections.abc import Iterable, Iterator, Mapping

from ingestd.cdc.base import Decoded, RecordChunk, SchemaChangeEvent, Truncate
from ingestd.cdc.record_errors import Reason
from ingestd.errors import ConfigError, SchemaConflictError, UnsupportedError
from ingestd.ingest.dead_letters.dead_letter import DeadLetter
from ingestd.ingest.rows.rejected_records import rejected_record
from ingestd.ingest.rows.targets import Targets
from ingestd.ingest.schemas.column_history import (
    ProvenChange,
    StatementOrigin,
    not_applied,
    read_column_history,
)
from ingestd.ingest.schemas.discovery import Discovery, TableTruncate
from ingestd.ingest.schemas.schema_evolution import rename_or_drop
from ingestd.ingest.schemas.source_comments import new_comments
from ingestd.ingest.settings.context import (
    BatchContext,
    QualifiedSourceTable,
    TableContext,
)
from ingestd.ingest.settings.evolution_policy import EvolutionPolicy
from ingestd.ingest.settings.rejection import SourceRejection
from ingestd.ingest.stages.findings import Findings
from ingestd.ingest.values.source_points import SourcePoint, point_at
from ingestd.paimon.spec.column_names import column_name_problems
from ingestd.paimon.spec.schema_apply import apply_changes
from ingestd.paimon.spec.table_schema import TableSchema


class TableEvents:
    """Records the truncates, renames, drops and comments that messages of one source contain.

    They are recorded in `findings`, for the target tables of the batch.
    """

    def __init__(
        self,
        context: BatchContext,
        targets: Targets,
        findings: Findings,
        source: str,
    ) -> None:
        self._context = context
        self._targets = targets
        self._findings = findings
        self._source = source

    def note(self, chunk: RecordChunk, decoded: Decoded) -> list[DeadLetter]:
        """Record truncates and schema changes of a chunk; return dead letters for rejected ones.

        Raises SchemaConflictError if a schema change cannot be applied and the policy fails,
        PolicyStopError or ConfigError if routing or computed columns do not allow the source table,
        and FormatError if a table option is damaged.
        """
        dead_letters = [self._truncate(chunk, truncate) for truncate in decoded.truncates]
        for event in decoded.schema_changes:
            self._note_comments(chunk, event)
            if event.columns:
                dead_letters.append(self._change(chunk, event))
        return [dead_letter for dead_letter in dead_letters if dead_letter is not None]

    def _ask_for(
        self, table: str, source_table: QualifiedSourceTable, chunk: RecordChunk, offset: int
    ) -> None:
        """Request a further run of the batch that includes an existing table in its context."""
        coordinates = (chunk.topic, chunk.partition, offset)
        self._findings.note_discovery(
            Discovery(table, source_table, {}, (), *coordinates, fresh=True)
        )

    def _truncate(self, chunk: RecordChunk, truncate: Truncate) -> DeadLetter | None:
        source_table = QualifiedSourceTable(self._source, *truncate.source)
        target = self._targets.of(chunk.topic, source_table)
        if target is None:
            return None
        if target.rejection is not None:
            return _refused_letter(chunk, truncate.offset, target.rejection, target.table)
        if target.table in self._context.others:
            self._ask_for(target.table, source_table, chunk, truncate.offset)
        table = target.context
        if table is None or not target.settings.truncates.applies:
            return None
        where = (self._source, chunk.topic, chunk.partition)
        if truncate.offset < max(table.covered_until(*where), table.truncated_until(*where)):
            return None
        coordinates = (chunk.topic, chunk.partition, truncate.offset)
        point = _point(chunk, truncate)
        table_truncate = TableTruncate(target.table, source_table, point, *coordinates)
        why = self._context.refused_truncates.get(table_truncate.coordinates)
        if why is not None:
            if target.settings.truncates.on_refused == "ignore":
                return None
            reason = Reason("decode", "refused-truncate", why)
            return DeadLetter(rejected_record(chunk, truncate.offset, reason), target.table)
        self._note_truncate(table_truncate, table)
        return None

    def _note_truncate(self, table_truncate: TableTruncate, table: TableContext) -> None:
        """Record a truncate, unless the table has applied it or a later truncate."""
        self._findings.note_source(
            table_truncate.table, table_truncate.source_table, table_truncate.topic, 0
        )
        point, applied = table_truncate.point, table.truncate_before
        if point is None or applied is None or point.is_after(applied):
            self._findings.note_truncate(table_truncate)

    def _change(self, chunk: RecordChunk, event: SchemaChangeEvent) -> DeadLetter | None:
        """Record a schema change for the table; return a dead letter if it cannot be applied.

        Returns None if it was recorded, or if it needs no change of the table.
        """
        source_table = QualifiedSourceTable(self._source, *event.source)
        target = self._targets.of(chunk.topic, source_table)
        if target is None:
            return None
        policy, options = target.settings.evolution, target.settings.options
        followed = tuple(pair for pair in event.columns if policy.follows(*pair))
        if not followed:
            return None
        if target.rejection is not None:
            return _refused_letter(chunk, event.offset, target.rejection, target.table)
        if target.table in self._context.others:
            self._ask_for(target.table, source_table, chunk, event.offset)
            return None
        at, position = _stated(chunk, event), event.position or 0
        changes = tuple(ProvenChange(position, old, new or "", at) for old, new in followed)
        why_not = None
        if target.context is not None:
            schema = target.context.table.schema
            changes = _not_followed(target.context, event, changes)
            options = schema.options
            so_far = self._proven_so_far(target.table)
            why_not = _why_not(schema, sorted({*so_far, *changes}))
        bad_name = _bad_name(changes, options)
        why_not = bad_name or why_not
        if why_not is not None:
            other_way = "" if bad_name else "alter the table yourself, or "
            return self._refused(chunk, event, target.table, policy, why_not, other_way)
        if changes:
            coordinates = (chunk.topic, chunk.partition, event.offset)
            fresh = target.context is None
            discovery = Discovery(
                target.table, source_table, {}, (), *coordinates, fresh=fresh, proven=changes
            )
            self._findings.note_discovery(discovery)
        return None

    def _note_comments(self, chunk: RecordChunk, event: SchemaChangeEvent) -> None:
        """Record comments that the table may take, unless the context lacks the existing table."""
        source_table = QualifiedSourceTable(self._source, *event.source)
        target = self._targets.of(chunk.topic, source_table) if event.comments else None
        if target is None or target.rejection or target.table in self._context.others:
            return
        table = target.context
        schema = None if table is None else table.table.schema
        comments = new_comments(event.comments, schema, target.settings)
        if comments:
            coordinates = (chunk.topic, chunk.partition, event.offset)
            fresh = table is None
            self._findings.note_discovery(
                Discovery(
                    target.table, source_table, {}, (), *coordinates, fresh=fresh, comments=comments
                )
            )

    def _proven_so_far(self, table: str) -> Iterator[ProvenChange]:
        """Yield the renames and drops of a table that the task has recorded so far.

        A later change may depend on them.
        """
        for discovery in self._findings.discoveries.findings():
            if discovery.table == table:
                yield from discovery.proven

    def _refused(
        self,
        chunk: RecordChunk,
        event: SchemaChangeEvent,
        table: str,
        policy: EvolutionPolicy,
        why: str,
        other_way: str,
    ) -> DeadLetter | None:
        where = (self._source, chunk.topic, chunk.partition)
        if event.offset < self._context.covered_by_all(table, *where):
            return None
        stated = ", ".join(str(ProvenChange(0, old, new or "")) for old, new in event.columns)
        message = f"table {table} cannot apply a schema change of its source ({stated}): {why}"
        if policy.fails:
            raise SchemaConflictError(
                f"{message} ({chunk.topic}/{chunk.partition} at offset {event.offset}); "
                f"{other_way}set schema.on-incompatible-schema to dead-letter, which leaves the "
                "columns as they are"
            )
        reason = Reason("schema", "refused-change", message)
        return DeadLetter(rejected_record(chunk, event.offset, reason), table)


def _refused_letter(
    chunk: RecordChunk, offset: int, rejection: SourceRejection, table: str | None
) -> DeadLetter:
    """Return the dead letter for an event of a source table that the target rejects."""
    reason = Reason(rejection.stage, rejection.reason, rejection.message)
    return DeadLetter(rejected_record(chunk, offset, reason), table)


def _stated(chunk: RecordChunk, event: SchemaChangeEvent) -> StatementOrigin | None:
    """Return the record of a DDL statement, or None if the change is from a schema."""
    if event.is_repeated:
        return None
    time = point_at(chunk, event.offset, event.position or 0).time
    return StatementOrigin(time, chunk.topic, chunk.partition, event.offset)


def _point(chunk: RecordChunk, truncate: Truncate) -> SourcePoint | None:
    """Return the point of a truncate, or None if it has no position."""
    if truncate.position is None or truncate.position < 0:
        return None
    return point_at(chunk, truncate.offset, truncate.position)


def _not_followed(
    target: TableContext, event: SchemaChangeEvent, changes: tuple[ProvenChange, ...]
) -> tuple[ProvenChange, ...]:
    """Return the changes that the table has not applied yet.

    Of a repeated event, which is derived again for each chunk, changes that the table cannot apply
    are left out.
    """
    column_history = read_column_history(target.table.schema.options, target.identifier)
    if not event.is_repeated:
        if event.position is None:
            return tuple(change for change in changes if change not in column_history)
        return not_applied(changes, column_history)
    followed = {(change.old, change.new) for change in column_history}
    schema = target.table.schema
    return tuple(
        change
        for change in changes
        if (change.old, change.new) not in followed and _why_not(schema, (change,)) is None
    )


def _bad_name(changes: Iterable[ProvenChange], options: Mapping[str, str]) -> str | None:
    """Return why a new column name is invalid, or None if all new names are valid."""
    problems = column_name_problems([change.new for change in changes if change.new], options)
    return next((f"'{name}' {why}" for name, why in problems.items()), None)


def _why_not(schema: TableSchema, changes: Iterable[ProvenChange]) -> str | None:
    """Return why the changes cannot be applied to the schema in sequence, or None if they can."""
    try:
        for change in changes:
            schema = apply_changes(schema, rename_or_drop(schema, change), schema.time_millis)
    except (SchemaConflictError, ConfigError, UnsupportedError) as error:
        return error.message
    return None
