"""Line charts of the console: lines in SVG, labels in HTML, so that no text is stretched.

Unknown values are gaps; a value between two gaps is a dot.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from ingestd.daemon.console.elements import UNKNOWN, text

WIDTH = 480
HEIGHT = 120
_STEPS = (1.0, 2.0, 5.0, 10.0)
_TICKS = 5

Point = tuple[float, float | None]


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """The times that a chart shows, in seconds since 1970.

    Points more than `gap` seconds apart are not connected.
    """

    start: float
    end: float
    gap: float


def chart(title: str, unit: str, points: Sequence[Point], span: TimeSpan, now: float | None) -> str:
    """Return an SVG line chart of the points within `span`, as an HTML figure.

    `points` are (seconds since 1970, value or None), oldest first. `now` is the current value, or
    None if it is unknown.
    """
    known = [value for _, value in points if value is not None]
    top = axis_top(max(known, default=0.0))
    summary = f"{title} in {unit}: now {amount(now)}"
    if known:
        summary += f", from {amount(min(known))} to {amount(max(known))}"
    labels = "".join(f"<span>{amount(top * share)}</span>" for share in (1.0, 0.5, 0.0))
    moments = (span.start + (span.end - span.start) * n / (_TICKS - 1) for n in range(_TICKS))
    times = "".join(f"<span>{datetime.fromtimestamp(at, UTC):%H:%M}</span>" for at in moments)
    return (
        f"<figure><figcaption>{text(title)} <b>{amount(now)}</b> {text(unit)}</figcaption>"
        f'<div class="chart"><p class="values" aria-hidden="true">{labels}</p>'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="{text(summary)}"><path class="grid" d="{_grid()}"/>'
        f'<path d="{" ".join(_lines(points, span, top))}"/></svg>'
        f'<p class="times" aria-hidden="true">{times}</p></div></figure>'
    )


def amount(value: float | None) -> str:
    """Format a value for a label; None becomes a dash.

    Integers and values of at least 10 have no decimals, others up to two significant digits.
    """
    if value is None:
        return UNKNOWN
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.2g}"


def axis_top(largest: float) -> float:
    """Return the value at the top of an axis for values up to `largest`.

    It is the smallest number that is 1, 2 or 5 times a power of ten, at least `largest`, and at
    least 1.
    """
    if largest <= 1:
        return 1.0
    power = 10.0 ** math.floor(math.log10(largest))
    return next(power * step for step in _STEPS if power * step >= largest)


def _lines(points: Sequence[Point], span: TimeSpan, top: float) -> Iterator[str]:
    """Yield the SVG path commands of the lines and dots."""
    scale = WIDTH / (span.end - span.start)
    before: float | None = None
    for at, value in points:
        if value is None or at < span.start:
            before = None
            continue
        x, y = (at - span.start) * scale, HEIGHT - min(value / top, 1.0) * HEIGHT
        connected = before is not None and at - before <= span.gap
        yield f"L{x:.1f},{y:.1f}" if connected else f"M{x:.1f},{y:.1f}h0"
        before = at


def _grid() -> str:
    across = (f"M0,{HEIGHT * share:.0f}h{WIDTH}" for share in (0.0, 0.5, 1.0))
    down = (f"M{WIDTH * n / (_TICKS - 1):.0f},0v{HEIGHT}" for n in range(_TICKS))
    return " ".join((*across, *down))
