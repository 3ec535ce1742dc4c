"""What the next micro-batch covers: positions, what the brokers have, limits and policies."""

import logging
from collections.abc import Callable, Mapping

from ingestd.errors import OffsetLostError, SourceError
from ingestd.kafka.offsets import OffsetClient
from ingestd.kafka.properties import KafkaSource
from ingestd.kafka.ranges import BatchOffsets, OffsetRange, Offsets, TopicOffsets, cut
from ingestd.kafka.start_stop import Cluster, first_positions, last_positions

_LOG = logging.getLogger(__name__)
_NO_LIMIT = 1 << 62


class Planner:
    """Plans the batches of all sources of a pipeline.

    `limits` bounds the offsets of a batch by source; `seed` says where topic partitions begin
    that no batch has covered yet. Topics and partitions that appear join the next batch and are
    read from their beginning; what a source read before and selects no more is let go. Where a
    bounded source ends is settled by its first batch: what appears later is not of it.
    """

    def __init__(
        self,
        sources: Mapping[str, KafkaSource],
        limits: Mapping[str, int],
        seed: Offsets,
        connect: Callable[[KafkaSource], Cluster] = OffsetClient,
    ) -> None:
        self._sources = sources
        self._limits = limits
        self._seed = seed
        self._connect = connect
        self._clusters: dict[str, Cluster] = {}
        self._frozen: Offsets | None = None
        self._bounds: dict[str, TopicOffsets | None] = {}
        self._lost: list[OffsetRange] = []
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

        A batch without records is planned when topic partitions are met for the first time, so
        that their start is kept. `bounded` applies the limits of the sources.

        Raises OffsetLostError when the log has less than what was reached and the source's policy
        is to fail, SourceError when brokers do not answer or an explicit source has no topic,
        ConfigError when offsets are configured for what does not exist.
        """
        start: dict[str, TopicOffsets] = {}
        until: dict[str, TopicOffsets] = {}
        self._lost.clear()
        ends = self._frozen or {name: self._ask_ends(name) for name in self._sources}
        for name, source in self._sources.items():
            start[name] = self._positions(source, reached.get(name), ends[name])
            stops = self._stops(source, start[name], ends[name])
            limit = self._limits.get(name) if bounded else None
            until[name] = cut({name: start[name]}, {name: stops}, limit)[name]
        self.ends = ends
        known = {name: reached[name] for name in self._sources if name in reached}
        if known == start == until:
            return None
        return BatchOffsets(start, until, tuple(self._lost))

    def _cluster(self, name: str) -> Cluster:
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

    def _positions(
        self, source: KafkaSource, reached: TopicOffsets | None, ends: TopicOffsets
    ) -> TopicOffsets:
        """Where each topic partition goes on, every one within its log."""
        known = self._known(source, reached or {}, ends)
        if reached is None and source.name not in self._seed:
            known = first_positions(source, self._cluster(source.name), ends)
        asked = {
            topic: tuple(
                one for one, end in partitions.items() if known.get(topic, {}).get(one) != end
            )
            for topic, partitions in ends.items()
        }
        begins = self._cluster(source.name).beginning_offsets(
            {topic: partitions for topic, partitions in asked.items() if partitions}
        )
        return {
            topic: {
                one: self._position(
                    source,
                    (topic, one),
                    known.get(topic, {}).get(one),
                    (begins.get(topic, {}).get(one, end), end),
                )
                for one, end in partitions.items()
            }
            for topic, partitions in ends.items()
        }

    def _known(
        self, source: KafkaSource, reached: TopicOffsets, ends: TopicOffsets
    ) -> TopicOffsets:
        """Positions from earlier batches, else from the seed, of what still exists."""
        seed = self._seed.get(source.name, {})
        known = {
            topic: {**seed.get(topic, {}), **reached.get(topic, {})}
            for topic in {*seed, *reached}
            if source.selects(topic)
        }
        for topic, partitions in (reached or known).items():
            gone = sorted(partitions.keys() - ends.get(topic, {}).keys())
            gone = gone if source.selects(topic) else []
            if gone:
                self._on_lost(
                    source,
                    f"partitions {gone} of topic {topic}, read up to "
                    f"{[partitions[one] for one in gone]}, exist no more",
                )
        return known

    def _position(
        self, source: KafkaSource, place: tuple[str, int], known: int | None, log: tuple[int, int]
    ) -> int:
        first, end = log
        if known is None:
            return first
        if first <= known <= end:
            return known
        where = f"{place[0]}/{place[1]}"
        self._on_lost(source, f"{where} goes on at {known}, its log has {first} to {end}")
        position = end if source.on_offset_out_of_range == "latest" else first
        if known < position:
            self._lost.append(OffsetRange(source.name, *place, known, position))
        return position

    def _on_lost(self, source: KafkaSource, what: str) -> None:
        if source.on_offset_out_of_range == "fail":
            raise OffsetLostError(
                f"source {source.name}: {what}; was a topic deleted or made again, or its "
                "retention too short? Take the topic out of the source, or accept the loss with "
                f"sources.{source.name}.on-offset-out-of-range: earliest"
            )
        _LOG.warning(
            "offsets_lost",
            extra={"ctx": {"what": what, "policy": source.on_offset_out_of_range}},
        )
