"""Records that come in parts leave in chunks of bounded size, in order and each once."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingestd.cdc.base import RecordChunk
from ingestd.kafka.records import RecordColumns, Records


def records(first: int, values: list[bytes | None], *, headers: bool = False) -> Records:
    count = len(values)
    offsets = np.arange(first, first + count)
    return Records(
        offsets=offsets,
        timestamps=offsets + 1000,
        sizes=np.array([len(value or b"") for value in values], np.int64),
        keys=[None] * count,
        values=values,
        headers=[[("at", b"%d" % number)] for number in offsets] if headers else None,
    )


def chunks(columns: RecordColumns, max_records: int, max_bytes: int) -> list[RecordChunk]:
    found = []
    while columns:
        found.append(columns.take(max_records, max_bytes))
    return found


@settings(deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 9), max_size=6), max_size=6),
    st.integers(1, 9),
    st.integers(1, 20),
)
def test_every_record_leaves_once_within_the_bounds(
    parts: list[list[int]], max_records: int, max_bytes: int
) -> None:
    columns = RecordColumns("topic", 3)
    values: list[bytes | None] = []
    for sizes in parts:
        part: list[bytes | None] = [b"x" * size if size else None for size in sizes]
        columns.add(records(len(values), part))
        values += part
    assert len(columns) == len(values)
    found = chunks(columns, max_records, max_bytes)
    assert [value for chunk in found for value in chunk.values] == values
    assert [int(offset) for chunk in found for offset in chunk.offsets] == list(range(len(values)))
    for chunk in found:
        assert chunk.sizes is not None
        assert 1 <= len(chunk.values) <= max_records
        assert int(chunk.sizes.sum()) <= max_bytes or len(chunk.values) == 1
        assert (chunk.timestamps == chunk.offsets + 1000).all()


@settings(deadline=None)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=12), st.integers(1, 30))
def test_a_chunk_takes_all_that_fits(sizes: list[int], max_bytes: int) -> None:
    columns = RecordColumns("topic", 0)
    for number, size in enumerate(sizes):
        columns.add(records(number, [b"x" * size]))
    first = columns.take(100, max_bytes)
    taken = len(first.values)
    assert taken == len(sizes) or sum(sizes[: taken + 1]) >= max_bytes


@pytest.mark.parametrize(("bounds", "full"), [((3, 100), True), ((4, 5), True), ((4, 100), False)])
def test_full_means_enough_records_or_bytes(bounds: tuple[int, int], full: bool) -> None:
    columns = RecordColumns("topic", 0)
    columns.add(records(0, [b"ab", b"cd", b"e"]))
    assert columns.is_full(*bounds) is full


def test_headers_stay_with_their_records() -> None:
    columns = RecordColumns("topic", 0)
    columns.add(records(0, [b"a", b"b"], headers=True))
    columns.add(records(2, [b"c"], headers=True))
    first, second = chunks(columns, 2, 100)
    assert first.headers == [[("at", b"0")], [("at", b"1")]]
    assert second.headers == [[("at", b"2")]]
