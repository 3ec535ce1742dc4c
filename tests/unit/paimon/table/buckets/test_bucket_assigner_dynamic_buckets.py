"""Which dynamic bucket new keys are put into."""

from collections.abc import Mapping

import numpy as np
import pytest

from ingestd.errors import UnsupportedError
from ingestd.paimon.io.file_io import MemoryFileIO
from ingestd.paimon.table.buckets.bucket_assigner import MAX_BUCKETS, OwnedBuckets
from tests.support.native_tables import native_table


def _assigned(
    counts: Mapping[int, int], keys: int, *, assigner: int = 0, assigners: int = 1, most: int = -1
) -> list[int]:
    options = {"dynamic-bucket.target-row-num": "3", "dynamic-bucket.max-buckets": str(most)}
    table = native_table("/w", [("id", "INT")], keys=["id"], options=options, io=MemoryFileIO())
    owned = OwnedBuckets(table, counts, assigner, assigners)
    return owned.assign(np.arange(keys, dtype=np.uint64)).tolist()


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({}, [0, 0, 0, 1, 1]),
        ({0: 3, 1: 2}, [1, 2, 2, 2, 3]),
        ({2: 1, 0: 2}, [0, 2, 2, 1, 1]),
        ({0: 9}, [1, 1, 1, 2, 2]),
    ],
)
def test_buckets_with_room_are_filled_in_order_and_then_new_ones(
    counts: Mapping[int, int], expected: list[int]
) -> None:
    assert _assigned(counts, 5) == expected


def test_an_assigner_keeps_to_its_own_buckets() -> None:
    assert _assigned({0: 1, 1: 3, 2: 0}, 4, assigner=1, assigners=2) == [3, 3, 3, 5]


def test_at_the_limit_keys_are_shared_out_over_full_buckets() -> None:
    assert _assigned({0: 3, 1: 3}, 6, most=2) == [0, 1, 0, 1, 0, 1]
    assert _assigned({2: 3}, 2, most=3) == [2, 2], "as Java: the limit is on the largest number"


def test_what_was_placed_counts_the_next_time() -> None:
    table = native_table("/w", [("id", "INT")], keys=["id"], io=MemoryFileIO(),
                         options={"dynamic-bucket.target-row-num": "3"})  # fmt: skip
    owned, keys = OwnedBuckets(table, {}, 0, 1), np.arange(2, dtype=np.uint64)
    assert owned.assign(keys).tolist() == [0, 0]
    assert owned.assign(keys).tolist() == [0, 1]


def test_no_bucket_left_is_an_error_with_a_way_out() -> None:
    with pytest.raises(UnsupportedError, match=r"dynamic-bucket\.max-buckets"):
        _assigned({}, 1, assigner=2, assigners=3, most=2)
    with pytest.raises(UnsupportedError, match=r"dynamic-bucket\.max-buckets"):
        _assigned({MAX_BUCKETS - 1: 3}, 1)
