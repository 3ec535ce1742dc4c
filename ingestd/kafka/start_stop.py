"""Where reading a source begins for the first time, and where it ends, by the source's modes.

The modes have the names of Flink's Kafka connector. They only speak of topic partitions that
neither a table nor a checkpoint knows: those go on where they are.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

from ingestd.errors import ConfigError, OffsetLostError
from ingestd.kafka.offsets import TopicPartitions
from ingestd.kafka.properties import KafkaSource
from ingestd.kafka.ranges import TopicOffsets


class Cluster(Protocol):
    """The questions that planning asks; `OffsetClient` answers them."""

    def list_topic_partitions(self) -> TopicPartitions:
        """Partitions of the topics that the source selects and that exist."""

    def beginning_offsets(self, partitions: TopicPartitions) -> TopicOffsets:
        """The first offsets in the log."""

    def end_offsets(self, partitions: TopicPartitions) -> TopicOffsets:
        """The last stable offsets."""

    def offsets_at(self, partitions: TopicPartitions, millis: int) -> TopicOffsets:
        """The first offsets that are not older, where there are any."""

    def group_offsets(self, group: str, partitions: TopicPartitions) -> TopicOffsets:
        """The offsets of a consumer group, where it has any."""


def first_positions(source: KafkaSource, cluster: Cluster, ends: TopicOffsets) -> TopicOffsets:
    """First offsets to read; a topic partition that is not in it begins where its log begins.

    `ends` are the ends of all logs. Raises ConfigError if offsets are given for what does not
    exist; OffsetLostError if the group has no offset of a topic partition and the source's policy
    is to fail.
    """
    return _FIRST[source.startup_mode](source, cluster, ends)


def last_positions(
    source: KafkaSource, cluster: Cluster, ends: TopicOffsets
) -> TopicOffsets | None:
    """Offsets at which reading ends, None if it does not; as of now, so to be asked once.

    What specific offsets leave out ends where its log ends now; they may lie beyond the end.
    """
    if not source.is_bounded:
        return None
    if source.bounded_mode == "timestamp":
        return _at_time(cluster, ends, source.bounded_timestamp or 0)
    _check_there(source, "bounded", source.bounded_offsets, ends)
    return _over(ends, source.bounded_offsets)


def _from_beginning(_: KafkaSource, __: Cluster, ___: TopicOffsets) -> TopicOffsets:
    return {}


def _from_end(_: KafkaSource, __: Cluster, ends: TopicOffsets) -> TopicOffsets:
    return ends


def _from_time(source: KafkaSource, cluster: Cluster, ends: TopicOffsets) -> TopicOffsets:
    return _at_time(cluster, ends, source.startup_timestamp or 0)


def _from_group(source: KafkaSource, cluster: Cluster, ends: TopicOffsets) -> TopicOffsets:
    found = cluster.group_offsets(source.group, _partitions(ends))
    begins = cluster.beginning_offsets(_partitions(ends))
    strange = [
        f"{topic}/{one}"
        for topic, partitions in ends.items()
        for one, end in partitions.items()
        if one not in found.get(topic, {}) and begins[topic][one] < end
    ]
    if strange and source.on_offset_out_of_range == "fail":
        raise OffsetLostError(
            f"source {source.name}: startup-mode is group-offsets, but group {source.group} "
            f"has no offset of {', '.join(strange)}; set kafka.group.id to the group that is "
            "meant, or say with on-offset-out-of-range: earliest, or latest, where these begin"
        )
    return _over(ends, found) if source.on_offset_out_of_range == "latest" else found


def _from_offsets(source: KafkaSource, _: Cluster, ends: TopicOffsets) -> TopicOffsets:
    _check_there(source, "startup", source.startup_offsets, ends)
    return source.startup_offsets


def _at_time(cluster: Cluster, ends: TopicOffsets, millis: int) -> TopicOffsets:
    """The first offsets that are not older; the end where all are, or where none is stable yet."""
    found = cluster.offsets_at(_partitions(ends), millis)
    return {
        topic: {one: min(end, found[topic].get(one, end)) for one, end in partitions.items()}
        for topic, partitions in ends.items()
    }


def _check_there(source: KafkaSource, key: str, named: TopicOffsets, ends: TopicOffsets) -> None:
    strange = [
        f"{topic}/{one}"
        for topic, partitions in named.items()
        for one in partitions
        if one not in ends.get(topic, {})
    ]
    if strange:
        raise ConfigError(
            f"sources.{source.name}: scan.{key}.specific-offsets names {', '.join(strange)}, which "
            f"{source.bootstrap} does not have"
        )


def _over(ends: TopicOffsets, given: TopicOffsets) -> Mapping[str, Mapping[int, int]]:
    return {topic: {**partitions, **given.get(topic, {})} for topic, partitions in ends.items()}


def _partitions(offsets: TopicOffsets) -> TopicPartitions:
    return {topic: tuple(partitions) for topic, partitions in offsets.items()}


_FIRST: Mapping[str, Callable[[KafkaSource, Cluster, TopicOffsets], TopicOffsets]] = {
    "earliest-offset": _from_beginning,
    "latest-offset": _from_end,
    "group-offsets": _from_group,
    "timestamp": _from_time,
    "specific-offsets": _from_offsets,
}
