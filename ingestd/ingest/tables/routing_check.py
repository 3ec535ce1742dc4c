"""Whether the configuration still fits the tables that have the rows of its sources.

Another routing, `merge-shards` taken away, another ordering: that is no claim of a message, so it
is judged before anything is read.
"""

from collections.abc import Iterator

from ingestd.errors import ConfigError, PolicyStopError
from ingestd.ingest.rows.router import Router, check_sharing
from ingestd.ingest.settings.context import Feed, TableSettings
from ingestd.ingest.settings.ordering import refuse_other_ordering
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.tables.table_registry import TableRegistry


def check_routing(settings: PipelineSettings, registry: TableRegistry) -> None:
    """Judge the routing by what the tables of a pipeline record of their rows.

    The lake is open, and knows the keys of topics. Raises SchemaConflictError if source tables
    would meet in one target now that may not, and ConfigError if one would meet the dead letters.
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
    for name, found in sorted(claims.items()):
        if name == registry.dead_letters and found:
            raise ConfigError(
                f"errors.dead-letter-table: {name} has rows of {min(map(str, found))}, or is to "
                "get them; name another table"
            )
        check_sharing(settings.routing, name, frozenset(found))


def check_ordering(settings: PipelineSettings, registry: TableRegistry) -> None:
    """Raise ConfigError if a table was created for another ordering than the configured one."""
    for name, one in registry.tables.items():
        own = settings.tables.get(name.partition(".")[2], TableSettings())
        wanted = own.over(settings.defaults)
        if name != registry.dead_letters:
            refuse_other_ordering(
                name,
                one.table.schema.options,
                wanted.position_column,
                by_position=wanted.by_position,
            )


def _read_today(
    settings: PipelineSettings, registry: TableRegistry, name: str, feeds: frozenset[Feed]
) -> Iterator[tuple[str, Feed]]:
    """Topics that fed a table and are still read, with the source tables in them.

    Which source table is in which topic is known if either is the only one.
    """
    read = registry.fed_topics(name)
    for source in {source for source, _ in read} & settings.sources.keys():
        topics = [topic for one, topic in read if one == source]
        own = [one for one in feeds if one.source == source]
        if len(own) > 1 and len(topics) > 1:
            continue
        selected = filter(settings.sources[source].kafka.selects, topics)
        yield from ((topic, one) for topic in selected for one in own)


def _target(router: Router, topic: str, feed: Feed) -> str | None:
    try:
        return router.route(topic, feed.source_table)
    except PolicyStopError:
        return None  # `unmatched: fail` is about records, of which there may be none
