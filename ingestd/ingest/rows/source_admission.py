"""Which source tables may bring rows to which targets, by what the context of a batch knows.

A message claims the name of its source table. A claim to a target that belongs to another source
table, that keeps the dead letters, that orders its rows otherwise, or that cannot be created costs
the record and nothing else.
"""

from ingestd.cdc.base import ChangeBatch, RecordChunk, RejectedRecord
from ingestd.errors import ConfigError
from ingestd.ingest.rows.batch_rows import rejected_all, rejected_unrouted
from ingestd.ingest.rows.router import Router, sharing_problem
from ingestd.ingest.settings.context import BatchContext, Feed
from ingestd.ingest.settings.ordering import refuse_other_ordering
from ingestd.ingest.settings.rejection import SourceRejection


class Admission:
    """Decide whether a source table may write to a target table; decisions are cached."""

    def __init__(self, context: BatchContext, router: Router) -> None:
        self.router = router
        self._context = context
        self._known: dict[tuple[str, Feed], SourceRejection | None] = {}

    def target(
        self, source: str, chunk: RecordChunk, batch: ChangeBatch
    ) -> tuple[str | None, list[RejectedRecord]]:
        """Return the target table of a batch (None if unrouted) and the rejected records."""
        table = self.router.route(chunk.topic, batch.source)
        if table is None:
            return None, rejected_unrouted(self.router, chunk, batch)
        rejection_reason = self.rejection_reason(table, Feed(source, *batch.source))
        return table, [] if rejection_reason is None else rejected_all(
            chunk, batch, rejection_reason
        )

    def rejection_reason(self, table: str, feed: Feed) -> SourceRejection | None:
        """Return why a target (by identifier) accepts no rows of a source table, or None."""
        key = (table, feed)
        if key not in self._known:
            self._known[key] = self._judge(table, feed)
        return self._known[key]

    def _judge(self, table: str, feed: Feed) -> SourceRejection | None:
        context = self._context
        if table == context.dead_letters:
            problem = (
                f"{feed} is routed to {table}, which keeps the dead letters; give it another "
                "target in routing.table-mapping"
            )
            return SourceRejection("route", "reserved-table", problem)
        if table in context.refused_tables:
            return context.refused_tables[table]
        owners = context.owners_of(table)
        if owners and feed not in owners:
            shared = sharing_problem(context.routing, table, owners | {feed})
            if shared is not None:
                return SourceRejection("route", "table-taken", shared)
        return self._other_ordering(table)

    def _other_ordering(self, table: str) -> SourceRejection | None:
        """Return why a table created with another ordering accepts no rows, or None."""
        target, settings = self._context.tables.get(table), self._context.settings_of(table)
        if target is None:
            return None
        options, column = target.table.schema.options, settings.position_column
        try:
            refuse_other_ordering(table, options, column, by_position=settings.by_position)
        except ConfigError as error:
            return SourceRejection("schema", "other-ordering", error.message)
        return None
