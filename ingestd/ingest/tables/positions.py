"""Positions in Kafka logs, by log rather than by topic name; pure functions.

A log is one partition of one topic *incarnation*: its key is Kafka's topic id, or `CLUSTER/TOPIC`
if brokers have no topic ids. A topic that is deleted and created again under the same name is
another log, with its own offsets.
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
    """The first offset of a log that is not covered.

    `epoch` is the leader epoch under which the log reached that offset; `fingerprint` identifies
    the last record before it, see `fingerprint_at`. -1 if unknown.
    """

    offset: int
    epoch: int = UNKNOWN
    fingerprint: int = UNKNOWN


Vector: TypeAlias = Mapping[str, Mapping[int, Position]]
"""Topic key -> partition -> position. A missing log was created after the vector."""
LogOffsets: TypeAlias = Mapping[str, Mapping[int, int]]
"""Topic key -> partition -> offset."""


@dataclass(frozen=True, slots=True)
class TopicName:
    """The name of a topic when it was read, its source, and the id of its cluster."""

    topic: str
    source: str
    cluster: str = ""


TopicKeys: TypeAlias = Mapping[tuple[str, str], str]
"""(source, topic) -> topic key, for existing topics."""


class Memo:
    """Values derived from a vector, cached for all tables that share it until the next batch."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], tuple[object, object, Any]] = {}

    def of(self, vector: Vector, purpose: object, make: Callable[[], _T]) -> _T:
        """Return `make()`, cached for this vector object and purpose."""
        key = (id(vector), id(purpose))
        if key not in self._known:
            # The cache keeps both objects alive, since their ids could otherwise be reused.
            self._known[key] = (vector, purpose, make())
        found: _T = self._known[key][2]
        return found

    def clear(self) -> None:
        """Clear the cache at the end of the batch."""
        self._known.clear()


def fingerprint_at(offset: int, record_offset: int, checksum: int) -> int:
    """Return the fingerprint of a position: the distance to its last record, and a checksum.

    Transaction markers and compaction leave offsets without a record. The distance (1 to 255) is in
    bits 24 to 31, the lower bits contain the record's checksum. UNKNOWN if the record is further
    away: the last record before the position may change then.
    """
    distance = offset - record_offset
    if not 1 <= distance <= _MAX_DISTANCE:
        return UNKNOWN
    return distance << _CHECKSUM_BITS | checksum & _CHECKSUM_MASK


def record_offset_of(position: Position) -> int:
    """Return the offset of the record that a known fingerprint of a position refers to."""
    return position.offset - (position.fingerprint >> _CHECKSUM_BITS)


def offset_in(vector: Vector, key: str, partition: int, default: int = 0) -> int:
    """Return the offset of a log in a vector, `default` if it is missing."""
    found = vector.get(key, {}).get(partition)
    return default if found is None else found.offset


def furthest(one: Vector, other: Vector) -> Vector:
    """Return the larger position of each log; `one` itself if `other` is nowhere larger."""
    result: dict[str, Mapping[int, Position]] = {}
    for key, partitions in other.items():
        known = one.get(key, {})
        prefetch = {
            partition: position
            for partition, position in partitions.items()
            if partition not in known or known[partition].offset < position.offset
        }
        if prefetch:
            result[key] = {**known, **prefetch}
    return {**one, **result} if result else one


def shared_if_equal(vector: Vector, shared: Vector) -> Vector:
    """Return `shared` for a vector with equal offsets, so that equal vectors are one object."""
    return shared if vector is shared or offsets_of(vector) == offsets_of(shared) else vector


def replaced(vector: Vector, changes: Vector) -> Vector:
    """Return a vector with the positions of `changes`, including smaller ones."""
    return {**vector, **{key: {**vector.get(key, {}), **ones} for key, ones in changes.items()}}


def lowest(vectors: Iterable[Vector], origin: LogOffsets) -> Vector:
    """Return the smallest position of each log over all vectors.

    A vector that lacks a log has the position of the log's origin, or offset 0.
    """
    distinct = list({id(vector): vector for vector in vectors}.values())
    logs = {(key, partition) for one in distinct for key in one for partition in one[key]}
    least: dict[str, dict[int, Position]] = {}
    for key, partition in logs:
        first = Position(origin.get(key, {}).get(partition, 0))
        positions = (one.get(key, {}).get(partition, first) for one in distinct)
        least.setdefault(key, {})[partition] = min(positions)
    return least


def offsets_of(vector: Vector) -> dict[str, dict[int, int]]:
    """Return the offsets of a vector without epochs and fingerprints."""
    return {
        key: {partition: position.offset for partition, position in ones.items()}
        for key, ones in vector.items()
    }


def by_name(vector: Vector, keys: TopicKeys) -> dict[str, dict[str, dict[int, int]]]:
    """Return the offsets of a vector by source, topic and partition, for the topics in `keys`."""
    named: dict[str, dict[str, dict[int, int]]] = {}
    for (source, topic), key in keys.items():
        if key in vector:
            ones = {partition: position.offset for partition, position in vector[key].items()}
            named.setdefault(source, {})[topic] = ones
    return named
