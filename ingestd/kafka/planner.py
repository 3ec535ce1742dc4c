"""What the next micro-batch covers: positions, what the brokers have, and limits.

Where the pipeline goes on was settled before, by what the tables cover. A log that has lost or
replaced what was reached ends the query with LogChangedError, and the next start judges it.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

from ingestd.errors import LogChangedError, SourceError
from ingestd.kafka.offsets import OffsetClient
from ingestd.kafka.properties import KafkaSource
from ingestd.kafka.ranges import BatchOffsets, Offsets, TopicOffsets, cut
from ingestd.kafka.start_stop import Cluster, last_positions

_NO_LIMIT = 1 << 62
_UNKNOWN = -1


class EpochCluster(Cluster, Protocol):
    """The questions that planning asks; `OffsetClient` answers them."""

    def leader_epochs(self, ends: TopicOffsets) -> TopicOffsets:
        """The leader epochs that were reported with these end offsets, -1 where none was."""

    def divergences(
        self, positions: Mapping[tuple[str, int], tuple[int, int]]
    ) -> Mapping[tuple[str, int], int]:
        """Where logs diverge from (offset, leader epoch) pairs that were reached, if they do."""


class Planner:
    """Plans the batches of all sources of a pipeline.

    `limits` bounds the offsets of a batch by source; `epochs` are the leader epochs under which
    the positions of the first batch were reached, and `covered` how far the furthest table was
    then: a log that lost part of that ends the query, also while what comes before is read again.
    Topics and partitions that appear join the next batch and are read from their beginning; what
    a source selects no more is let go. Where a bounded source ends is settled by its first batch:
    what appears later is not of it.
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
        """The bound of a batch over all sources; very large when one of them has none."""
        return min(_NO_LIMIT, sum(self._limits.get(name, _NO_LIMIT) for name in self._sources))

    def freeze(self) -> None:
        """Plan nothing beyond what the topics hold now."""
        self._frozen = {name: self._ask_ends(name) for name in self._sources}

    def close(self) -> None:
        """Let go of the clusters."""
        self._clusters.clear()

    def next_batch(self, reached: Offsets, *, bounded: bool) -> BatchOffsets | None:
        """The batch that follows on `reached`, None when there is nothing new.

        `bounded` applies the limits of the sources.

        Raises LogChangedError when a log has less than what was reached, or other records;
        SourceError when brokers do not answer or an explicit source has no topic; ConfigError when
        offsets are configured for what does not exist.
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
        """How far a batch may go: to the ends, or to where the source ends if that is before."""
        if source.name not in self._bounds:
            cluster = self._cluster(source.name)
            self._bounds[source.name] = last_positions(source, cluster, ends)
        bounds = self._bounds[source.name]
        if bounds is None:
            return ends
        return {
            topic: {
                one: max(start[topic][one], min(end, bounds.get(topic, {}).get(one, 0)))
                for one, end in partitions.items()
            }
            for topic, partitions in ends.items()
        }

    def _known(
        self, source: KafkaSource, reached: TopicOffsets, ends: TopicOffsets
    ) -> TopicOffsets:
        """Positions of what the source still selects; LogChangedError if some of it is gone."""
        known = {topic: ones for topic, ones in reached.items() if source.selects(topic)}
        for topic, partitions in known.items():
            gone = sorted(partitions.keys() - ends.get(topic, {}).keys())
            if gone:
                raise LogChangedError(
                    f"source {source.name}: partitions {gone} of topic {topic}, read up to "
                    f"{[partitions[one] for one in gone]}, exist no more"
                )
        return known

    def _positions(self, name: str, known: TopicOffsets, ends: TopicOffsets) -> TopicOffsets:
        """Where each topic partition goes on, every one within its log."""
        asked = {
            topic: tuple(
                one for one, end in partitions.items() if known.get(topic, {}).get(one) != end
            )
            for topic, partitions in ends.items()
        }
        begins = self._cluster(name).beginning_offsets(
            {topic: partitions for topic, partitions in asked.items() if partitions}
        )
        positions: dict[str, dict[int, int]] = {}
        for topic, partitions in ends.items():
            for one, end in partitions.items():
                begin = begins.get(topic, {}).get(one, end)
                position = known.get(topic, {}).get(one, begin)
                if position > end or (position < begin and position != end):
                    raise LogChangedError(
                        f"source {name}: {topic}/{one} goes on at {position}, its log has {begin} "
                        f"to {end}"
                    )
                positions.setdefault(topic, {})[one] = position
        return {topic: positions.get(topic, {}) for topic in ends}

    def _checked_epochs(self, name: str, known: TopicOffsets, ends: TopicOffsets) -> TopicOffsets:
        """The leader epochs of the ends; LogChangedError if a new leader has another log."""
        cluster = self._cluster(name)
        epochs = cluster.leader_epochs(ends)
        changed: dict[tuple[str, int], tuple[int, int]] = {}
        for topic, partitions in epochs.items():
            for one, epoch in partitions.items():
                before = self._epochs.get((name, topic, one), epoch)
                if before not in (epoch, _UNKNOWN) and one in known.get(topic, {}):
                    covered = self._covered.get(name, {}).get(topic, {}).get(one, 0)
                    changed[topic, one] = (max(covered, known[topic][one]), before)
        diverged = cluster.divergences(changed) if changed else {}
        if diverged:
            (topic, one), offset = min(diverged.items())
            raise LogChangedError(
                f"source {name}: {topic}/{one} was read up to {changed[topic, one][0]}, but its "
                f"log has other records from {offset} on: a new leader did not have them"
            )
        for topic, partitions in epochs.items():
            for one, epoch in partitions.items():
                self._epochs[name, topic, one] = epoch
        return epochs
