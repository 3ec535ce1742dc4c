"""Count rejected records, and stop the pipeline if they exceed a limit.

The driver checks the limits before it commits a batch, so a source whose format changes does not
flood the dead-letter table, and no record is lost: the next run reads the batch again.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ingestd.errors import PolicyStopError
from ingestd.ingest.values.counts import Counts, RejectedSample

GAP_STAGE = "fetch"
"""Stage of dead letters for records that were lost before they could be read.

They do not count towards the limits.
"""
_NAMED = 3


class SourceRejection(NamedTuple):
    """The reason why all records of a source table are rejected, as fields of a dead letter."""

    stage: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class RejectionLimits:
    """Limits of rejected records: their number in a run, and their share of the newest records.

    `max_ratio` limits the share of rejected records among the newest records: those of the newest
    whole batches that have at least `window` records together. While fewer records have been read,
    the number of rejected records is divided by `window`. A limit that is None is not checked.
    """

    max_records: int | None = None
    max_ratio: float | None = None
    window: int = 10_000


class RejectionLimiter:
    """The counter of rejected records of one run of a pipeline, which enforces the limits."""

    def __init__(self, limits: RejectionLimits) -> None:
        self._limits = limits
        self._total = 0
        self._newest: deque[tuple[int, int]] = deque()

    def check(self, counts: Counts, samples: Sequence[RejectedSample]) -> None:
        """Count the rejected records of an uncommitted batch; `samples` are some of these records.

        Records that were lost before they could be read (`GAP_STAGE`) do not count as rejected.
        Raises PolicyStopError, which contains up to three samples, if a limit is exceeded.
        """
        rejected = sum(n for (stage, _), n in counts.rejected.items() if stage != GAP_STAGE)
        self._total += rejected
        self._note(sum(counts.records.values()), rejected)
        if not rejected:
            return
        most = self._limits.max_records
        if most is not None and self._total > most:
            self._stop(f"{self._total} rejected records in this run, {most} are allowed "
                       "(errors.max-rejected-records)", samples)  # fmt: skip
        ratio = self._limits.max_ratio
        records, bad = (sum(column) for column in zip(*self._newest, strict=True))
        if ratio is not None and bad > ratio * max(records, self._limits.window):
            self._stop(f"{bad} of the newest {records} records were rejected, a share of {ratio:g} "
                       f"of {max(records, self._limits.window)} is allowed "
                       "(errors.max-rejected-ratio)", samples)  # fmt: skip

    def _note(self, records: int, rejected: int) -> None:
        """Add a batch to the window, and remove old batches that the window does not need."""
        self._newest.append((records, rejected))
        held = sum(size for size, _ in self._newest)
        while len(self._newest) > 1 and held - self._newest[0][0] >= self._limits.window:
            held -= self._newest.popleft()[0]

    def _stop(self, what: str, samples: Sequence[RejectedSample]) -> None:
        first = sorted(_named(sample) for sample in samples if sample.stage != GAP_STAGE)[:_NAMED]
        raise PolicyStopError(
            f"{what}; nothing of the batch is committed; the first: "
            f"{'; '.join(text for _, text in first)}; correct the source or the configuration, or "
            "raise the limit to store them as dead letters"
        )


def _named(sample: RejectedSample) -> tuple[tuple[str, int, int], str]:
    position = (sample.topic, sample.partition, sample.offset)
    return (
        position,
        f"{sample.topic}/{sample.partition} at {sample.offset} ({sample.stage}, {sample.reason})",
    )
