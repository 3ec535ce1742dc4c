"""Find the records whose rows fail, and the reasons why they are rejected."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ingestd.cdc.base import RecordChunk, RejectedRecord
from ingestd.cdc.record_errors import Reason
from ingestd.paimon.spec.row_selection import Mask


@dataclass(frozen=True, slots=True)
class Failure:
    """A mask of the rows that a table rejects, with the stage and reason of their dead letters."""

    rows: Mask
    stage: str
    reason: str
    message: str


def judge_records(
    chunk: RecordChunk, offsets: npt.NDArray[np.int64], failures: Iterable[Failure]
) -> tuple[Mask, list[RejectedRecord]]:
    """Return a mask (n,) of the rows of valid records, and the rejections of the other records.

    `offsets` (n,) are the offsets of all rows. A record is rejected if any of its rows fails; the
    reason is its first failure.
    """
    rejected: dict[int, RejectedRecord] = {}
    for failure in failures:
        for offset in np.unique(offsets[failure.rows]).tolist():
            if offset not in rejected:
                reason = Reason(failure.stage, failure.reason, failure.message)
                rejected[offset] = rejected_record(chunk, offset, reason)
    return ~np.isin(offsets, list(rejected)), list(rejected.values())


def rejected_whole(
    chunk: RecordChunk, offsets: npt.NDArray[np.int64], failures: Iterable[Failure]
) -> list[RejectedRecord]:
    """Return the rejections of all records if none is valid, else an empty list.

    `offsets` (n,) are the offsets of all rows.
    """
    good, rejected = judge_records(chunk, offsets, failures)
    return [] if bool(good.any()) else rejected


def rejected_record(chunk: RecordChunk, offset: int, reason: Reason) -> RejectedRecord:
    """Return the rejected record for an offset of a chunk."""
    index = int(np.searchsorted(chunk.offsets, offset))
    return RejectedRecord(
        topic=chunk.topic,
        partition=chunk.partition,
        offset=offset,
        timestamp=int(chunk.timestamps[index]),
        stage=reason.stage,
        reason=reason.code,
        message=reason.message,
        key=chunk.keys[index],
        value=chunk.values[index],
    )
