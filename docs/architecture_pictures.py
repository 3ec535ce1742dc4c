"""Draws the pictures of docs/architecture.md: the layers, and the path of a record.

The layers are those of the import contracts in pyproject.toml, so the picture cannot differ from
what `make layers` checks. Colours suit light and dark pages.
"""

import tomllib
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[1]
_WIDTH = 960
_ROW = 44
_INK, _LINE, _BOX, _OWN = "#57606a", "#8c959f", "#eaeef2", "#ddf4ff"
_COLUMNS = (
    ("ingestd", "layers"),
    ("ingestd.ingest", "ingest-layers"),
    ("ingestd.paimon", "paimon-layers"),
    ("ingestd.paimon.table", "table-layers"),
)
STEPS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    (
        "driver: plan a batch",
        (
            ("end offsets", "kafka.planner"),
            ("offset ranges", "spark.offset_source"),
            ("tables, schemas", "ingest.tables"),
            ("batch context", "ingest.settings.context"),
        ),
    ),
    (
        "stage 1: one task for each share of the ranges",
        (
            ("fetch", "kafka.fetch"),
            ("decode", "cdc"),
            ("route", "ingest.rows.router"),
            ("conform to schema", "ingest.rows.conform"),
            ("blobs by slot", "ingest.rows.blobs"),
        ),
    ),
    (
        "stage 2: one task for each slot",
        (
            ("order, number rows", "ingest.stages.write_stage"),
            ("assign buckets", "paimon.table.buckets"),
            ("merge by key", "paimon.merge"),
            ("sort, write files", "paimon.table.write"),
            ("commit message", "paimon.table.write"),
        ),
    ),
    (
        "driver: commit",
        (
            ("dead letters first", "ingest.dead_letters"),
            ("manifests", "paimon.table.commit"),
            ("snapshot", "paimon.table.commit"),
            ("claims file", "ingest.tables.claims"),
            ("metrics", "metrics"),
        ),
    ),
)


def layers_picture() -> str:
    """Return an SVG with a column for each package whose layers a contract holds."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = {contract["id"]: contract.get("layers", []) for contract in contracts["contracts"]}
    width = _WIDTH // len(_COLUMNS)
    shapes = []
    for column, (package, contract) in enumerate(_COLUMNS):
        left = column * width
        shapes.append(_text(left + width // 2, 24, package, bold=True))
        for row, layer in enumerate(layers[contract]):
            names = layer.replace(" | ", ", ")
            shapes += _box(left + 8, 40 + row * _ROW, width - 16, _wrapped(names, 30))
    rows = max(len(layers[contract]) for _, contract in _COLUMNS)
    return _svg(shapes, 40 + rows * _ROW + 8, "Layers: imports point down only")


def record_picture() -> str:
    """Return an SVG with the steps of a record, and the package of each, by process."""
    shapes, lane = [], 112
    for number, (title, steps) in enumerate(STEPS):
        top = 8 + number * lane
        shapes.append(
            f'<rect x="4" y="{top}" width="{_WIDTH - 8}" height="{lane - 12}" rx="6" fill="none" '
            f'stroke="{_LINE}" stroke-dasharray="4 3"/>'
        )
        shapes.append(_text(16, top + 20, title, anchor="start", bold=True))
        width = (_WIDTH - 40) // len(steps)
        for position, (step, package) in enumerate(steps):
            left = 20 + position * width
            shapes += _box(left, top + 34, width - 28, [step, package], fill=_OWN, height=52)
            if position:
                shapes.append(_arrow(left - 27, top + 60, left - 2))
    return _svg(shapes, 8 + len(STEPS) * lane, "Path of a record")


def _box(
    left: int, top: int, width: int, lines: Sequence[str], fill: str = _BOX, height: int = _ROW - 8
) -> list[str]:
    first = top + height // 2 + 4 - 7 * (len(lines) - 1)
    texts = [_text(left + width // 2, first + 14 * n, line) for n, line in enumerate(lines)]
    size = f'width="{width}" height="{height}"'
    return [f'<rect x="{left}" y="{top}" {size} rx="4" fill="{fill}" stroke="{_LINE}"/>', *texts]


def _arrow(start: int, y: int, end: int) -> str:
    head = f"M{end - 6},{y - 4} L{end},{y} L{end - 6},{y + 4}"
    return f'<path d="M{start},{y} H{end} {head}" stroke="{_INK}" fill="none"/>'


def _text(x: int, y: int, text: str, anchor: str = "middle", *, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return (
        f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-size="11"{weight} fill="#24292f">'
        f"{escape(text)}</text>"
    )


def _wrapped(text: str, most: int) -> list[str]:
    """Break a list of names longer than `most` characters into two lines at the middle comma."""
    if len(text) <= most:
        return [text]
    commas = [at for at, letter in enumerate(text) if letter == ","]
    cut = min(commas, key=lambda at: abs(at - len(text) // 2)) + 1
    return [text[:cut], text[cut + 1 :]]


def _svg(shapes: Sequence[str], height: int, title: str) -> str:
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
            'font-family="sans-serif" role="img">',
            f"<title>{escape(title)}</title>",
            f'<rect width="{_WIDTH}" height="{height}" rx="6" fill="#ffffff"/>',
            *shapes,
            "</svg>\n",
        ]
    )
