"""Check by the first records of a topic in a run whether its data format is correct.

With a wrong data format, every record of a topic would become a dead letter, and its offsets would
count as read. Such a topic is set aside: its position does not change.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ingestd.cdc.format_guess import Guess, best_guess
from ingestd.ingest.values.counts import Counts
from ingestd.kafka.ranges import BatchOffsets, Offsets, SourcePartition

Topic = tuple[str, str]
"""A topic: source and name."""


@dataclass(frozen=True, slots=True)
class TrialLimits:
    """A topic is set aside if at least `ratio` of its first `records` or more are rejected.

    `records` 0 disables the check.
    """

    records: int = 100
    ratio: float = 0.95


@dataclass(frozen=True, slots=True)
class SetAside:
    """A topic that is no longer read in this run, and the reason.

    `offsets` are those at which its partitions are read once the cause is corrected; `guess` is
    the data format that its messages seem to have.
    """

    source: str
    topic: str
    records: int
    rejected: int
    guess: Guess
    offsets: Mapping[int, int]

    def message(self, data_format: str) -> str:
        """Return the cause and the resolution; `data_format` is that of the source."""
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
            "start again: it is read from where it was"
        )


class TopicTrial:
    """Counts the first records of each topic of one run, until there are enough for a verdict."""

    def __init__(self, limits: TrialLimits) -> None:
        self._limits = limits
        self._records: Counter[Topic] = Counter()
        self._rejected: Counter[Topic] = Counter()
        self._looks: dict[Topic, Counter[str]] = {}
        self._passed: set[Topic] = set()

    def judge(self, counts: Counts) -> list[SetAside]:
        """Add an uncommitted batch; return the topics to set aside.

        Their `offsets` are empty.
        """
        read: Counter[Topic] = Counter()
        for place, records in counts.records.items():
            read[place.source, place.topic] += records
        for (source, name, look), seen in counts.looks.items():
            self._looks.setdefault((source, name), Counter())[look] += seen
        found = []
        for topic in sorted(read.keys() - self._passed):
            self._records[topic] += read[topic]
            self._rejected[topic] += counts.unusable[topic]
            records, rejected = self._records[topic], self._rejected[topic]
            if not self._limits.records or records < self._limits.records:
                continue
            if rejected >= self._limits.ratio * records:
                guess = best_guess(self._looks.get(topic, {}))
                found.append(SetAside(*topic, records, rejected, guess, {}))
            self._passed.add(topic)  # or set aside: in both cases the check is finished
        return found


def without_topics(offsets: Offsets, topics: Collection[Topic]) -> Offsets:
    """Return the offsets of all other topics."""
    return {
        source: {topic: ones for topic, ones in by_topic.items() if (source, topic) not in topics}
        for source, by_topic in offsets.items()
    }


def batch_without(
    batch: BatchOffsets, topics: Collection[Topic], ends: Mapping[SourcePartition, int]
) -> BatchOffsets:
    """Return a batch, and the one that follows it, without some topics.

    It ends at `ends` in their topic partitions, and leaves out partitions that it would start
    beyond them.
    """
    if not (topics or ends):
        return batch
    following = None if batch.following is None else batch_without(batch.following, topics, ends)
    start: dict[str, dict[str, dict[int, int]]] = {}
    until: dict[str, dict[str, dict[int, int]]] = {}
    for range_ in batch.all_ranges():
        end = ends.get((range_.source, range_.topic, range_.partition), range_.until)
        if (range_.source, range_.topic) in topics or range_.start > end:
            continue
        start.setdefault(range_.source, {}).setdefault(range_.topic, {})[range_.partition] = (
            range_.start
        )
        stop = min(range_.until, end)
        until.setdefault(range_.source, {}).setdefault(range_.topic, {})[range_.partition] = stop
    return BatchOffsets(start, until, batch.epochs, following)
