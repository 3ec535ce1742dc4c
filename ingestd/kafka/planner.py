"""Plan the offset ranges of the next micro-batch from positions, log ends and limits.

The start positions follow from the offsets that the tables cover. If a log has lost or replaced
records that were already read, LogChangedError ends the query, and the next start of the pipeline
applies the source's policy.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

from ingestd.errors import LogChangedError, SourceError
from ingestd.kafka.offset_ranges import BatchOffsets, Offsets, TopicOffsets, cut
from ingestd.kafka.offsets import OffsetClient
from ingestd.kafka.properties import KafkaSource
from ingestd.kafka.start_stop import Cluster, last_positions

_NO_LIMIT = 1 << 62
_UNKNOWN = -1


class EpochCluster(Cluster, Protocol):
    """The requests of the planner to a cluster; `OffsetClient` implements them."""

    def leader_epochs(self, ends: TopicOffsets) -> TopicOffsets:
        """Return the leader epochs that brokers reported with the last `end_offsets`.

        The result has the partitions of `ends`; an epoch is -1 if none was reported.
        """

    def divergences(
        self, positions: Mapping[tuple[str, int], tuple[int, int]]
    ) -> Mapping[tuple[str, int], int]:
        """Return the offset from which a log differs from the records that were read, by log.

        `positions` maps (topic, partition) to the (offset, leader epoch) up to which the partition
        was read. Only topic partitions that diverge are in the result, with -1 if the log does not
        have the epoch.
        """


class Planner:
    """Plans the batches of a pipeline over all its sources.

    `limits` is the maximum number of offsets in a batch by source. `epochs` are the leader epochs
    of the positions of the first batch, and `covered` the offsets that the most advanced table
    covers: if a log lost part of them, `next_batch` raises LogChangedError even while earlier
    records are read again. `connect` returns the client of a source. New topics and partitions join
    the next batch and are read from the beginning; topics that a source no longer selects are
    dropped. The first batch fixes where a bounded source ends, so later topics and partitions are
    not read.
    """

    def __init__(
        self,
        sources: Mapping[str, KafkaSource],
        limits: Mapping[str, int],
        epochs: Offsets,
        covered: Offsets,
        connect: Callable[[KafkaSource], EpochCluster] = OffsetClient,
    ) -> None:
        self._sources = sources
        self._limits = limits
        self._epochs = {
            (source, topic, partition): epoch
            for source, topics in epochs.items()
            for topic, partitions in topics.items()
            for partition, epoch in partitions.items()
        }
        self._covered = covered
        self._connect = connect
        self._clusters: dict[str, EpochCluster] = {}
        self._frozen: Offsets | None = None
        self._bounds: dict[str, TopicOffsets | None] = {}
        self.ends: Offsets | None = None

    @property
    def limit(self) -> int:
        """The maximum number of offsets in a batch: the sum of the limits of all sources.

        It is 2^62 if a source has no limit.
        """
        return min(_NO_LIMIT, sum(self._limits.get(name, _NO_LIMIT) for name in self._sources))

    def freeze(self) -> None:
        """Request the current log ends, beyond which later batches do not read.

        Raises SourceError if brokers do not respond or none of the listed topics exists.
        """
        self._frozen = {name: self._ask_ends(name) for name in self._sources}

    def close(self) -> None:
        """Close the connections."""
        self._clusters.clear()

    def next_batch(self, reached: Offsets, *, bounded: bool) -> BatchOffsets | None:
        """Return the batch that follows `reached`, or None if there is nothing to read.

        If topic partitions were added or dropped, a batch follows even if it has no records. The
        limits of the sources apply only if `bounded` is set.

        Raises LogChangedError if a log has lost or replaced records that were read; SourceError if
        brokers do not respond or none of the listed topics exists; ConfigError if the offsets at
        which a source ends name an unknown topic partition.
        """
        start: dict[str, TopicOffsets] = {}
        until: dict[str, TopicOffsets] = {}
        epochs: dict[str, TopicOffsets] = {}
        ends = self._frozen or {name: self._ask_ends(name) for name in self._sources}
        for name, source in self._sources.items():
            known = self._known(source, reached.get(name, {}), ends[name])
            start[name] = self._positions(name, known, ends[name])
            epochs[name] = self._checked_epochs(name, known, ends[name])
            stops = self._stops(source, start[name], ends[name])
            limit = self._limits.get(name) if bounded else None
            until[name] = cut({name: start[name]}, {name: stops}, limit)[name]
        self.ends = ends
        known_all = {name: reached.get(name, {}) for name in self._sources}
        if known_all == start == until:
            return None
        return BatchOffsets(start, until, epochs)

    def _cluster(self, name: str) -> EpochCluster:
        if name not in self._clusters:
            self._clusters[name] = self._connect(self._sources[name])
        return self._clusters[name]

    def _ask_ends(self, name: str) -> TopicOffsets:
        cluster, source = self._cluster(name), self._sources[name]
        partitions = cluster.list_topic_partitions()
        if not partitions and source.topic_pattern is None:
            raise SourceError(
                f"source {name}: none of its topics exists at {source.bootstrap}: "
                f"{', '.join(source.topics)}; create one or correct sources.{name}.topics"
            )
        return cluster.end_offsets(partitions)

    def _stops(self, source: KafkaSource, start: TopicOffsets, ends: TopicOffsets) -> TopicOffsets:
        """Return the offsets that the next batch must not exceed: log ends, or earlier bounds."""
        if source.name not in self._bounds:
            cluster = self._cluster(source.name)
            self._bounds[source.name] = last_positions(source, cluster, ends)
        bounds = self._bounds[source.name]
        if bounds is None:
            return ends
        return {
            topic: {
                partition: max(
                    start[topic][partition], min(end, bounds.get(topic, {}).get(partition, 0))
                )
                for partition, end in partitions.items()
            }
            for topic, partitions in ends.items()
        }

    def _known(
        self, source: KafkaSource, reached: TopicOffsets, ends: TopicOffsets
    ) -> TopicOffsets:
        """Return the reached positions of the topics that the source still selects.

        Raises LogChangedError if a partition no longer exists.
        """
        known = {topic: positions for topic, positions in reached.items() if source.selects(topic)}
        for topic, partitions in known.items():
            deleted = sorted(partitions.keys() - ends.get(topic, {}).keys())
            if deleted:
                raise LogChangedError(
                    f"source {source.name}: partitions {deleted} of topic {topic}, read up to "
                    f"{[partitions[partition] for partition in deleted]}, no longer exist"
                )
        return known

    def _positions(self, name: str, known: TopicOffsets, ends: TopicOffsets) -> TopicOffsets:
        """Return the offset at which reading each topic partition continues.

        A new topic partition begins with the first offset of its log. Raises LogChangedError if a
        log no longer has the offset.
        """
        asked = {
            topic: tuple(
                partition
                for partition, end in partitions.items()
                if known.get(topic, {}).get(partition) != end
            )
            for topic, partitions in ends.items()
        }
        begins = self._cluster(name).beginning_offsets(
            {topic: partitions for topic, partitions in asked.items() if partitions}
        )
        positions: dict[str, dict[int, int]] = {}
        for topic, partitions in ends.items():
            for partition, end in partitions.items():
                begin = begins.get(topic, {}).get(partition, end)
                position = known.get(topic, {}).get(partition, begin)
                if position > end or (position < begin and position != end):
                    raise LogChangedError(
                        f"source {name}: {topic}/{partition} continues at {position}, its log has "
                        f"{begin} to {end}"
                    )
                positions.setdefault(topic, {})[partition] = position
        return {topic: positions.get(topic, {}) for topic in ends}

    def _checked_epochs(self, name: str, known: TopicOffsets, ends: TopicOffsets) -> TopicOffsets:
        """Return the leader epochs of the end offsets, and remember them.

        Raises LogChangedError if the epoch of a partition has changed and the log of its new leader
        diverges from what was read.
        """
        cluster = self._cluster(name)
        epochs = cluster.leader_epochs(ends)
        changed: dict[tuple[str, int], tuple[int, int]] = {}
        for topic, partitions in epochs.items():
            for partition, epoch in partitions.items():
                before = self._epochs.get((name, topic, partition), epoch)
                if before not in (epoch, _UNKNOWN) and partition in known.get(topic, {}):
                    covered = self._covered.get(name, {}).get(topic, {}).get(partition, 0)
                    changed[topic, partition] = (max(covered, known[topic][partition]), before)
        diverged = cluster.divergences(changed) if changed else {}
        if diverged:
            (topic, partition), offset = min(diverged.items())
            others = f"other records from {offset} on" if offset >= 0 else "only other records"
            raise LogChangedError(
                f"source {name}: {topic}/{partition} was read up to "
                f"{changed[topic, partition][0]}, but its log has {others}: "
                "a new leader did not have the records that were read"
            )
        for topic, partitions in epochs.items():
            for partition, epoch in partitions.items():
                self._epochs[name, topic, partition] = epoch
        return epochs
