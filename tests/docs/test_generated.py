"""Generated pages are current, and links inside the documentation lead somewhere."""

import re
from pathlib import Path

import pytest

from docs.configuration_page import keys
from docs.generate import pages
from ingestd.config.model import Config

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "bench").glob("*.md")])


def test_generated_pages_are_current() -> None:
    stale = [p.name for p, text in pages().items() if not p.exists() or p.read_text() != text]
    assert stale == [], "run `make docs`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    assert [t for t in targets if not (page.parent / t).exists()] == []


def test_every_metric_is_described() -> None:
    lines = (ROOT / "docs" / "metrics.md").read_text().splitlines()
    rows = [line for line in lines if line.startswith("| `")]
    assert rows
    assert [row for row in rows if row.rstrip("| ").endswith("|") or "|  |" in row] == []


def test_every_configuration_key_is_described_and_has_an_anchor_of_its_own() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text()
    found = re.findall(r'^\* <a id="([^"]+)"></a>`([^`]+)` \([^\n]+\): \S', page, re.MULTILINE)
    assert sorted(key for _, key in found) == sorted(key for key, *_ in keys(Config))
    assert len({anchor for anchor, _ in found}) == len(found)
    assert ("sources-name-format", "sources.NAME.format") in found
    assert len(re.findall(r"^## ", page, re.MULTILINE)) > 10
