"""Check that the configured routing still fits the tables that hold rows of its sources.

A changed routing, or `merge-shards` removed, is an error of the configuration and not of a message,
so it is checked before any record is read. A changed `ordering` costs only the records of its table
(`ingest.rows.source_admission`).
"""

from collections.abc import Iterator

from ingestd.errors import ConfigError, PolicyStopError
from ingestd.ingest.rows.router import Router, check_sharing
from ingestd.ingest.settings.context import Feed
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.tables.table_registry import TableRegistry


def check_routing(settings: PipelineSettings, registry: TableRegistry) -> None:
    """Check the routing against the source tables that each table of the pipeline records.

    `registry` is open and has the keys of topics. Raises SchemaConflictError if source tables that
    must not share a target would now do so, and ConfigError if one is routed to the dead-letter
    table.
    """
    router = Router(settings.routing, settings.database)
    claims: dict[str, set[Feed]] = {}
    for name, table in registry.tables.items():
        feeds = table.progress.feeds if table.progress else frozenset()
        claims.setdefault(name, set()).update(feeds)
        for topic, feed in _read_today(settings, registry, name, feeds):
            target = _target(router, topic, feed)
            if target is not None:
                claims.setdefault(target, set()).add(feed)
    for name, claimants in sorted(claims.items()):
        if name == registry.dead_letters and claimants:
            raise ConfigError(
                f"errors.dead-letter-table: {name} has rows of {min(map(str, claimants))}, or is "
                "to get them; name another table"
            )
        check_sharing(settings.routing, name, frozenset(claimants))


def _read_today(
    settings: PipelineSettings, registry: TableRegistry, name: str, feeds: frozenset[Feed]
) -> Iterator[tuple[str, Feed]]:
    """Yield the topics that fed a table and are still read, each with its source tables.

    A source table can be matched to its topic only if there is one topic, or one source table.
    """
    read = registry.fed_topics(name)
    for source in {source for source, _ in read} & settings.sources.keys():
        topics = [topic for topic_source, topic in read if topic_source == source]
        own = [feed for feed in feeds if feed.source == source]
        if len(own) > 1 and len(topics) > 1:
            continue
        selected = filter(settings.sources[source].kafka.selects, topics)
        yield from ((topic, feed) for topic in selected for feed in own)


def _target(router: Router, topic: str, feed: Feed) -> str | None:
    try:
        return router.route(topic, feed.source_table)
    except PolicyStopError:
        return None  # `unmatched: fail` is about records, of which there may be none
