"""Which topics these are: a topic that was deleted and made anew is not the one that was read."""

from collections.abc import Mapping, Sequence

from ingestd.errors import OffsetLostError
from ingestd.ingest.context import SourceSettings
from ingestd.ingest.lake import Lake
from ingestd.kafka.offsets import OffsetClient
from ingestd.kafka.ranges import OffsetRange


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
