"""Plots as SVG text, without a library: lines over logarithmic axes, bars with their spread."""

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 640, 320
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 40, 48
BAR_HEIGHT, BAR_LEFT = 26, 170
COLOURS = ("#1f6feb", "#d1242f", "#2da44e", "#bf8700", "#8250df")
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: its name, and the values of the runs after it."""

    name: str
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class Scale:
    """From values to pixels, linear or by powers of ten."""

    low: float
    high: float
    begin: float
    end: float
    logarithmic: bool

    def __call__(self, value: float) -> float:
        low, high, at = self.low, self.high, value
        if self.logarithmic:
            low, high, at = math.log10(low), math.log10(high), math.log10(max(value, self.low))
        share = (at - low) / (high - low) if high > low else 0.5
        return self.begin + share * (self.end - self.begin)

    def ticks(self) -> list[float]:
        """The powers of ten on a logarithmic axis."""
        powers = range(math.ceil(math.log10(self.low)), math.floor(math.log10(self.high)) + 1)
        return [10.0**power for power in powers]


def lines(title: str, x_name: str, y_name: str, series: Mapping[str, Sequence[Point]]) -> str:
    """A chart of one or more lines; both axes are logarithmic, so a line of slope one is linear."""
    points = [point for line in series.values() for point in line if point[0] > 0]
    if not points:
        raise ValueError("nothing to plot")
    x = _logarithmic([point[0] for point in points], LEFT, WIDTH - RIGHT)
    y = _logarithmic([point[1] for point in points], HEIGHT - BOTTOM, TOP)
    body = [*_frame(title, x_name, y_name), *_axes(x, y)]
    for number, (name, line) in enumerate(series.items()):
        colour = COLOURS[number % len(COLOURS)]
        places = [(x(a), y(b)) for a, b in line if a > 0]
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
        body.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        body += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{colour}"/>' for a, b in places]
        body.append(_text(LEFT + 8, TOP + 14 + 16 * number, name, colour=colour))
    return _document(HEIGHT, body)


def bars(title: str, unit: str, rows: Sequence[Bar]) -> str:
    """Horizontal bars of medians, with a whisker from the least to the greatest value."""
    rows = [row for row in rows if row.values]
    if not rows:
        raise ValueError("nothing to plot")
    height = TOP + BAR_HEIGHT * len(rows) + BOTTOM
    most = max(max(row.values) for row in rows)
    x = Scale(0.0, most, BAR_LEFT, WIDTH - RIGHT - 80, logarithmic=False)
    body = [_text(WIDTH / 2, 20, title, anchor="middle", size=14)]
    body.append(_text((BAR_LEFT + WIDTH) / 2, height - 12, unit, anchor="middle"))
    for number, row in enumerate(rows):
        body += _bar(row, x, TOP + BAR_HEIGHT * number, COLOURS[number % len(COLOURS)])
    return _document(height, body)


def _bar(row: Bar, x: Scale, top: float, colour: str) -> Iterator[str]:
    middle, centre = statistics.median(row.values), top + BAR_HEIGHT / 2
    width = x(middle) - BAR_LEFT
    yield _text(BAR_LEFT - 8, centre + 4, row.name, anchor="end")
    yield _box(BAR_LEFT, top + 4, width, BAR_HEIGHT - 8, f'fill="{colour}"')
    low, high = x(min(row.values)), x(max(row.values))
    yield _line(low, centre, high, centre, "#24292f")
    yield _text(max(high, BAR_LEFT + width) + 6, centre + 4, _short(middle))


def _frame(title: str, x_name: str, y_name: str) -> Iterator[str]:
    yield _text(WIDTH / 2, 20, title, anchor="middle", size=14)
    yield _text((LEFT + WIDTH) / 2, HEIGHT - 10, x_name, anchor="middle")
    yield _text(LEFT - 52, TOP - 10, y_name)


def _axes(x: Scale, y: Scale) -> Iterator[str]:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    yield _box(LEFT, TOP, right - LEFT, bottom - TOP, 'fill="none" stroke="#d0d7de"')
    for value in x.ticks():
        yield _line(x(value), TOP, x(value), bottom, "#eaeef2")
        yield _text(x(value), bottom + 16, _short(value), anchor="middle")
    for value in y.ticks():
        yield _line(LEFT, y(value), right, y(value), "#eaeef2")
        yield _text(LEFT - 6, y(value) + 4, _short(value), anchor="end")


def _logarithmic(values: Sequence[float], begin: float, end: float) -> Scale:
    """An axis of whole powers of ten around all values."""
    low = 10.0 ** math.floor(math.log10(min(values)))
    high = 10.0 ** math.ceil(math.log10(max(values)))
    return Scale(low, high if high > low else low * 10, begin, end, logarithmic=True)


def _short(value: float) -> str:
    for size, dead_letter in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{dead_letter}"
    return f"{value:.3g}"


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def _box(x: float, y: float, width: float, height: float, look: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" {look}/>'


def _text(
    x: float, y: float, text: str, anchor: str = "start", size: int = 12, colour: str = "#57606a"
) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{colour}"'
    return f"<text {place}>{escape(text)}</text>"


def _document(height: float, body: Sequence[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" font-family="sans-serif">'
    )
    back = f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>'
    return "\n".join([head, back, *body, "</svg>", ""])
