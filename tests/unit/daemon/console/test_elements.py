import re

from ingestd.daemon.console.elements import sparkline


def coordinates(svg: str) -> list[tuple[float, float]]:
    found = re.search(r'points="([^"]*)"', svg)
    assert found is not None
    pairs = [one.split(",") for one in found[1].split()]
    return [(float(x), float(y)) for x, y in pairs]


def test_newest_is_at_the_right_and_the_largest_on_top() -> None:
    points = coordinates(sparkline([(0, 0), (50, 10), (100, 5)], "lag", 100))
    assert [x for x, _ in points] == [0, 240, 480]
    heights = [y for _, y in points]
    assert heights[1] == min(heights)
    assert heights[0] == max(heights)


def test_older_points_are_left_out() -> None:
    assert len(coordinates(sparkline([(0, 9), (950, 1), (1000, 2)], "lag", 100))) == 2


def test_zeros_lie_on_the_ground() -> None:
    assert {y for _, y in coordinates(sparkline([(0, 0), (10, 0)], "lag", 100))} == {70.0}


def test_words_say_what_the_plot_shows() -> None:
    text = sparkline([(0, 7), (600, 1234)], 'Records "behind"', 3600)
    assert 'aria-label="Records &quot;behind&quot;: now 1,234, at most 1,234, over 10 min"' in text


def test_one_point_is_no_plot() -> None:
    assert "not enough" in sparkline([(0, 7)], "lag", 100)
