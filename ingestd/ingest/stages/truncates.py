"""Which truncates of a batch empty their tables, which rows go with them, and which are refused.

A connector that is asked to truncate sends one record without a key, which lands in any partition
of its topic. So it may be read after rows that came later in the source. Where source positions
tell which rows are older they decide. Rows that are in the table already have none: there the
table is emptied, and what it got since its last snapshot from before the truncate is read again.
In a topic of one partition the offset does, without any position. All else is for the policy.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from ingestd.errors import PolicyStopError
from ingestd.ingest.schemas.discovery import TableTruncate
from ingestd.ingest.settings.context import BatchContext, Coverage, Emptying, Feed
from ingestd.ingest.stages.outcome import AttemptResult
from ingestd.kafka.ranges import OffsetRange, Place

_LOG = logging.getLogger(__name__)
MAX_READ_AGAIN = 10_000_000
"""Offsets that a batch reads again at most, to empty a table.

All of them are in this one batch, which one OVERWRITE ends: it cannot be cut as others are. What
grows with it is the batch's time, so how long nothing else goes on and how soon its daemon counts
as hung, and the blobs between its stages; memory too for engines that see all rows of a key at
once. Decoding and the write of other tables work on chunks of bounded bytes. A count it is, as for
`max-offsets-per-trigger`: Kafka tells offsets and no bytes of what has yet to be read.
"""
_WAY_OUT = (
    "let on-ambiguous-truncate be dead-letter or ignore, which keeps the rows, and empty the table "
    "yourself"
)

_Record = tuple[str, str, int, int]


@dataclass(frozen=True, slots=True)
class Stream:
    """What is known of the stream beside a batch.

    `partitions` counts those of a (source, topic); `held` gives what of the stream a table covers,
    `fed` the topics that ever brought it rows.
    `before` gives for a table and a source position the offsets from which on to read so that
    nothing after the position is missed, None where no snapshot is left that tells. `begins` gives
    the first offsets that the logs have, without those of what cannot be read any more.
    """

    partitions: Callable[[str, str], int]
    held: Callable[[str], Coverage]
    fed: Callable[[str], Collection[tuple[str, str]]]
    before: Callable[[str, int], Coverage | None]
    begins: Callable[[Collection[Place]], Mapping[Place, int]]


@dataclass(slots=True)
class Truncates:
    """What was settled for a batch: tables that it empties, and truncates that are refused."""

    emptied: dict[str, Emptying] = field(default_factory=dict)
    refused: dict[_Record, str] = field(default_factory=dict)

    def settle(self, context: BatchContext, result: AttemptResult, stream: Stream) -> None:
        """Take in what a run of the batch found.

        PolicyStopError for a truncate that cannot be put in order, unless its table has a policy.
        """
        by_table: dict[str, list[TableTruncate]] = {}
        for one in result.truncates:
            by_table.setdefault(one.table, []).append(one)
        for found in by_table.values():
            with_position = [one for one in found if one.position is not None]
            for one in sorted(with_position, key=lambda one: one.position or 0, reverse=True):
                verdict = _by_position(context, result, one, stream)
                self._take(context, one, verdict)
                if isinstance(verdict, Emptying):
                    break  # nothing that came before an older one is left by then
            for one in found:
                if one.position is None:
                    self._take(context, one, _by_offset(context, result, one, stream))

    def _take(
        self, context: BatchContext, truncate: TableTruncate, verdict: Emptying | str
    ) -> None:
        if isinstance(verdict, Emptying):
            known = self.emptied.get(truncate.table)
            self.emptied[truncate.table] = _both(known, verdict)
            return
        source, topic, partition, offset = truncate.place
        policy = context.settings_of(truncate.table).truncates
        where = f"{topic}/{partition} at offset {offset}"
        if policy.fails:
            raise PolicyStopError(
                f"{truncate.feed} was truncated ({where}), but table {truncate.table} cannot "
                f"follow: {verdict}; {_WAY_OUT}"
            )
        self.refused[truncate.place] = f"table {truncate.table} is not emptied: {verdict}"
        at = {"source": source, "topic": topic, "partition": partition, "offset": offset}
        _LOG.warning(
            "truncate_refused", extra={"ctx": {"table": truncate.table, **at, "reason": verdict}}
        )

    def reading(self, ranges: Iterable[OffsetRange], stream: Stream) -> list[OffsetRange]:
        """The ranges of the batch with what has to be read again before them."""
        wanted = {(one.source, one.topic, one.partition): one for one in ranges}
        for table, emptying in self.emptied.items():
            held = dict(_flat(stream.held(table)))
            for place, start in _flat(emptying.covered or {}):
                known = wanted.get(place) or OffsetRange(*place, start, held.get(place, start))
                wanted[place] = replace(known, start=min(known.start, start))
        return sorted(one for one in wanted.values() if one.rows)


def outlives_batch(table: str, result: AttemptResult, stream: Stream) -> bool:
    """Whether rows from before a truncate of the table may be read after it, even batches later.

    They may as soon as a topic of the table has several partitions, or it has several topics: one
    that has told nothing yet may have the most to tell.
    """
    topics = {*result.topics.get(table, frozenset()), *stream.fed(table)}
    return len(topics) > 1 or any(stream.partitions(*topic) > 1 for topic in topics)


def _by_position(
    context: BatchContext, result: AttemptResult, truncate: TableTruncate, stream: Stream
) -> Emptying | str:
    """How the table follows a truncate that has a position, or why it cannot."""
    table = truncate.table
    shared = _shared(context, result, truncate)
    if shared is not None:
        return shared
    position = truncate.position or 0
    target = context.tables[table]
    if not outlives_batch(table, result, stream) or position >= target.position_reached:
        return Emptying(position)
    starts = stream.before(table, position)
    if starts is None:
        return (
            f"it holds rows from behind source position {position} already, which were read from "
            "other topic partitions, and has no snapshot left from before them to start from"
        )
    held = dict(_flat(stream.held(table)))
    wanted = {place: start for place, start in _flat(starts) if start < held.get(place, start)}
    rows = sum(held[place] - start for place, start in wanted.items())
    obstacle = _unreadable(wanted, rows, stream)
    if obstacle is not None:
        return f"it holds rows from behind source position {position} already, and {obstacle}"
    _LOG.info(
        "truncate_reads_again", extra={"ctx": {"table": table, "position": position, "rows": rows}}
    )
    return Emptying(position, starts)


def _unreadable(wanted: Mapping[Place, int], rows: int, stream: Stream) -> str | None:
    """Why this many records from these offsets on cannot be read once more, None if they can."""
    if rows > MAX_READ_AGAIN:
        return (
            f"to find them {rows} records would be read again, above the limit of {MAX_READ_AGAIN}"
        )
    begins = stream.begins(wanted.keys()) if wanted else {}
    for place, start in sorted(wanted.items()):
        source, topic, partition = place
        begin = begins.get(place)
        if begin is None or start < begin:
            log = "no longer exists" if begin is None else f"has a log that begins at {begin}"
            return (
                "the records that tell them apart cannot be read again: from offset "
                f"{start} on they were in {topic}/{partition} of source {source}, which {log}"
            )
    return None


def _by_offset(
    context: BatchContext, result: AttemptResult, truncate: TableTruncate, stream: Stream
) -> Emptying | str:
    """The same for one without a position, which the only partition of a topic puts in order."""
    shared = _shared(context, result, truncate)
    if shared is not None:
        return shared
    source, topic, partition, offset = truncate.place
    topics = {*stream.fed(truncate.table), *result.topics.get(truncate.table, frozenset())}
    if topics != {(source, topic)} or stream.partitions(source, topic) > 1:
        return (
            "the truncate has no position in the source's log, and rows of the table are in "
            "several topic partitions, so older and newer ones cannot be told apart"
        )
    return Emptying(None, {source: {topic: {partition: offset + 1}}})


def _shared(context: BatchContext, result: AttemptResult, truncate: TableTruncate) -> str | None:
    others = _feeds(context, result, truncate.table) - {truncate.feed}
    if not others:
        return None
    names = ", ".join(sorted(str(feed) for feed in others))
    return (
        f"it also holds rows of {names}; give the truncated one a target of its own in "
        "routing.table-mapping"
    )


def _feeds(context: BatchContext, result: AttemptResult, table: str) -> frozenset[Feed]:
    return result.feeds.get(table, frozenset()) | context.tables[table].feeds


def _both(one: Emptying | None, other: Emptying) -> Emptying:
    """What the later of two truncates leaves; offsets of the same partitions are the larger."""
    if one is None:
        return other
    position = max((p for p in (one.position, other.position) if p is not None), default=None)
    if one.covered is None or other.covered is None:
        return Emptying(position, one.covered or other.covered)
    later = dict(_flat(one.covered))
    for place, offset in _flat(other.covered):
        later[place] = max(offset, later.get(place, offset))
    return Emptying(position, _nested(later))


def _flat(coverage: Coverage) -> Iterable[tuple[Place, int]]:
    for source, topics in coverage.items():
        for topic, partitions in topics.items():
            for partition, offset in partitions.items():
                yield (source, topic, partition), offset


def _nested(flat: Mapping[Place, int]) -> Coverage:
    nested: dict[str, dict[str, dict[int, int]]] = {}
    for (source, topic, partition), offset in flat.items():
        nested.setdefault(source, {}).setdefault(topic, {})[partition] = offset
    return nested
