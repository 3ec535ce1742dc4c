"""Derive the watermarks of tables from the event times of the records that batches have read.

A watermark is a time up to which a table has all its rows, except late rows. Each topic partition
has reached the largest event time of its records, and a table the smallest time that its topic
partitions have reached, less the allowed delay. Idle partitions are left out.

The times are kept in memory only. After a start, a topic partition has no time until its first
record, and holds the watermark back until it is idle; a commit never lowers the watermark of a
table below that of its newest snapshot.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from ingestd.ingest.settings.watermark_rules import WatermarkRules
from ingestd.ingest.values.batch_times import BatchTimes
from ingestd.kafka.offset_ranges import SourcePartition


@dataclass(frozen=True, slots=True)
class _Reached:
    """The largest event time of a topic partition, in ms since the epoch.

    `seen` is the monotonic time in seconds at which its last record was noted.
    """

    time: int
    seen: float


class Watermarks:
    """Derives watermarks from the event times that topic partitions have reached since the start.

    `rules_of` returns the rules of a table, or None for a table without watermarks. `clock` returns
    a monotonic time in seconds.
    """

    def __init__(
        self, rules_of: Callable[[str], WatermarkRules | None], clock: Callable[[], float]
    ) -> None:
        self._rules_of = cache(rules_of)
        self._clock = clock
        self._began = clock()
        self._source: dict[SourcePartition, _Reached] = {}
        self._column: dict[str, dict[SourcePartition, _Reached]] = {}

    def note(self, times: BatchTimes) -> None:
        """Record the event times of a batch that is about to be committed."""
        source_times = {where: time for where, (_, time) in times.reached.items()}
        self._advance(self._source, source_times)
        for table, column_times in times.columns.items():
            self._advance(self._column.setdefault(table, {}), column_times)

    def of(self, table: str, partitions: Callable[[], Iterable[SourcePartition]]) -> int | None:
        """Return the watermark of a table in ms since the epoch, or None.

        Each topic partition that is not idle has reached the largest of its event times. The
        watermark is the smallest of these times, less the allowed delay and 1 ms. It is None if the
        table has no watermarks, if a topic partition that is not idle has no time yet, or if all
        are idle. `partitions` returns the topic partitions from which the table may have rows.
        """
        rules = self._rules_of(table)
        if rules is None:
            return None
        by_source = rules.event_time == "source"
        reached = self._source if by_source else self._column.get(table, {})
        awake_since = self._clock() - rules.idle_seconds
        low: int | None = None
        for where in partitions():
            known = reached.get(where)
            if (self._began if known is None else known.seen) < awake_since:
                continue
            if known is None:
                return None
            low = known.time if low is None else min(low, known.time)
        # No later row has this time, so that the next millisecond is still open.
        return None if low is None else low - rules.delay_ms - 1

    def _advance(
        self, reached: dict[SourcePartition, _Reached], times: Mapping[SourcePartition, int]
    ) -> None:
        now = self._clock()
        for where, time in times.items():
            known = reached.get(where)
            reached[where] = _Reached(time if known is None else max(time, known.time), now)
