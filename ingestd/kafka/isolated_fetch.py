"""Fetch offset ranges, some of which cannot be read although their brokers respond.

A record that the client rejects, or that it never finishes decompressing, blocks everything that is
fetched with it. When no more records arrive, the remaining ranges are read in halves, with another
client after each failure, until the blocking ranges are identified.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ingestd.cdc.base import RecordChunk
from ingestd.errors import SourceError, SourceSilentError
from ingestd.kafka.fetch import Bounds, StalledError, bundles, fetch_all
from ingestd.kafka.offset_ranges import OffsetRange
from ingestd.kafka.offsets import OffsetClient
from ingestd.kafka.properties import KafkaSource

_LOG = logging.getLogger(__name__)
_ASK_SECONDS = 10.0
APART_SECONDS = 10.0
"""Seconds without a record before ranges count as stalled when they are read in halves."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A range that cannot be read, starting at its first unreadable offset, and the reason."""

    range: OffsetRange
    reason: str


def fetch_readable(
    source: KafkaSource,
    ranges: Sequence[OffsetRange],
    bounds: Bounds,
    on_unreadable: Callable[[Unreadable], None],
    *,
    headers: bool = False,
) -> Iterator[RecordChunk]:
    """Yield the records of ranges in chunks, and call `on_unreadable` for each unreadable range.

    The records before the first unreadable offset of a range are yielded, the rest of the range is
    not read. `bounds` are the limits of a chunk. Headers are read only if `headers` is set. Raises
    LogChangedError if a log no longer has its range, SourceSilentError if the brokers do not
    respond, SourceError if they reject the client, and ConfigError for invalid properties.
    """
    for bundle in bundles(ranges, bounds.max_records):
        yield from _fetch_apart(source, bundle, bounds, on_unreadable, headers=headers)


def _fetch_apart(
    source: KafkaSource,
    ranges: Sequence[OffsetRange],
    bounds: Bounds,
    on_unreadable: Callable[[Unreadable], None],
    *,
    headers: bool,
    stall_seconds: float | None = None,
) -> Iterator[RecordChunk]:
    try:
        yield from fetch_all(
            source,
            ranges,
            max_records=bounds.max_records,
            max_bytes=bounds.max_bytes,
            headers=headers,
            stall_seconds=stall_seconds,
        )
        return
    except StalledError as error:
        stalled = error
    left = stalled.left
    if not is_reachable(source, left):
        raise SourceSilentError(stalled.message) from stalled
    if len(left) == 1:
        on_unreadable(Unreadable(left[0], stalled.message))
        return
    _LOG.warning("fetch_stalled", extra={"ctx": {"source": source.name, "ranges": len(left)}})
    middle = len(left) // 2
    for half in (left[:middle], left[middle:]):
        yield from _fetch_apart(
            source, half, bounds, on_unreadable, headers=headers, stall_seconds=APART_SECONDS
        )


def is_reachable(source: KafkaSource, ranges: Sequence[OffsetRange]) -> bool:
    """Return whether the leaders of the ranges' partitions respond to a request for end offsets.

    Raises ConfigError for invalid properties, and SourceError if no token could be fetched.
    """
    by_topic: dict[str, list[int]] = {}
    for range_ in ranges:
        by_topic.setdefault(range_.topic, []).append(range_.partition)
    partitions = {topic: tuple(partitions) for topic, partitions in by_topic.items()}
    cluster = OffsetClient(source, request_seconds=_ASK_SECONDS)
    try:
        cluster.end_offsets(partitions)
    except SourceError:
        return False
    finally:
        cluster.close()
    return True
