import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingestd.config.units import format_duration, format_size, parse_duration, parse_size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10s", 10),
        ("500ms", 0.5),
        ("1 min", 60),
        ("1min", 60),
        ("1.5 h", 5400),
        (" 2 d ", 172800),
        ("0s", 0),
        ("3 Minutes", 180),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["10", "", "s", "-1s", "10 parsec", "1s 2s", "1mb"])
def test_no_durations(text: str) -> None:
    with pytest.raises(ValueError, match="write 10s"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "size"),
    [("512mb", 512 << 20), ("16 MB", 16 << 20), ("1gb", 1 << 30), ("100b", 100), ("1.5kb", 1536)],
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["512", "mb", "-1kb", "10s", "0.3b"])
def test_no_sizes(text: str) -> None:
    with pytest.raises(ValueError, match="write 512kb"):
        parse_size(text)


@given(st.integers(0, 10**9))
def test_a_shown_duration_reads_as_the_same(millis: int) -> None:
    assert parse_duration(format_duration(millis / 1000)) == pytest.approx(millis / 1000)


@given(st.integers(0, 1 << 40))
def test_a_shown_size_reads_as_the_same(size: int) -> None:
    assert parse_size(format_size(size)) == size
