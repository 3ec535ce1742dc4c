"""What is asked before a query starts and before each commit: who leads, which topics these are.

A topic that was deleted and made anew is not the one that was read, and a process that another
one has replaced commits no more. Also what the brokers say of offsets that are yet to come.
"""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

from ingestd.errors import OffsetLostError
from ingestd.ingest.settings.context import SourceSettings
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.tables.lake import Lake
from ingestd.ingest.tables.leadership import Leadership, this_process
from ingestd.kafka.offsets import OffsetClient
from ingestd.kafka.ranges import OffsetRange, Offsets, TopicOffsets, covers
from ingestd.kafka.start_stop import last_positions
from ingestd.paimon.io.file_io import FileIO


class TopicIdentity:
    """Kafka's ids of the topics of a pipeline: none may change, or offsets mean other records.

    Clients are kept; an answer about some topics takes a millisecond or two.
    """

    def __init__(self, sources: Mapping[str, SourceSettings]) -> None:
        self._sources = sources
        self._clients: dict[str, OffsetClient] = {}
        self._known: dict[tuple[str, str], str] = {}

    def __call__(self, ranges: Sequence[OffsetRange]) -> Mapping[tuple[str, str], str | None]:
        """Ids by (source, topic) of the topics of ranges that have been read; None if unknown.

        OffsetLostError if a topic is another one than it was before. Asked after the reading, so
        that records of a new topic never pass for those of the old one.
        """
        wanted: dict[str, set[str]] = {}
        for one in ranges:
            wanted.setdefault(one.source, set()).add(one.topic)
        for source, topics in wanted.items():
            for topic, now in self._ask(source, topics).items():
                known = self._known.setdefault((source, topic), now)
                if known != now:
                    raise _created_anew("the batch", source, topic, known, now)
        return {(one.source, one.topic): self._known.get((one.source, one.topic)) for one in ranges}

    def check(self, lake: Lake) -> None:
        """OffsetLostError if a topic that a table read is now another one of the same name."""
        for name, table in lake.tables.items():
            for source, topics in (table.progress.sources if table.progress else {}).items():
                if source not in self._sources:
                    continue
                unknown = {topic for topic in topics if (source, topic) not in self._known}
                for topic, now in self._ask(source, unknown).items():
                    self._known[source, topic] = now
                for topic, one in topics.items():
                    known = self._known.get((source, topic))
                    if known and one.topic_id and known != one.topic_id:
                        raise _created_anew(f"table {name}", source, topic, one.topic_id, known)

    def close(self) -> None:
        """Let go of the brokers; what is asked later opens clients anew."""
        while self._clients:
            self._clients.popitem()[1].close()

    def _ask(self, source: str, topics: set[str]) -> Mapping[str, str]:
        if not topics:
            return {}
        if source not in self._clients:
            self._clients[source] = OffsetClient(self._sources[source].kafka)
        return self._clients[source].topic_ids(sorted(topics))


def _created_anew(where: str, source: str, topic: str, before: str, now: str) -> OffsetLostError:
    return OffsetLostError(
        f"{where}: topic {topic} of source {source} was created anew (its id was {before}, now "
        f"{now}), so the tables' offsets mean other records; nothing that was read of it is "
        "written. Read it under another pipeline name, or drop the tables that it feeds"
    )


@dataclass(frozen=True)
class BeforeCommit:
    """Asked between the reading of a batch and its commits."""

    leadership: Leadership
    topics: TopicIdentity

    def __call__(self, ranges: Sequence[OffsetRange]) -> Mapping[tuple[str, str], str | None]:
        """Ids of the topics; FencedError or OffsetLostError if nothing may be committed."""
        self.leadership.check()
        return self.topics(ranges)


def lead(settings: PipelineSettings, io: FileIO) -> Leadership:
    """Become the process that leads a pipeline, or stay it; FencedError if another replaced it."""
    folder = f"{settings.warehouse}/.ingestd/{settings.name}"
    leadership = Leadership(io, folder, settings.name, this_process())
    leadership.claim()
    return leadership


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
        with closing(OffsetClient(source)) as cluster:
            ends[name] = cluster.end_offsets(cluster.list_topic_partitions())
            wanted[name] = last_positions(source, cluster, ends[name]) or {}
    return {} if covers(ends, wanted) else wanted
