"""Generated pages are current, and links inside the documentation lead somewhere."""

import re
from pathlib import Path

import pytest

from docs.generate import pages

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "bench").glob("*.md")])


def test_generated_pages_are_current() -> None:
    stale = [p.name for p, text in pages().items() if not p.exists() or p.read_text() != text]
    assert stale == [], "run `make docs`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    assert [t for t in targets if not (page.parent / t).exists()] == []


def test_every_configuration_key_and_metric_is_described() -> None:
    for name in ("configuration.md", "metrics.md"):
        rows = [
            line
            for line in (ROOT / "docs" / name).read_text().splitlines()
            if line.startswith("| `")
        ]
        assert rows
        assert [row for row in rows if row.rstrip("| ").endswith("|") or "|  |" in row] == []
