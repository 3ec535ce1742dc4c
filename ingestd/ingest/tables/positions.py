"""Positions in Kafka logs, by log rather than by name; pure.

A log is one partition of one topic *incarnation*: its key is Kafka's topic id, or `CLUSTER/TOPIC`
where brokers have no topic ids. A topic that is deleted and created again under the same name is
another log, and so are its offsets.
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
    the last record before it, as `fingerprint_at` makes it. -1 where either is unknown.
    """

    offset: int
    epoch: int = UNKNOWN
    fingerprint: int = UNKNOWN


Vector: TypeAlias = Mapping[str, Mapping[int, Position]]
"""Topic key -> partition -> position. An absent log was created after the vector was made."""
LogOffsets: TypeAlias = Mapping[str, Mapping[int, int]]
"""Topic key -> partition -> offset."""


@dataclass(frozen=True, slots=True)
class TopicName:
    """What a topic was called when it was read: its name, the source, the cluster's id."""

    topic: str
    source: str
    cluster: str = ""


TopicKeys: TypeAlias = Mapping[tuple[str, str], str]
"""(source, topic) -> topic key, of the topics that exist now."""


class Memo:
    """What is worked out of a vector once for all tables that share it, until the next batch."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], tuple[object, object, Any]] = {}

    def of(self, vector: Vector, purpose: object, make: Callable[[], _T]) -> _T:
        """Return `make()`, or what it made before for this very vector and purpose."""
        key = (id(vector), id(purpose))
        if key not in self._known:
            # Both are kept with it, or their ids could be those of other objects one day.
            self._known[key] = (vector, purpose, make())
        found: _T = self._known[key][2]
        return found

    def clear(self) -> None:
        """Forget everything: the batch is over."""
        self._known.clear()


def fingerprint_at(offset: int, record_offset: int, checksum: int) -> int:
    """Return the fingerprint of a position: how far before it its last record is, and a checksum.

    Transaction markers and compaction leave offsets without a record. The distance (from 1 to 255)
    is in bits 24 to 31, the lower bits of the record's checksum are below. UNKNOWN where a record
    is further away: what may be the last one before a position by now says nothing.
    """
    distance = offset - record_offset
    if not 1 <= distance <= _MAX_DISTANCE:
        return UNKNOWN
    return distance << _CHECKSUM_BITS | checksum & _CHECKSUM_MASK


def record_offset_of(position: Position) -> int:
    """Return the offset of the record that a position's fingerprint, which is known, is of."""
    return position.offset - (position.fingerprint >> _CHECKSUM_BITS)


def offset_in(vector: Vector, key: str, partition: int, default: int = 0) -> int:
    """Return the offset of a log in a vector, `default` if it is absent."""
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
    """Return `shared` itself for a vector with the same offsets, so that equal ones are one."""
    return shared if vector is shared or offsets_of(vector) == offsets_of(shared) else vector


def replaced(vector: Vector, changes: Vector) -> Vector:
    """Return a vector with the positions of `changes`, also where they are smaller."""
    return {**vector, **{key: {**vector.get(key, {}), **ones} for key, ones in changes.items()}}


def lowest(vectors: Iterable[Vector], origin: LogOffsets) -> Vector:
    """Return the smallest position of each log; in a vector that lacks the log, its origin."""
    distinct = list({id(one): one for one in vectors}.values())
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
    """Return the offsets of a vector by source, topic and partition, of the topics in `keys`."""
    named: dict[str, dict[str, dict[int, int]]] = {}
    for (source, topic), key in keys.items():
        if key in vector:
            ones = {partition: position.offset for partition, position in vector[key].items()}
            named.setdefault(source, {})[topic] = ones
    return named
