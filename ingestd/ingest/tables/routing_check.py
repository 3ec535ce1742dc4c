"""Check at startup that the routing is compatible with the rows that the tables contain.

A changed routing, or the removal of `merge-shards`, is an error of the configuration and not of a
message, so it is detected before any record is read. A changed `ordering` is not checked here,
because it affects only the records of one table (see `ingest.rows.targets`).
"""

from collections.abc import Iterator

from ingestd.errors import ConfigError, PolicyStopError
from ingestd.ingest.rows.router import Router, check_sharing
from ingestd.ingest.settings.context import QualifiedSourceTable
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.tables.table_registry import TableRegistry


def check_routing(settings: PipelineSettings, registry: TableRegistry) -> None:
    """Check the routing against the source tables recorded in each table of the pipeline.

    `registry` must be open and have the topic keys. Raises SchemaConflictError if source tables
    that must not share a target would share it, and ConfigError if a source table is routed to the
    dead-letter table.
    """
    router = Router(settings.routing, settings.database)
    claims: dict[str, set[QualifiedSourceTable]] = {}
    for name, table in registry.tables.items():
        source_tables = table.progress.source_tables if table.progress else frozenset()
        claims.setdefault(name, set()).update(source_tables)
        for topic, source_table in _read_today(settings, registry, name, source_tables):
            target = _target(router, topic, source_table)
            if target is not None:
                claims.setdefault(target, set()).add(source_table)
    for name, claimants in sorted(claims.items()):
        if name == registry.dead_letters and claimants:
            raise ConfigError(
                f"errors.dead-letter-table: {name} has rows of {min(map(str, claimants))}, or is "
                "to get them; name another table"
            )
        check_sharing(settings.routing, name, frozenset(claimants))


def _read_today(
    settings: PipelineSettings,
    registry: TableRegistry,
    name: str,
    source_tables: frozenset[QualifiedSourceTable],
) -> Iterator[tuple[str, QualifiedSourceTable]]:
    """Yield (topic, source table) pairs of a table whose topics are still read.

    Which topic contains a source table is known only if the table has rows of one topic, or of one
    source table, of this source; other pairs are omitted.
    """
    read = registry.source_topics(name)
    for source in {source for source, _ in read} & settings.sources.keys():
        topics = [topic for topic_source, topic in read if topic_source == source]
        own = [source_table for source_table in source_tables if source_table.source == source]
        if len(own) > 1 and len(topics) > 1:
            continue
        selected = filter(settings.sources[source].kafka.selects, topics)
        yield from ((topic, source_table) for topic in selected for source_table in own)


def _target(router: Router, topic: str, source_table: QualifiedSourceTable) -> str | None:
    try:
        return router.route(topic, source_table.unqualified)
    except PolicyStopError:
        return None  # `unmatched: fail` is about records, of which there may be none
