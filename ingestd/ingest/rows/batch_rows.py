"""Parts of record chunks and change batches: which rows to keep, which records were rejected."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from ingestd.cdc.base import ChangeBatch, RecordChunk, RejectedRecord
from ingestd.ingest.rows.conform import Failure

Mask = npt.NDArray[np.bool_]


def effective_positions(batch: ChangeBatch) -> npt.NDArray[np.int64]:
    """Source positions, with the furthest one before it in the batch for a row without.

    Rows of an incremental snapshot have none, but stand in the log between rows that have. Rows
    before the first position take that one; without any position all are -1.
    """
    known = batch.position[batch.position >= 0]
    if len(known) in (0, len(batch.position)):
        return batch.position
    furthest = np.maximum.accumulate(batch.position)
    neighbours = np.where(furthest >= 0, furthest, known[0])
    return np.where(batch.position >= 0, batch.position, neighbours)


def record_sizes(chunk: RecordChunk) -> npt.NDArray[np.int64]:
    """Bytes of key and value of each record."""
    if chunk.sizes is not None:
        return chunk.sizes
    pairs = zip(chunk.keys, chunk.values, strict=True)
    sizes = (len(key or b"") + len(value or b"") for key, value in pairs)
    return np.fromiter(sizes, np.int64, len(chunk.values))


def drop_oversized(chunk: RecordChunk, max_bytes: int) -> tuple[RecordChunk, list[RejectedRecord]]:
    """The records of at most `max_bytes` of key and value, and those that are larger, rejected."""
    sizes = record_sizes(chunk)
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
    """Marks of the rows whose records are good, and the other records, each with its first failure.

    `offsets` are those of all rows. A record that fails in one of its rows fails whole.
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
    """As `judge_records`, the rejected records if there is no good one; else none of them."""
    good, rejected = judge_records(chunk, offsets, failures)
    return [] if bool(good.any()) else rejected


def rejected_record(
    chunk: RecordChunk, offset: int, cause: tuple[str, str], message: str
) -> RejectedRecord:
    """The record at an offset of a chunk, rejected at a stage for a reason (`cause`)."""
    failure = Failure(np.zeros(0, np.bool_), *cause, message)
    return _rejected(chunk, int(np.searchsorted(chunk.offsets, offset)), failure)
