"""What the brokers say of the logs of a pipeline at its start, by topic key."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ingestd.errors import ConfigError, LogChangedError
from ingestd.ingest.tables.positions import UNKNOWN, TopicName
from ingestd.kafka.ranges import OffsetRange, TopicOffsets
from ingestd.kafka.start_stop import Cluster

Place = tuple[str, int]
"""A topic key and a partition."""


class LogCluster(Cluster, Protocol):
    """The questions that a start asks of one source's brokers; `OffsetClient` answers them.

    All raise SourceError when the brokers do not answer.
    """

    def topic_keys(self, topics: list[str]) -> Mapping[str, str]:
        """The keys of those topics that exist: the topic id, or `CLUSTER/TOPIC` without ids."""

    def cluster_id(self) -> str:
        """The id of the cluster."""

    def leader_epochs(self, ends: TopicOffsets) -> TopicOffsets:
        """The leader epoch of each partition, -1 where the broker does not tell it."""

    def divergences(
        self, positions: Mapping[tuple[str, int], tuple[int, int]]
    ) -> Mapping[tuple[str, int], int]:
        """Where logs diverge from what was read: by (topic, partition), of those that do.

        `positions` are (offset, leader epoch) pairs that were reached.
        """

    def fingerprints(self, offsets: Mapping[tuple[str, int], int]) -> Mapping[tuple[str, int], int]:
        """Checksums of the last records before some offsets, where the log still has them."""

    def close(self) -> None:
        """Let go of the brokers."""


@dataclass(frozen=True, slots=True)
class LogState:
    """One log as it is now: its first offset, the offset after its last, the leader epoch."""

    begin: int
    end: int
    epoch: int = UNKNOWN


@dataclass(frozen=True, slots=True)
class Logs:
    """The logs of all sources: states by place, keys by (source, topic), names by key."""

    states: Mapping[Place, LogState] = field(default_factory=dict)
    keys: Mapping[tuple[str, str], str] = field(default_factory=dict)
    names: Mapping[str, TopicName] = field(default_factory=dict)


def ask_logs(clusters: Mapping[str, LogCluster]) -> Logs:
    """Ask the brokers of all sources, given by name.

    Raises SourceError when they do not answer, ConfigError for a topic that two sources read,
    LogChangedError for a topic that is created again while its offsets are asked for.
    """
    states: dict[Place, LogState] = {}
    keys: dict[tuple[str, str], str] = {}
    names: dict[str, TopicName] = {}
    for source, cluster in clusters.items():
        partitions = cluster.list_topic_partitions()
        found = cluster.topic_keys(sorted(partitions))
        there = {topic: ones for topic, ones in partitions.items() if topic in found}
        cluster_id = cluster.cluster_id() if there else ""
        ends = cluster.end_offsets(there)
        begins, epochs = cluster.beginning_offsets(there), cluster.leader_epochs(ends)
        _check_unchanged(source, cluster, {topic: found[topic] for topic in there})
        for topic, ones in there.items():
            key = found[topic]
            if key in names:
                raise ConfigError(
                    f"topic {topic} is read by source {names[key].source} and by source {source}: "
                    "each of its records would count twice; let one of them leave it out with "
                    "topic-exclude"
                )
            keys[source, topic] = key
            names[key] = TopicName(topic, source, cluster_id)
            for one in ones:
                epoch = epochs.get(topic, {}).get(one, UNKNOWN)
                states[key, one] = LogState(begins[topic][one], ends[topic][one], epoch)
    return Logs(states, keys, names)


def _check_unchanged(source: str, cluster: LogCluster, keys: Mapping[str, str]) -> None:
    """Raise if offsets may be those of another topic than the keys."""
    now = cluster.topic_keys(sorted(keys)) if keys else {}
    changed = sorted(topic for topic, key in keys.items() if now.get(topic) != key)
    if changed:
        raise LogChangedError(
            f"source {source}: topics {', '.join(changed)} were deleted or created again while "
            "their offsets were asked for"
        )


class TopicKeyCheck:
    """The keys of the topics that batches read: learnt when a topic is first read, then checked.

    Offsets mean other records once a topic was deleted and created again, so no batch may begin
    under one key and be committed under another.
    """

    def __init__(
        self, keys: Mapping[tuple[str, str], str], clusters: Mapping[str, LogCluster]
    ) -> None:
        self._clusters = clusters
        self.keys = dict(keys)

    def learn(self, ranges: list[OffsetRange]) -> None:
        """Ask for the keys of topics that no batch has read before."""
        new = {(one.source, one.topic) for one in ranges} - self.keys.keys()
        for place, key in self._ask(new).items():
            self.keys[place] = key
        gone = new - self.keys.keys()
        if gone:
            source, topic = min(gone)
            raise LogChangedError(f"source {source}: topic {topic} was deleted just now")

    def check(self, ranges: list[OffsetRange]) -> None:
        """Raise LogChangedError if a topic that was read is another one by now."""
        for place, key in self._ask({(one.source, one.topic) for one in ranges}).items():
            if self.keys[place] != key:
                raise LogChangedError(
                    f"source {place[0]}: topic {place[1]} was deleted and created again while it "
                    f"was read (its key was {self.keys[place]}, now it is {key}); nothing of the "
                    "batch is written"
                )

    def _ask(self, places: set[tuple[str, str]]) -> dict[tuple[str, str], str]:
        by_source: dict[str, list[str]] = {}
        for source, topic in sorted(places):
            by_source.setdefault(source, []).append(topic)
        return {
            (source, topic): key
            for source, topics in by_source.items()
            for topic, key in self._clusters[source].topic_keys(topics).items()
        }
