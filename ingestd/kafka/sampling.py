"""Choose sample offsets of topics: the oldest and the newest of each partition."""

from ingestd.kafka.ranges import OffsetRange, TopicOffsets, cut


def sample_ranges(
    source: str, begin: TopicOffsets, end: TopicOffsets, limit: int
) -> list[OffsetRange]:
    """Return ranges of at most `limit` offsets a topic, ordered by topic, partition and offset.

    The partitions of a topic share the limit fairly. A share smaller than its log is taken half
    from the beginning, where a pipeline starts, and half from the end, where messages have their
    current structure. Offsets without a record count too. `limit` is at least 1.
    """
    ranges: list[OffsetRange] = []
    for topic in sorted(end):
        start, stop = {source: {topic: begin[topic]}}, {source: {topic: end[topic]}}
        shares = cut(start, stop, limit)[source][topic]
        for partition, until in sorted(end[topic].items()):
            first = begin[topic][partition]
            share = shares.get(partition, first) - first
            oldest = share if share == until - first else (share + 1) // 2
            newest = share - oldest
            for low, high in ((first, first + oldest), (until - newest, until)):
                if high > low:
                    ranges.append(OffsetRange(source, topic, partition, low, high))
    return ranges
