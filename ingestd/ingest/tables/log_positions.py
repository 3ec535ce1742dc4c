"""Positions in Kafka logs, identified by topic key instead of topic name; pure functions.

A log is a partition of one topic *incarnation*. The topic key is Kafka's topic id, or
`CLUSTER/TOPIC` if brokers have no topic ids. A topic that is deleted and created again with the
same name has other logs, with their own offsets.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, TypeVar

UNKNOWN = -1
_MAX_DISTANCE = 255
_CHECKSUM_BITS = 24
_CHECKSUM_MASK = (1 << _CHECKSUM_BITS) - 1

_T = TypeVar("_T")


class Position(NamedTuple):
    """A position in a log: the first offset that is not covered.

    `epoch` is the leader epoch in which the log reached that offset, and `fingerprint` identifies
    the last record before the offset by its distance and checksum. Each of them is -1 if unknown.
    """

    offset: int
    epoch: int = UNKNOWN
    fingerprint: int = UNKNOWN


Vector: TypeAlias = Mapping[str, Mapping[int, Position]]
"""Topic key -> partition -> position. A missing log was created later."""
LogOffsets: TypeAlias = Mapping[str, Mapping[int, int]]
"""Topic key -> partition -> offset."""


@dataclass(frozen=True, slots=True)
class TopicName:
    """The name of a topic at the time it was read, its source, and the id of its cluster."""

    topic: str
    source: str
    cluster: str = ""


TopicKeys: TypeAlias = Mapping[tuple[str, str], str]
"""(source, topic) -> topic key, for existing topics."""


class VectorCache:
    """A cache of values derived from vectors (positions by log).

    Tables with the same vector object share the derived value.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], tuple[object, object, Any]] = {}

    def of(self, vector: Vector, purpose: object, make: Callable[[], _T]) -> _T:
        """Return the value that is cached for the objects `vector` and `purpose`.

        If no value is cached, `make()` is called and its result cached. Both objects are compared
        by identity.
        """
        key = (id(vector), id(purpose))
        if key not in self._known:
            # The cache keeps both objects alive, since their ids could otherwise be reused.
            self._known[key] = (vector, purpose, make())
        value: _T = self._known[key][2]
        return value

    def clear(self) -> None:
        """Remove all values."""
        self._known.clear()


def fingerprint_at(offset: int, record_offset: int, checksum: int) -> int:
    """Return the fingerprint of a position: distance and checksum of the last record before it.

    The distance can exceed 1, because transaction markers and compaction leave offsets without a
    record. It is stored in bits 24 to 31, and the lower bits contain the lowest 24 bits of the
    record's checksum. Returns -1 (unknown) if the distance is not between 1 and 255.
    """
    distance = offset - record_offset
    if not 1 <= distance <= _MAX_DISTANCE:
        return UNKNOWN
    return distance << _CHECKSUM_BITS | checksum & _CHECKSUM_MASK


def record_offset_of(position: Position) -> int:
    """Return the offset of the record that the fingerprint of a position identifies.

    The fingerprint must be known.
    """
    return position.offset - (position.fingerprint >> _CHECKSUM_BITS)


def offset_in(vector: Vector, topic_key: str, partition: int, default: int = 0) -> int:
    """Return the first offset of a log that a vector does not cover; `default` without the log."""
    position = vector.get(topic_key, {}).get(partition)
    return default if position is None else position.offset


def furthest(vector: Vector, other: Vector) -> Vector:
    """Merge two vectors of log positions: the position with the larger offset of each log.

    If the offsets of a log are equal, it is the position in `vector`. Returns the object `vector`
    if no offset in `other` is larger and no log is added.
    """
    result: dict[str, Mapping[int, Position]] = {}
    for key, partitions in other.items():
        known = vector.get(key, {})
        ahead = {
            partition: position
            for partition, position in partitions.items()
            if partition not in known or known[partition].offset < position.offset
        }
        if ahead:
            result[key] = {**known, **ahead}
    return {**vector, **result} if result else vector


def shared_if_equal(vector: Vector, shared: Vector) -> Vector:
    """Return `shared` if it has the same offsets as `vector`, else `vector`.

    Leader epochs and fingerprints are not compared. Tables with equal vectors then share one
    object.
    """
    return shared if vector is shared or offsets_of(vector) == offsets_of(shared) else vector


def replaced(vector: Vector, changes: Vector) -> Vector:
    """Return a vector with the positions of `changes` set, even if these are smaller."""
    return {
        **vector,
        **{key: {**vector.get(key, {}), **positions} for key, positions in changes.items()},
    }


def lowest(vectors: Iterable[Vector], origin: LogOffsets) -> Vector:
    """Merge vectors of log positions: the smallest position of each log.

    For a log that a vector lacks, the vector's position is the origin of the log, or offset 0.
    """
    distinct = list({id(vector): vector for vector in vectors}.values())
    logs = {(key, partition) for vector in distinct for key in vector for partition in vector[key]}
    least: dict[str, dict[int, Position]] = {}
    for key, partition in logs:
        first = Position(origin.get(key, {}).get(partition, 0))
        positions = (vector.get(key, {}).get(partition, first) for vector in distinct)
        least.setdefault(key, {})[partition] = min(positions)
    return least


def offsets_of(vector: Vector) -> dict[str, dict[int, int]]:
    """Return the offsets of a vector by topic key and partition, without the epochs."""
    return {
        key: {partition: position.offset for partition, position in positions.items()}
        for key, positions in vector.items()
    }


def by_name(vector: Vector, keys: TopicKeys) -> dict[str, dict[str, dict[int, int]]]:
    """Return the offsets of a vector by source, topic and partition.

    `keys` has the topic keys of the topics to include, by source and topic.
    """
    named: dict[str, dict[str, dict[int, int]]] = {}
    for (source, topic), key in keys.items():
        if key in vector:
            offsets = {partition: position.offset for partition, position in vector[key].items()}
            named.setdefault(source, {})[topic] = offsets
    return named
