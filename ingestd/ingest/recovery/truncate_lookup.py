"""Look up the state of logs and tables by which truncates of a batch are decided."""

from collections.abc import Collection, Mapping
from contextlib import closing

from ingestd.ingest.settings.context import CoveredOffsets, SourceSettings
from ingestd.ingest.settings.pipeline_settings import PipelineSettings
from ingestd.ingest.stages.truncates import TruncateLookup
from ingestd.ingest.tables.log_positions import by_name, lowest
from ingestd.ingest.tables.managed_table import covered_before
from ingestd.ingest.tables.table_registry import TableRegistry
from ingestd.ingest.values.source_points import SourcePoint
from ingestd.kafka.offset_ranges import Offsets, SourcePartition
from ingestd.kafka.offsets import OffsetClient


def truncate_lookup(
    registry: TableRegistry, settings: PipelineSettings, until: Offsets
) -> TruncateLookup:
    """Return the functions by which decisions on truncates of a batch look up logs and tables.

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

    return TruncateLookup(
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
    sources: Mapping[str, SourceSettings], source_partitions: Collection[SourcePartition]
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
