"""Links to the specification name a page of Paimon 1.4's documents and a section of that page."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SITE = "https://paimon.apache.org/docs/1.4/"
LINK = re.compile(re.escape(SITE) + r"([a-z/-]+)/(?:#([\w-]+))?")
SECTIONS = {
    page: anchors.split()
    for page, _, anchors in (
        line.partition(":")
        for line in (Path(__file__).parent / "specification_sections.txt").read_text().splitlines()
    )
}
SOURCES = sorted((ROOT / "ingestd").rglob("*.py"))


@pytest.mark.parametrize("page", SECTIONS)
def test_every_listed_page_is_linked(page: str) -> None:
    """A page that nothing links to goes from the list."""
    assert any(f"{SITE}{page}/" in path.read_text() for path in SOURCES)


def test_links_name_a_section_that_the_page_has() -> None:
    unknown = {
        (str(path.relative_to(ROOT)), match[0])
        for path in SOURCES
        for match in LINK.finditer(path.read_text())
        if SECTIONS.get(match[1]) is None
        or (match[2] not in SECTIONS[match[1]] and (match[2] or SECTIONS[match[1]]))
    }
    assert unknown == set()


def test_a_specification_is_a_link() -> None:
    without = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in SOURCES
        for line in path.read_text().splitlines()
        if "Specification:" in line and "https://" not in line
    ]
    assert without == []
