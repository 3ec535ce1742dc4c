"""What is asked before a query starts and before each commit: who leads, which topics these are."""

from collections.abc import Mapping
from dataclasses import dataclass

from ingestd.ingest.recovery.logs import LogCluster, TopicKeyCheck
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.tables.leadership import Leadership, this_process
from ingestd.ingest.tables.positions import TopicKeys
from ingestd.kafka.ranges import OffsetRange, Offsets, TopicOffsets, covers
from ingestd.kafka.start_stop import last_positions
from ingestd.paimon.io.file_io import FileIO


@dataclass(frozen=True)
class BeforeCommit:
    """Asked before a batch is read, and between its reading and its commits."""

    leadership: Leadership
    topics: TopicKeyCheck

    @property
    def keys(self) -> TopicKeys:
        """The keys of the topics that were read so far."""
        return self.topics.keys

    def learn(self, ranges: list[OffsetRange]) -> None:
        """Learn the keys of topics that are read for the first time."""
        self.topics.learn(ranges)

    def check(self, ranges: list[OffsetRange]) -> None:
        """FencedError or LogChangedError if nothing of the batch may be committed."""
        self.leadership.check()
        self.topics.check(ranges)


def lead(settings: PipelineSettings, io: FileIO) -> Leadership:
    """Become the process that leads a pipeline, or stay it; FencedError if another replaced it."""
    folder = f"{settings.warehouse}/.ingestd/{settings.name}"
    leadership = Leadership(io, folder, settings.name, this_process())
    leadership.claim()
    return leadership


def bounds_ahead(settings: PipelineSettings, clusters: Mapping[str, LogCluster]) -> Offsets:
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
        cluster = clusters[name]
        ends[name] = cluster.end_offsets(cluster.list_topic_partitions())
        wanted[name] = last_positions(source, cluster, ends[name]) or {}
    return {} if covers(ends, wanted) else wanted
