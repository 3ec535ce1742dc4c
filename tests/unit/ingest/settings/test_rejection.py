"""Limits of rejected records, batch by batch."""

from collections import Counter

import pytest

from ingestd.errors import PolicyStopError
from ingestd.ingest.settings.rejection import GAP_STAGE, RejectionLimiter, RejectionLimits
from ingestd.ingest.values.counts import Counts, RejectedSample
from ingestd.kafka.offset_ranges import SourcePartition


def batch(records: int, rejected: int, stage: str = "decode") -> Counts:
    counts = Counts(records=Counter({SourcePartition("s", "t", 0): records}))
    counts.rejected[stage, "why"] = rejected
    return counts


def sample(offset: int, stage: str = "decode") -> RejectedSample:
    return RejectedSample("s", "t", 0, offset, stage, "why", "because")


def test_without_limits_everything_may_be_rejected() -> None:
    RejectionLimiter(RejectionLimits()).check(batch(10**6, 10**6), ())


def test_more_than_the_run_may_have_stops_it_and_names_the_first() -> None:
    gauge = RejectionLimiter(RejectionLimits(max_records=5))
    gauge.check(batch(10, 3), [sample(1)])
    gauge.check(batch(10, 2), [sample(11)])
    gauge.check(batch(10, 0), ())
    samples = [sample(offset) for offset in (24, 21, 23, 22)]
    with pytest.raises(PolicyStopError) as caught:
        gauge.check(batch(10, 4), samples)
    assert caught.value.exit_code == 5
    assert "9 rejected records in this run, 5 are allowed" in caught.value.message
    assert "t/0 at 21 (decode, why); t/0 at 22 (decode, why); t/0 at 23" in caught.value.message
    assert "at 24" not in caught.value.message


def test_a_limit_of_none_allows_none() -> None:
    gauge = RejectionLimiter(RejectionLimits(max_records=0))
    gauge.check(batch(10, 0), ())
    with pytest.raises(PolicyStopError):
        gauge.check(batch(10, 1), [sample(1)])


def test_a_share_is_that_of_a_whole_window_even_at_the_start() -> None:
    gauge = RejectionLimiter(RejectionLimits(max_ratio=0.1, window=100))
    gauge.check(batch(10, 10), [sample(0)])
    with pytest.raises(PolicyStopError, match="11 of the newest 20 records were rejected"):
        gauge.check(batch(10, 1), [sample(10)])


def test_batches_that_left_the_window_count_no_more() -> None:
    gauge = RejectionLimiter(RejectionLimits(max_ratio=0.1, window=100))
    gauge.check(batch(100, 10), [sample(0)])
    for _ in range(5):
        gauge.check(batch(50, 5), [sample(0)])
    with pytest.raises(PolicyStopError, match="11 of the newest 100 records"):
        gauge.check(batch(50, 6), [sample(7)])


def test_a_batch_larger_than_the_window_is_judged_by_its_own_share() -> None:
    gauge = RejectionLimiter(RejectionLimits(max_ratio=0.1, window=100))
    gauge.check(batch(1000, 100), [sample(0)])
    with pytest.raises(PolicyStopError, match="101 of the newest 1000 records"):
        gauge.check(batch(1000, 101), [sample(0)])


def test_gaps_of_the_log_are_no_rejected_records() -> None:
    gauge = RejectionLimiter(RejectionLimits(max_records=0, max_ratio=0.0))
    gauge.check(batch(10, 1, GAP_STAGE), [sample(0, GAP_STAGE)])
    counts = batch(10, 1)
    counts.rejected[GAP_STAGE, "offset-gap"] = 1
    with pytest.raises(PolicyStopError, match=r"1 rejected records.*first: t/0 at 5 \(decode"):
        gauge.check(counts, [sample(0, GAP_STAGE), sample(5)])
