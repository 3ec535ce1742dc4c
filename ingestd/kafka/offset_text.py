"""Parse offsets of topic partitions from configuration texts and maps.

`shop.orders:0:42;shop.orders:1:300` sets an offset for each topic partition. Flink's form for a
single topic, `partition:0,offset:42;partition:1,offset:300`, is accepted too.
"""

import re
from collections.abc import Mapping, Sequence

from ingestd.errors import ConfigError
from ingestd.kafka.offset_ranges import TopicOffsets

_PLACE = re.compile(r"(?P<topic>[A-Za-z0-9._-]+)[:/](?P<partition>\d+):(?P<offset>\d+)")
_OF_ONE_TOPIC = re.compile(r"partition:(?P<partition>\d+),offset:(?P<offset>\d+)")
_FORM = "write TOPIC:PARTITION:OFFSET with ';' between, such as shop.orders:0:42;shop.orders:1:7"


def parse_offsets(text: str, topics: Sequence[str] = ()) -> TopicOffsets:
    """Parse offsets by topic and partition; `topics` are the topics that the source lists.

    The text is `TOPIC:PARTITION:OFFSET;...`, or for a single topic in Flink's form,
    `partition:0,offset:42;...`. Raises ConfigError for an invalid or empty text, for a topic
    partition that occurs twice, and for Flink's form unless the source lists a single topic.
    """
    offsets: dict[str, dict[int, int]] = {}
    for position in filter(None, (word.strip() for word in text.split(";"))):
        topic, partition, offset = _parsed(position, topics)
        if partition in offsets.setdefault(topic, {}):
            raise ConfigError(f"'{text}' names partition {partition} of {topic} twice")
        offsets[topic][partition] = offset
    if not offsets:
        raise ConfigError(f"'{text}' contains no offset: {_FORM}")
    return offsets


def _parsed(position: str, topics: Sequence[str]) -> tuple[str, int, int]:
    match = _PLACE.fullmatch(position)
    if match:
        return match["topic"], int(match["partition"]), int(match["offset"])
    match = _OF_ONE_TOPIC.fullmatch(position.replace(" ", ""))
    if match is None:
        raise ConfigError(f"'{position}' is not a position in a topic: {_FORM}")
    if len(topics) != 1:
        raise ConfigError(f"'{position}' does not name its topic: {_FORM}")
    return topics[0], int(match["partition"]), int(match["offset"])


def offsets_text(document: Mapping[str, Mapping[str, object]]) -> str:
    """Return a map topic -> partition -> offset as text that `parse_offsets` accepts."""
    return ";".join(
        f"{topic}:{partition}:{offset}"
        for topic, partitions in document.items()
        for partition, offset in partitions.items()
    )
