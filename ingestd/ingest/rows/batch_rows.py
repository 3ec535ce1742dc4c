"""Select rows of change batches and records of chunks, and build rejected records."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ingestd.cdc.base import ChangeBatch, RecordChunk, RejectedRecord

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Failure:
    """Rows that the table rejects, and why; `stage` and `reason` as in dead letters."""

    rows: Mask
    stage: str
    reason: str
    message: str


def effective_positions(batch: ChangeBatch) -> npt.NDArray[np.int64]:
    """Return source positions, shape (rows,); a row without one gets the largest before it.

    Rows of an incremental snapshot have no position, but are in the log between rows that have
    one. Rows before the first position get that one; without any position all are -1.
    """
    known = batch.position[batch.position >= 0]
    if len(known) in (0, len(batch.position)):
        return batch.position
    furthest = np.maximum.accumulate(batch.position)
    neighbours = np.where(furthest >= 0, furthest, known[0])
    return np.where(batch.position >= 0, batch.position, neighbours)


def drop_oversized(chunk: RecordChunk, max_bytes: int) -> tuple[RecordChunk, list[RejectedRecord]]:
    """Split off records with more than `max_bytes` of key and value, which are rejected."""
    sizes = chunk.record_sizes()
    if int(sizes.max(initial=0)) <= max_bytes:
        return chunk, []
    rejected = [
        _rejected(
            chunk,
            index,
            Failure(
                np.zeros(0, np.bool_),
                "decode",
                "too-large",
                f"{sizes[index]} bytes, above the limit of {max_bytes}",
            ),
        )
        for index in np.flatnonzero(sizes > max_bytes).tolist()
    ]
    return chunk.take(np.flatnonzero(sizes <= max_bytes)), rejected


def judge_records(
    chunk: RecordChunk, offsets: npt.NDArray[np.int64], failures: Iterable[Failure]
) -> tuple[Mask, list[RejectedRecord]]:
    """Return a mask of the rows whose records are valid, and the rejected records.

    `offsets` are those of all rows. A record is rejected, with its first failure, if any of its
    rows fails.
    """
    rejected: dict[int, RejectedRecord] = {}
    for failure in failures:
        for offset in np.unique(offsets[failure.rows]).tolist():
            if offset not in rejected:
                index = int(np.searchsorted(chunk.offsets, offset))
                rejected[offset] = _rejected(chunk, index, failure)
    return ~np.isin(offsets, list(rejected)), list(rejected.values())


def _rejected(chunk: RecordChunk, index: int, failure: Failure) -> RejectedRecord:
    return RejectedRecord(
        topic=chunk.topic,
        partition=chunk.partition,
        offset=int(chunk.offsets[index]),
        timestamp=int(chunk.timestamps[index]),
        stage=failure.stage,
        reason=failure.reason,
        message=failure.message,
        key=chunk.keys[index],
        value=chunk.values[index],
    )


def rejected_whole(
    chunk: RecordChunk, offsets: npt.NDArray[np.int64], failures: Iterable[Failure]
) -> list[RejectedRecord]:
    """Return the rejected records as `judge_records` if no record is valid; else an empty list."""
    good, rejected = judge_records(chunk, offsets, failures)
    return [] if bool(good.any()) else rejected


def rejected_record(
    chunk: RecordChunk, offset: int, cause: tuple[str, str], message: str
) -> RejectedRecord:
    """Return the record at an offset of a chunk as rejected; `cause` is stage and reason."""
    failure = Failure(np.zeros(0, np.bool_), *cause, message)
    return _rejected(chunk, int(np.searchsorted(chunk.offsets, offset)), failure)
