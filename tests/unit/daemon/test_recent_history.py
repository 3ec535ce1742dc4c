from collections import Counter

import pytest

from ingestd.daemon.recent_history import Recent
from ingestd.daemon.samples import total_lag
from ingestd.ingest.batch_events import BatchSummary, TableCommit
from ingestd.ingest.values.counts import Counts, RejectedSample
from ingestd.kafka.offset_ranges import SourcePartition

BAD = RejectedSample("s", "t", 0, 5, "decode", "not_json", "no JSON")


def summary(batch_id: int, records: int, *rejected: RejectedSample) -> BatchSummary:
    counts = Counts(records=Counter({SourcePartition("s", "t", 0): records}))
    commit = TableCommit("db.t", "committed", batch_id, 1, 0.1)
    return BatchSummary(
        str(batch_id), {}, (commit,) if records else (), counts, rejected, {"total": 2}
    )


def test_rates_are_differences_between_samples() -> None:
    recent = Recent()
    recent.sample(100.0, None, None)
    recent.finished(summary(1, 500), 105.0)
    recent.sample(110.0, 7, None)
    recent.sample(112.0, 9, None)
    recent.sample(130.0, 0, None)
    assert recent.rates() == [(110.0, 50.0), (130.0, 0.0)]
    assert recent.lags() == [(110.0, 7.0), (130.0, 0.0)]


def test_lists_are_bounded_and_newest_first() -> None:
    recent = Recent()
    for number in range(1_000):
        recent.sample(number * 10.0, number, None)
        recent.finished(summary(number, 1, BAD), float(number))
    document = recent.document()
    newest = [str(number) for number in range(999, 949, -1)]
    assert [batch["batch_id"] for batch in document["batches"]] == newest
    assert [one["at"] for one in document["rejected"]] == [float(n) for n in range(999, 979, -1)]
    assert len(document["lags"]) == 360


def test_a_batch_without_records_is_not_listed() -> None:
    recent = Recent()
    recent.finished(summary(1, 0), 1.0)
    assert recent.document()["batches"] == []


def test_a_rejected_record_has_its_coordinates() -> None:
    recent = Recent()
    recent.finished(summary(1, 1, BAD), 3.0)
    (one,) = recent.document()["rejected"]
    assert (one["topic"], one["partition"], one["offset"]) == ("t", 0, 5)
    assert (one["stage"], one["reason"], one["message"]) == ("decode", "not_json", "no JSON")


@pytest.mark.parametrize(("lags", "total"), [([], None), ([3, None], None), ([3, 4], 7), ([0], 0)])
def test_the_total_lag_is_unknown_while_a_part_is(lags: list[int | None], total: int) -> None:
    partitions = {str(number): {"lag": lag} for number, lag in enumerate(lags)}
    assert total_lag({"s": {"topics": {"t": partitions}}}) == total
