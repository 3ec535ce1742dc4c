import re

import pytest

from ingestd.daemon.console.chart import HEIGHT, WIDTH, TimeSpan, amount, axis_top, chart

SPAN = TimeSpan(0, 100, 30)


def path(figure: str) -> str:
    found = re.findall(r'<path d="([^"]*)"', figure)
    return str(found[0])


def test_newest_is_at_the_right_and_the_largest_at_its_height_on_the_axis() -> None:
    points = [(0.0, 0.0), (25.0, 10.0), (50.0, 5.0), (75.0, 5.0), (100.0, 2.5)]
    half, right = WIDTH / 2, WIDTH
    assert path(chart("Lag", "records", points, SPAN, 2.5)) == (
        f"M0.0,{HEIGHT:.1f}h0 L{WIDTH / 4:.1f},0.0 L{half:.1f},{HEIGHT / 2:.1f} "
        f"L{WIDTH * 0.75:.1f},{HEIGHT / 2:.1f} L{right:.1f},{HEIGHT * 0.75:.1f}"
    )


def test_what_is_unknown_is_a_gap_and_never_zero() -> None:
    points = [(10.0, 1.0), (20.0, None), (30.0, 1.0), (95.0, 1.0)]
    figure = chart("Lag", "records", points, SPAN, None)
    assert path(figure) == "M48.0,0.0h0 M144.0,0.0h0 M456.0,0.0h0"
    assert "<b>–</b> records" in figure
    assert path(chart("Lag", "records", [(50.0, None)], SPAN, None)) == ""


def test_words_and_axes_say_what_the_chart_shows() -> None:
    figure = chart('Records "behind"', "records", [(0.0, 7.0), (60.0, 1234.0)], SPAN, 1234.0)
    summary = 'aria-label="Records &quot;behind&quot; in records: now 1,234, from 7 to 1,234"'
    assert summary in figure
    assert "<span>2,000</span><span>1,000</span><span>0</span>" in figure
    assert "<span>00:00</span>" in figure
    assert "<span>00:01</span>" in figure


@pytest.mark.parametrize(
    ("largest", "top"), [(0, 1), (1, 1), (1.1, 2), (5, 5), (5.1, 10), (999, 1000), (1e6, 1e6)]
)
def test_axes_end_at_round_numbers(largest: float, top: float) -> None:
    assert axis_top(largest) == top


def test_small_amounts_keep_their_digits() -> None:
    assert [amount(value) for value in (None, 0.0, 0.25, 1.42, 3.0, 12.4)] == [
        "–", "0", "0.25", "1.4", "3", "12"
    ]  # fmt: skip
