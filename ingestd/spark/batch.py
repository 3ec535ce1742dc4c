"""The state of one micro-batch, and the records that it reads again because of a late truncate."""

import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

from ingestd.ingest.batch_events import BatchListener, TableCommit
from ingestd.ingest.settings.context import (
    CoveredOffsets,
    QualifiedSourceTable,
    SourceSettings,
)
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.settings.rejection import SourceRejection
from ingestd.ingest.stages.truncates import Stream, Truncates
from ingestd.ingest.tables.batch_span import BatchSpan
from ingestd.ingest.tables.log_positions import by_name, lowest
from ingestd.ingest.tables.managed_table import covered_before
from ingestd.ingest.tables.table_registry import TableRegistry
from ingestd.ingest.values.batch_times import BatchTimes
from ingestd.ingest.values.source_points import SourcePoint
from ingestd.kafka.offset_ranges import (
    BatchOffsets,
    OffsetRange,
    Offsets,
    SourcePartition,
)
from ingestd.kafka.offsets import OffsetClient


@dataclass(slots=True)
class Batch:
    """The state of one micro-batch: its offset ranges, what its commits cover, and its results.

    `started` is in seconds of the monotonic clock; `stream` has the functions by which truncates
    are decided; `following` is the next batch, if it is planned already. The fields from
    `truncates` on are filled while the batch runs: decisions on truncates, tables with discoveries,
    event times, seconds by phase, commits, owners of tables that several source tables claim, and
    the reasons why tables are not created.
    """

    batch_id: str
    ranges: list[OffsetRange]
    span: BatchSpan
    started: float
    listener: BatchListener
    stream: Stream
    following: BatchOffsets | None = None
    truncates: Truncates = field(default_factory=Truncates)
    discovered: set[str] = field(default_factory=set)
    times: BatchTimes = field(default_factory=BatchTimes)
    seconds: dict[str, float] = field(default_factory=dict)
    commits: list[TableCommit] = field(default_factory=list)
    owners: dict[str, frozenset[QualifiedSourceTable]] = field(default_factory=dict)
    refused: dict[str, SourceRejection] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the duration of the block to a phase in `seconds`, and report it to the listener."""
        begin = time.monotonic()
        try:
            yield
        finally:
            seconds = time.monotonic() - begin
            self.seconds[name] = self.seconds.get(name, 0.0) + seconds
            self.listener.phase(name, seconds)


_Sources = Mapping[str, SourceSettings]


def stream_of(registry: TableRegistry, settings: PipelineSettings, until: Offsets) -> Stream:
    """Return the queries about logs and tables by which truncates of a batch are decided.

    `registry` is open, and `until` are the end offsets of the batch: other topic partitions are
    left out, and covered offsets are limited to them.
    """

    def before(name: str, point: SourcePoint) -> CoveredOffsets | None:
        covered = covered_before(registry.tables[name], settings.name, point)
        if covered is None:
            return None
        source_topics = {topic: registry.keys[topic] for topic in registry.source_topics(name)}
        known = {
            key: positions
            for key, positions in registry.progress.end.items()
            if key in source_topics.values()
        }
        # A log added after that snapshot is read again from its first offset in the pipeline.
        return by_name(lowest([covered, known], registry.progress.origin), source_topics)

    return Stream(
        partitions=lambda source, topic: len(until.get(source, {}).get(topic, {})),
        held=lambda name: _up_to(registry.covered(name), until),
        source_topics=registry.source_topics,
        before=before,
        begins=lambda partitions: _begins(settings.sources, partitions),
    )


def _up_to(covered: CoveredOffsets, until: Offsets) -> CoveredOffsets:
    """Return covered offsets without those after the end of the batch."""
    return {
        source: {
            topic: {
                partition: min(offset, until.get(source, {}).get(topic, {}).get(partition, offset))
                for partition, offset in offsets.items()
            }
            for topic, offsets in topics.items()
        }
        for source, topics in covered.items()
    }


def _begins(
    sources: _Sources, source_partitions: Collection[SourcePartition]
) -> Mapping[SourcePartition, int]:
    """Return the first offset still in the log of each topic partition.

    Partitions of topics that do not exist are left out. Queries the brokers each time, since late
    truncates are rare. Raises SourceError if the brokers do not respond.
    """
    starts: dict[SourcePartition, int] = {}
    for name in {source for source, _, _ in source_partitions} & sources.keys():
        by_topic: dict[str, list[int]] = {}
        for source, topic, partition in source_partitions:
            if source == name:
                by_topic.setdefault(topic, []).append(partition)
        with closing(OffsetClient(sources[name].kafka)) as cluster:
            existing = cluster.topic_ids(by_topic)
            partitions = {
                topic: tuple(numbers) for topic, numbers in by_topic.items() if topic in existing
            }
            for topic, begins in cluster.beginning_offsets(partitions).items():
                for partition, begin in begins.items():
                    starts[SourcePartition(name, topic, partition)] = begin
    return starts
