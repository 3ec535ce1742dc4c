"""What messages say of whole tables instead of rows: truncates, and statements about columns.

A truncate, or a statement that the table is to follow, is found once; the driver acts on it and has
the batch run again. What cannot be followed is rejected, or stops the pipeline, as the table's
policy has it.
"""

from collections.abc import Iterable, Iterator

from ingestd.cdc.base import Decoded, RecordChunk, SchemaChangeEvent, Truncate
from ingestd.errors import SchemaConflictError
from ingestd.ingest.letters.dead_letter import DeadLetter
from ingestd.ingest.rows.batch_rows import rejected_record, rejected_truncate
from ingestd.ingest.rows.router import Router
from ingestd.ingest.schemas.column_ledger import ProvenChange, followed_until, read_ledger
from ingestd.ingest.schemas.discovery import Discovery, TableTruncate
from ingestd.ingest.schemas.schema_evolution import column_changes
from ingestd.ingest.settings.context import BatchContext, Feed, TableContext
from ingestd.ingest.settings.evolution_policy import EvolutionPolicy
from ingestd.ingest.stages.findings import Findings
from ingestd.paimon.spec.schema import TableSchema
from ingestd.paimon.spec.schema_apply import apply_changes

_NO_POSITION = (
    "the statement has no position in the source's log, so it cannot be told which rows are older"
)


class TableEvents:
    """Notes the events of one chunk in the findings of its task; letters for what is rejected."""

    def __init__(
        self, context: BatchContext, router: Router, findings: Findings, source: str
    ) -> None:
        self._context = context
        self._router = router
        self._findings = findings
        self._source = source

    def note(self, chunk: RecordChunk, decoded: Decoded) -> list[DeadLetter]:
        """Take in all events of a chunk. SchemaConflictError for what the policy stops at."""
        letters = [self._truncate(chunk, one) for one in decoded.truncates]
        letters += [self._change(chunk, one) for one in decoded.schema_changes]
        return [one for one in letters if one is not None]

    def _ask_for(self, table: str, feed: Feed, chunk: RecordChunk, offset: int) -> None:
        """Have the batch run again with a table that exists, but was not thought to be needed."""
        place = (chunk.topic, chunk.partition, offset)
        self._findings.discoveries.add(Discovery(table, feed, {}, (), *place, fresh=True))

    def _truncate(self, chunk: RecordChunk, truncate: Truncate) -> DeadLetter | None:
        table = self._router.route(chunk.topic, truncate.source)
        target = self._context.tables.get(table) if table else None
        feed = Feed(self._source, *truncate.source)
        if table in self._context.others:
            self._ask_for(table, feed, chunk, truncate.offset)
        if target is None:
            return None
        if truncate.offset < target.covered_until(self._source, chunk.topic, chunk.partition):
            return None
        if truncate.position is None or truncate.position < 0:
            return DeadLetter(rejected_truncate(chunk, truncate.offset), target.identifier)
        self._findings.note_source(target.identifier, feed, chunk.topic)
        if target.truncate_before is None or truncate.position > target.truncate_before:
            found = TableTruncate(target.identifier, feed, truncate.position)
            self._findings.note_truncate(found)
        return None

    def _change(self, chunk: RecordChunk, event: SchemaChangeEvent) -> DeadLetter | None:
        """A statement about columns, if the table is to follow it and has not yet."""
        table = self._router.route(chunk.topic, event.source)
        policy = None if table is None else self._context.settings_of(table).evolution
        if table is None or policy is None:
            return None
        wanted = tuple(pair for pair in event.columns if policy.follows(*pair))
        if not wanted:
            return None
        feed = Feed(self._source, *event.source)
        if table in self._context.others:
            self._ask_for(table, feed, chunk, event.offset)
            return None
        if event.position is None:
            return self._refused(chunk, event, table, policy, _NO_POSITION)
        found = tuple(ProvenChange(event.position, old, new or "") for old, new in wanted)
        target = self._context.tables.get(table)
        if target is not None:
            found = _not_followed(target, event, found)
            why_not = _why_not(target.table.schema, sorted({*self._found_so_far(table), *found}))
            if why_not is not None:
                return self._refused(chunk, event, table, policy, why_not)
        if found:
            place = (chunk.topic, chunk.partition, event.offset)
            fresh = target is None
            self._findings.discoveries.add(
                Discovery(table, feed, {}, (), *place, fresh=fresh, proven=found)
            )
        return None

    def _found_so_far(self, table: str) -> Iterator[ProvenChange]:
        """What the table is to follow before: a statement may build on those of the same batch."""
        for one in self._findings.discoveries.findings():
            if one.table == table:
                yield from one.proven

    def _refused(
        self,
        chunk: RecordChunk,
        event: SchemaChangeEvent,
        table: str,
        policy: EvolutionPolicy,
        why: str,
    ) -> DeadLetter | None:
        covered = self._context.tables[self._context.dead_letters].covered_until(
            self._source, chunk.topic, chunk.partition
        )
        if event.offset < covered:
            return None
        stated = ", ".join(str(ProvenChange(0, old, new or "")) for old, new in event.columns)
        message = f"table {table} cannot follow its source ({stated}): {why}"
        if policy.fails:
            raise SchemaConflictError(
                f"{message} ({chunk.topic}/{chunk.partition} at offset {event.offset}); alter the "
                "table yourself, or let schema.on-refused-change be dead-letter, which leaves the "
                "columns as they are"
            )
        letter = rejected_record(chunk, event.offset, ("schema", "refused-change"), message)
        return DeadLetter(letter, table)


def _not_followed(
    target: TableContext, event: SchemaChangeEvent, found: tuple[ProvenChange, ...]
) -> tuple[ProvenChange, ...]:
    """Those of the changes that the table has yet to follow.

    What is said again and again is followed once, and not where the table has both columns already
    or cannot rename the one.
    """
    ledger = read_ledger(target.table.schema.options, target.identifier)
    if not event.is_standing:
        is_new = (event.position or 0) > followed_until(ledger)
        return found if is_new else ()
    followed = {(one.old, one.new) for one in ledger}
    schema = target.table.schema
    return tuple(
        one
        for one in found
        if (one.old, one.new) not in followed and _why_not(schema, (one,)) is None
    )


def _why_not(schema: TableSchema, found: Iterable[ProvenChange]) -> str | None:
    """Why the schema cannot change so, one after the other; None if it can."""
    try:
        for one in found:
            schema = apply_changes(schema, column_changes(schema, one), schema.time_millis)
    except SchemaConflictError as error:
        return error.message
    return None
