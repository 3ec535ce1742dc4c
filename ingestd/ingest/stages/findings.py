"""Collect the findings of a decode task besides its rows: counts, discoveries, times of changes.

They become the report of the task.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ingestd.cdc.base import ChangeBatch, RecordChunk, describe_format
from ingestd.cdc.format_guess import look_of
from ingestd.cdc.schema_lookup import Framing
from ingestd.ingest.dead_letters.dead_letter import DeadLetter
from ingestd.ingest.rows.blobs import Report
from ingestd.ingest.schemas.discovery import CachedChunk, DiscoveryLog, TableTruncate
from ingestd.ingest.settings.context import Feed, SourceSettings
from ingestd.ingest.settings.error_policy import ErrorPolicy
from ingestd.ingest.settings.rejection import GAP_STAGE
from ingestd.ingest.values.batch_times import BatchTimes
from ingestd.ingest.values.counts import Counts, RejectedSample, TopicPartition
from ingestd.kafka.isolated_fetch import Unreadable
from ingestd.kafka.log_checks import fingerprint_of_last

MAX_SAMPLES = 20
"""Maximum number of rejected records reported with coordinates; all are counted."""
_UNFRAMED = Framing()
ASKED_FOR = "no-route"
"""Reason of dead letters that `routing.unmatched` configures."""


@dataclass(slots=True)
class Findings:
    """Counts, times, discoveries, truncates and samples of one task; tables by identifier."""

    counts: Counts = field(default_factory=Counts)
    times: BatchTimes = field(default_factory=BatchTimes)
    discoveries: DiscoveryLog = field(default_factory=DiscoveryLog)
    unreadable: list[Unreadable] = field(default_factory=list)
    _truncates: list[TableTruncate] = field(default_factory=list)
    _feeds: dict[str, Counter[Feed]] = field(default_factory=dict)
    _topics: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    _positions: dict[str, int] = field(default_factory=dict)
    _last_records: dict[TopicPartition, tuple[int, int]] = field(default_factory=dict)
    _samples: list[RejectedSample] = field(default_factory=list)
    _kept: list[CachedChunk] = field(default_factory=list)

    @property
    def runs_again(self) -> bool:
        """Whether the batch must run again because of a finding."""
        return bool(self._truncates or self.unreadable) or not self.discoveries.is_empty

    def note_chunk(self, source: str, chunk: RecordChunk) -> None:
        """Count the records of a chunk and their bytes."""
        where = TopicPartition(source, chunk.topic, chunk.partition)
        self.counts.records[where] += len(chunk.offsets)
        self.counts.bytes[where] += int(chunk.record_sizes().sum())
        if len(chunk.offsets):
            self._last_records[where] = (int(chunk.offsets[-1]), fingerprint_of_last(chunk))

    def note_kept(self, kept: CachedChunk) -> None:
        """Count the records of a chunk that was decoded in an earlier run of the batch."""
        self.counts.records[kept.where] += kept.records
        self.counts.bytes[kept.where] += kept.size
        self.counts.control += kept.control
        self._last_records[kept.where] = (kept.until - 1, kept.last)

    def keep(self, kept: CachedChunk) -> None:
        """Report a chunk for the next run of the batch."""
        self._kept.append(kept)

    def note_source(self, table: str, feed: Feed, topic: str, rows: int) -> None:
        """Record the source table of rows of a table, and their number."""
        self._feeds.setdefault(table, Counter())[feed] += rows
        self.note_topic(table, feed.source, topic)

    def note_topic(self, table: str, source: str, topic: str) -> None:
        """Record that a topic feeds a table."""
        self._topics.setdefault(table, set()).add((source, topic))

    def note_rows(self, table: str, feed: Feed, topic: str, batch: ChangeBatch) -> None:
        """Record the source table of rows, and the largest source position."""
        self.note_source(table, feed, topic, len(batch.offset))
        streamed = batch.position[~batch.snapshot_row]
        reached = int(np.max(streamed, initial=-1))
        if reached > self._positions.get(table, -1):
            self._positions[table] = reached

    def note_truncate(self, truncate: TableTruncate) -> None:
        """Record a truncate that the table has not applied yet."""
        self._truncates.append(truncate)

    def note_rejected(
        self, source: str, dead_letters: list[DeadLetter], policy: ErrorPolicy
    ) -> list[DeadLetter]:
        """Count and sample rejected records; return those that become dead letters.

        Raises PolicyStopError if the policy stops the pipeline for one of them.
        """
        for dead_letter in dead_letters:
            self.counts.rejected[dead_letter.rejected.stage, dead_letter.rejected.reason] += 1
        room = MAX_SAMPLES - len(self._samples)
        self._samples += [
            RejectedSample.of(source, letter.rejected) for letter in dead_letters[:room]
        ]
        kept = [letter for letter in dead_letters if policy.keeps(letter.rejected, self.counts)]
        self._note_unusable(source, kept)
        return kept

    def _note_unusable(self, source: str, dead_letters: list[DeadLetter]) -> None:
        """Count records that may have another data format, and guess the format of some of them."""
        for rejected in (dead_letter.rejected for dead_letter in dead_letters):
            if rejected.stage == GAP_STAGE or rejected.reason == ASKED_FOR:
                continue
            topic = (source, rejected.topic)
            self.counts.unusable[topic] += 1
            if rejected.value and self.counts.unusable[topic] <= MAX_SAMPLES:
                look = look_of(rejected.value)
                self.counts.looks.update([(*topic, look)] if look else [])

    def report(self) -> Report:
        """Return all findings as a report."""
        return Report(
            discoveries=self.discoveries.findings(),
            truncates=tuple(self._truncates),
            feeds={table: dict(feeds) for table, feeds in self._feeds.items()},
            topics={table: frozenset(topics) for table, topics in self._topics.items()},
            positions=dict(self._positions),
            counts=self.counts,
            rejected=tuple(self._samples),
            kept=tuple(self._kept),
            times=self.times,
            unreadable=tuple(self.unreadable),
            last_records=dict(self._last_records),
        )


@dataclass(frozen=True, slots=True)
class EventClock:
    """Records the times of changes in a task.

    Only the first and the last record of a chunk are read: a chunk is a short section of a log, and
    one number is found without decoding the message.
    """

    sources: Mapping[str, SourceSettings]
    times: BatchTimes

    def note_chunk(self, source: str, chunk: RecordChunk) -> None:
        """Record the offset and time of a chunk's last record."""
        if len(chunk.offsets) and (time := self._time(source, chunk, -1)) is not None:
            where = TopicPartition(source, chunk.topic, chunk.partition)
            self.times.note_reached(where, int(chunk.offsets[-1]), time)

    def note_rows(
        self, table: str, source: str, chunk: RecordChunk, offsets: npt.NDArray[np.int64]
    ) -> None:
        """Record the times of the first and the last row of a table; `offsets` are of its rows.

        A chunk without records is ignored: its rows were noted when they were decoded.
        """
        if not len(chunk.offsets) or not len(offsets):
            return
        ends = np.searchsorted(chunk.offsets, (offsets[0], offsets[-1]))
        for index in {int(end) for end in ends}:
            if (time := self._time(source, chunk, index)) is not None:
                self.times.note_event(table, time)

    def _time(self, source: str, chunk: RecordChunk, index: int) -> int | None:
        """Return the time of a change, else the timestamp of its record; None without both."""
        settings = self.sources[source]
        made = change_time(
            settings.data_format, chunk.values[index], settings.format_settings.framing
        )
        if made is not None:
            return made
        stamp = int(chunk.timestamps[index])
        return stamp if stamp > 0 else None


def change_time(
    data_format: str, message: bytes | None, framing: Framing = _UNFRAMED
) -> int | None:
    """Return when the source made a change, in milliseconds since 1970; None if not stated."""
    event_time = describe_format(data_format).event_time
    if event_time is None or message is None:
        return None
    return event_time.of_message(framing.json_body(message))
