"""What the brokers say before a query starts: which topics these are, and what is yet to come.

A topic that was deleted and made anew is not the one that was read.
"""

from collections.abc import Mapping, Sequence

from ingestd.errors import OffsetLostError
from ingestd.ingest.settings.context import SourceSettings
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.tables.lake import Lake
from ingestd.kafka.offsets import OffsetClient
from ingestd.kafka.ranges import OffsetRange, Offsets, TopicOffsets, covers
from ingestd.kafka.start_stop import last_positions


class TopicIdentity:
    """Kafka's ids of the topics of a pipeline, asked once a topic and run."""

    def __init__(self, sources: Mapping[str, SourceSettings]) -> None:
        self._sources = sources
        self._ids: dict[tuple[str, str], str | None] = {}

    def __call__(self, ranges: Sequence[OffsetRange]) -> Mapping[tuple[str, str], str | None]:
        """Ids by (source, topic) of the topics of some ranges; None where a broker has none."""
        missing: dict[str, set[str]] = {}
        for one in ranges:
            if (one.source, one.topic) not in self._ids:
                missing.setdefault(one.source, set()).add(one.topic)
        for source, topics in missing.items():
            self._ask(source, topics)
        return {(one.source, one.topic): self._ids.get((one.source, one.topic)) for one in ranges}

    def check(self, lake: Lake) -> None:
        """OffsetLostError if a topic that a table read is now another one of the same name."""
        for name, table in lake.tables.items():
            for source, topics in (table.progress.sources if table.progress else {}).items():
                if source not in self._sources:
                    continue
                self._ask(source, {topic for topic in topics if (source, topic) not in self._ids})
                for topic, one in topics.items():
                    now = self._ids.get((source, topic))
                    if now and one.topic_id and now != one.topic_id:
                        raise OffsetLostError(
                            f"table {name}: topic {topic} of source {source} was created anew "
                            f"(its id was {one.topic_id}, now {now}), so the table's offsets mean "
                            "other records; read it under another pipeline name, or drop the table"
                        )

    def _ask(self, source: str, topics: set[str]) -> None:
        if topics:
            found = OffsetClient(self._sources[source].kafka).topic_ids(sorted(topics))
            for topic in topics:
                self._ids[source, topic] = found.get(topic)


def bounds_ahead(settings: PipelineSettings) -> Offsets:
    """The offsets at which a pipeline is to end, if some of them are yet to be written.

    None of them if all are in the logs, or if some source does not end. Raises SourceError, and
    ConfigError for offsets of what does not exist.
    """
    kafka = {name: one.kafka for name, one in settings.sources.items()}
    if not settings.is_bounded or not any(one.bounded_offsets for one in kafka.values()):
        return {}
    ends: dict[str, TopicOffsets] = {}
    wanted: dict[str, TopicOffsets] = {}
    for name, source in kafka.items():
        cluster = OffsetClient(source)
        ends[name] = cluster.end_offsets(cluster.list_topic_partitions())
        wanted[name] = last_positions(source, cluster, ends[name]) or {}
    return {} if covers(ends, wanted) else wanted
