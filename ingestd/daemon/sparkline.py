"""A small plot as SVG, from points of time and value."""

import html
from collections.abc import Sequence

_WIDTH = 480
_HEIGHT = 72


def sparkline(points: Sequence[tuple[float, float]], name: str, span: float) -> str:
    """An SVG of the last `span` seconds with `name` and its extremes as text for screen readers.

    Points are (seconds, value), oldest first; without two of them the plot says so.
    """
    if len(points) < 2:
        return '<p class="empty">not enough seen yet</p>'
    end = points[-1][0]
    shown = [one for one in points if end - one[0] <= span]
    top = max(value for _, value in shown) or 1.0
    path = " ".join(
        f"{_WIDTH - (end - at) / span * _WIDTH:.1f},{_HEIGHT - 2 - value / top * (_HEIGHT - 4):.1f}"
        for at, value in shown
    )
    now, minutes = shown[-1][1], (end - shown[0][0]) / 60
    words = f"{name}: now {now:,.0f}, at most {top:,.0f}, over {minutes:.0f} min"
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="{html.escape(words)}"><polyline points="{path}"/></svg>'
    )
