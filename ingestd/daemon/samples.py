"""A day of samples of rate, lag and batch time: every one of the last hour, then one per minute."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

SAMPLE_SECONDS = 10.0
_SAMPLES_PER_HOUR = 360
_EARLIER_MINUTES = 23 * 60


@dataclass(frozen=True, slots=True)
class Sample:
    """The `records` read in the `seconds` until `at` (seconds since 1970), and the lag at `at`.

    `lag` is in records, `freshness` the largest lag of a table in seconds, `batch` the duration in
    seconds of the longest batch that finished. Each is None while unknown, or without a batch.
    """

    at: float
    seconds: float
    records: int
    lag: int | None
    freshness: float | None
    batch: float | None

    @property
    def rate(self) -> float | None:
        """Records per second; None for the first sample of a process."""
        return self.records / self.seconds if self.seconds > 0 else None


def total_lag(sources: Mapping[str, Any]) -> int | None:
    """Return the total lag of all topic partitions in records, or None if it is unknown.

    `sources` is the section of /status with the sources. The lag is unknown if the lag of a
    partition is unknown, the brokers of a source do not respond, or no partition is known.
    """
    if any(source.get("reachable") is False for source in sources.values()):
        return None
    lags = [
        partition["lag"]
        for source in sources.values()
        for topic in source["topics"].values()
        for partition in topic.values()
    ]
    return None if not lags or None in lags else sum(lags)


def merged(older: Sample, newer: Sample) -> Sample:
    """Merge two samples: add their records and seconds, and take the larger of the other values.

    The result has the time of `newer`. A value is None only if it is None in both samples.
    """
    return Sample(
        newer.at,
        older.seconds + newer.seconds,
        older.records + newer.records,
        max((lag for lag in (older.lag, newer.lag) if lag is not None), default=None),
        _largest(older.freshness, newer.freshness),
        _largest(older.batch, newer.batch),
    )


def _largest(*values: float | None) -> float | None:
    return max((value for value in values if value is not None), default=None)


def by_step(samples: Iterable[Sample], step: float) -> list[Sample]:
    """Merge the samples of each interval of `step` seconds into one.

    Intervals begin at multiples of `step` since 1970. The samples are oldest first, and so is the
    result.
    """
    steps: list[Sample] = []
    for sample in samples:
        if steps and steps[-1].at // step == sample.at // step:
            steps[-1] = merged(steps[-1], sample)
        else:
            steps.append(sample)
    return steps


@dataclass(slots=True)
class Samples:
    """All samples of the last hour, and one sample per minute of the 23 hours before.

    `last_hour` and `earlier` are oldest first. Both have a maximum number of samples, so the time
    in which the daemon did not run is not counted. Not thread-safe.
    """

    last_hour: deque[Sample] = field(default_factory=lambda: deque(maxlen=_SAMPLES_PER_HOUR))
    earlier: deque[Sample] = field(default_factory=lambda: deque(maxlen=_EARLIER_MINUTES))

    def add(self, sample: Sample) -> None:
        """Add the newest sample; if the hour is full, merge its oldest sample into `earlier`."""
        if len(self.last_hour) == _SAMPLES_PER_HOUR:
            old = self.last_hour.popleft()
            if self.earlier and self.earlier[-1].at // 60 == old.at // 60:
                self.earlier[-1] = merged(self.earlier[-1], old)
            else:
                self.earlier.append(old)
        self.last_hour.append(sample)

    def restore(self, samples: Sequence[Sample], now: float) -> None:
        """Add the samples of an earlier process; drop samples after `now`, from a wrong clock."""
        for sample in samples:
            if sample.at <= now:
                self.add(sample)

    def all(self) -> list[Sample]:
        """Return all samples, oldest first."""
        return [*self.earlier, *self.last_hour]
