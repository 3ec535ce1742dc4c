"""Detect topics with a wrong data format from the first records of each topic in a run.

With a wrong data format, every record of a topic would become a dead letter, and its offsets would
be committed as covered. Such a topic is set aside: it is not read in this run, and its offsets do
not change.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ingestd.cdc.format_guess import Guess, best_guess
from ingestd.ingest.values.counts import Counts
from ingestd.kafka.offset_ranges import BatchOffsets, Offsets, SourcePartition

Topic = tuple[str, str]
"""A topic as (source, topic name)."""


@dataclass(frozen=True, slots=True)
class WrongFormatThreshold:
    """The condition for setting a topic aside, checked after its first `records` records.

    A topic is set aside if at least the fraction `ratio` of these records is rejected for reasons
    that may indicate a wrong data format. The check is disabled if `records` is 0.
    """

    records: int = 100
    ratio: float = 0.95


@dataclass(frozen=True, slots=True)
class SetAside:
    """A topic that is no longer read in this run, and the reason.

    `rejected` of the first `records` records of the topic were rejected. `offsets` maps its
    partitions to the offsets at which a later run continues. `guess` is the most likely data format
    of its messages.
    """

    source: str
    topic: str
    records: int
    rejected: int
    guess: Guess
    offsets: Mapping[int, int]

    def message(self, data_format: str) -> str:
        """Return a message with cause and solution; `data_format` is the configured format."""
        like, same = self.guess.data_format, self.guess.data_format == data_format
        looks = "" if like is None or same else f", which look like {like}"
        way_out = (
            f"correct sources.{self.source}.format"
            if looks
            else "see the rejected records in the log, and correct configuration or producer"
        )
        return (
            f"topic {self.topic} of source {self.source} is set aside: {self.rejected} of its "
            f"first {self.records} records{looks} cannot be used as {data_format}; {way_out}, and "
            "restart the pipeline: the topic is then read from the same offsets"
        )


class WrongFormatDetector:
    """Counts the first records of each topic in a run, until their data format can be judged."""

    def __init__(self, limits: WrongFormatThreshold) -> None:
        self._limits = limits
        self._records: Counter[Topic] = Counter()
        self._rejected: Counter[Topic] = Counter()
        self._looks: dict[Topic, Counter[str]] = {}
        self._passed: set[Topic] = set()

    def judge(self, counts: Counts) -> list[SetAside]:
        """Count the records of a batch that is not committed yet; return the topics to set aside.

        In the result, `offsets` are empty.
        """
        read: Counter[Topic] = Counter()
        for topic_partition, records in counts.records.items():
            read[topic_partition.source, topic_partition.topic] += records
        for (source, name, look), count in counts.looks.items():
            self._looks.setdefault((source, name), Counter())[look] += count
        set_aside = []
        for topic in sorted(read.keys() - self._passed):
            self._records[topic] += read[topic]
            self._rejected[topic] += counts.unusable[topic]
            records, rejected = self._records[topic], self._rejected[topic]
            if not self._limits.records or records < self._limits.records:
                continue
            if rejected >= self._limits.ratio * records:
                guess = best_guess(self._looks.get(topic, {}))
                set_aside.append(SetAside(*topic, records, rejected, guess, {}))
            self._passed.add(topic)  # or set aside: in both cases the check is finished
        return set_aside


def without_topics(offsets: Offsets, topics: Collection[Topic]) -> Offsets:
    """Return the offsets of all topics except `topics`, which are (source, topic) pairs."""
    return {
        source: {
            topic: partitions
            for topic, partitions in by_topic.items()
            if (source, topic) not in topics
        }
        for source, by_topic in offsets.items()
    }


def batch_without(
    batch: BatchOffsets, topics: Collection[Topic], ends: Mapping[SourcePartition, int]
) -> BatchOffsets:
    """Return a batch without `topics`, and with ranges that end at `ends` at the latest.

    `ends` maps topic partitions to offsets; ranges that start after this offset are omitted. The
    planned next batch, `batch.following`, is changed in the same way.
    """
    if not (topics or ends):
        return batch
    following = None if batch.following is None else batch_without(batch.following, topics, ends)
    start: dict[str, dict[str, dict[int, int]]] = {}
    until: dict[str, dict[str, dict[int, int]]] = {}
    for range_ in batch.all_ranges():
        end = ends.get(range_.source_partition, range_.until)
        if (range_.source, range_.topic) in topics or range_.start > end:
            continue
        start.setdefault(range_.source, {}).setdefault(range_.topic, {})[range_.partition] = (
            range_.start
        )
        stop = min(range_.until, end)
        until.setdefault(range_.source, {}).setdefault(range_.topic, {})[range_.partition] = stop
    return BatchOffsets(start, until, batch.epochs, following)
