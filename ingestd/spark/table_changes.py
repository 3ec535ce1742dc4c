"""What a run of a batch found, acted upon: tables opened, created, altered, or refused."""

import logging
import time
from collections.abc import Mapping

from ingestd.errors import ConfigError, SchemaConflictError
from ingestd.ingest.schemas.schema_evolution import plan
from ingestd.ingest.schemas.table_limits import within_limits
from ingestd.ingest.settings.context import BatchContext
from ingestd.ingest.settings.rejection import SourceRejection
from ingestd.ingest.settings.routing_rules import TableLimits
from ingestd.ingest.stages.outcome import AttemptResult
from ingestd.ingest.tables.table_registry import TableRegistry
from ingestd.paimon.spec.schema import TableSchema
from ingestd.spark.batch import Batch

_LOG = logging.getLogger(__name__)


def act_on_findings(
    registry: TableRegistry,
    limits: TableLimits,
    context: BatchContext,
    batch: Batch,
    result: AttemptResult,
) -> None:
    """Settle truncates and claims to tables, and make one new schema for each table found.

    What is decided is noted in the batch, for its next run.
    """
    batch.truncates.settle(context, result, batch.stream)
    batch.owners.update(result.contested)
    for table, owners in result.contested.items():
        names = sorted(map(str, owners))
        _LOG.warning("table_contested", extra={"ctx": {"table": table, "rows_of": names}})
    batch.found.update(found.table for found in result.discoveries)
    new = [
        found
        for found in result.discoveries
        if found.table in context.tables or registry.adopt(found.table) is None
    ]
    now_ms = int(time.time() * 1000)
    existing = [one.table for name, one in registry.tables.items() if name != registry.dead_letters]
    evolution = within_limits(plan(context, new, now_ms), existing, limits, now_ms)
    refused = {**evolution.refused, **_create(registry, context, evolution.creates)}
    batch.refused.update(refused)
    for name, one in refused.items():
        at = {"table": name, "stage": one.stage, "reason": one.reason, "problem": one.message}
        _LOG.warning("table_refused", extra={"ctx": at})
    for name, changes in evolution.changes.items():
        registry.alter(name, changes)
        done = [str(change) for change in changes]
        _LOG.info("schema_changed", extra={"ctx": {"table": name, "changes": done}})


def _create(
    registry: TableRegistry, context: BatchContext, creates: Mapping[str, TableSchema]
) -> Mapping[str, SourceRejection]:
    """Create tables; those that the catalog refuses, unless their policy is to stop."""
    refused: dict[str, SourceRejection] = {}
    try:
        registry.ensure_all(creates)
    except (ConfigError, SchemaConflictError):
        for name, schema in creates.items():  # one of several: which one it is shows one by one
            try:
                registry.ensure(name, schema)
            except (ConfigError, SchemaConflictError) as error:
                if context.settings_of(name).evolution.fails:
                    raise
                refused[name] = SourceRejection("schema", "impossible-table", error.message)
    for name, schema in creates.items():
        if name not in refused:
            columns = [column.name for column in schema.fields]
            _LOG.info("table_created", extra={"ctx": {"table": name, "columns": columns}})
    return refused
