import pytest

from ingestd.ingest.maintenance.backlog import Backlog, is_cut
from ingestd.kafka.offset_ranges import BatchOffsets


def batch(**taken: int) -> BatchOffsets:
    start = {source: {"t": {0: 10, 1: 10}} for source in taken}
    until = {source: {"t": {0: 10 + rows, 1: 10}} for source, rows in taken.items()}
    return BatchOffsets(start, until)


@pytest.mark.parametrize(
    ("offsets", "cut"),
    [
        (batch(a=99, b=9), False),
        (batch(a=100, b=0), True),
        (batch(a=0, b=10), True),
        (batch(), False),
        (batch(gone=1000), False),
    ],
)
def test_a_batch_is_cut_when_a_source_gave_all_that_its_limit_allows(
    offsets: BatchOffsets, cut: bool
) -> None:
    assert is_cut(offsets, {"a": 100, "b": 10}) is cut


def test_a_backlog_lasts_from_a_limited_batch_to_one_that_is_not() -> None:
    stream = Backlog()
    stream.ended(True, 10.0)
    assert stream.is_lagging(10.0)
    stream.began()
    assert stream.is_lagging(1000.0)
    stream.ended(False, 1000.0)
    assert not stream.is_lagging(1000.0)
    stream.began()
    assert not stream.is_lagging(1001.0)


def test_a_backlog_ends_when_no_batch_follows() -> None:
    stream = Backlog()
    stream.ended(True, 10.0)
    assert stream.is_lagging(14.9)
    assert not stream.is_lagging(15.0)
    stream.began()
    assert stream.is_lagging(16.0)


def test_a_failed_batch_leaves_no_backlog_until_tables_are_opened_again() -> None:
    stream = Backlog()
    stream.opened(0.0)
    stream.began()
    stream.died()
    assert not stream.is_lagging(1.0)
    stream.opened(2.0)
    assert stream.is_lagging(2.0)


def test_it_counts_as_a_backlog_until_the_first_batch_has_ended() -> None:
    stream = Backlog()
    assert not stream.is_lagging(0.0)
    stream.opened(0.0)
    assert stream.is_lagging(29.9)
    assert not stream.is_lagging(30.0)
    stream.began()
    assert stream.is_lagging(100.0)
    stream.opened(100.0)
    assert not stream.is_lagging(130.0)
