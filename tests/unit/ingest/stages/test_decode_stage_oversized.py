"""Parts of record chunks: sizes of records, and those that are too large."""

from dataclasses import replace

import numpy as np
import pytest

from ingestd.cdc.base import RecordChunk
from ingestd.ingest.stages.decode_stage import drop_oversized

CHUNK = RecordChunk(
    topic="orders",
    partition=1,
    offsets=np.array([5, 6, 8]),
    timestamps=np.array([50, 60, 80]),
    keys=[b"k1", None, b"key"],
    values=[b"value", b"v", None],
    headers=None,
)
COUNTED = replace(CHUNK, sizes=np.array([7, 1, 3]))


def test_sizes_are_counted_where_nobody_did() -> None:
    assert CHUNK.record_sizes().tolist() == [7, 1, 3]
    assert COUNTED.record_sizes() is COUNTED.sizes


@pytest.mark.parametrize("chunk", [CHUNK, COUNTED], ids=["counted here", "counted before"])
def test_a_record_above_the_limit_is_rejected_and_its_neighbours_stay(chunk: RecordChunk) -> None:
    kept, rejected = drop_oversized(chunk, 3)
    assert (kept.offsets.tolist(), kept.values) == ([6, 8], [b"v", None])
    assert kept.record_sizes().tolist() == [1, 3]
    (one,) = rejected
    assert (one.offset, one.timestamp, one.value, one.reason) == (5, 50, b"value", "too-large")


def test_a_chunk_within_the_limit_is_not_copied() -> None:
    assert drop_oversized(COUNTED, 7) == (COUNTED, [])
    assert drop_oversized(COUNTED, 7)[0] is COUNTED
