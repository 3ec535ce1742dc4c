"""The documentation holds together by itself: every page is found, every link leads on."""

import re
import unicodedata
from collections import Counter
from pathlib import Path

import pytest

from docs.site_source import DECISIONS, FRONT, NAVIGATION, ROOT, decisions, pages, write_source

PAGES = [*pages(), *sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs/notebook").glob("*.md"))]
LINK = re.compile(r"(?<!`)\]\(([^)\s]*)(?:\s+\"[^\"]*\")?\)")
FENCE = re.compile(r"^(?:```|~~~).*?^(?:```|~~~)[ ]*$", re.DOTALL | re.MULTILINE)


def prose(page: str) -> str:
    """A page without blocks of code."""
    return FENCE.sub("", (ROOT / page).read_text("utf-8"))


def anchor(title: str) -> str:
    """What a heading is called in links: as the code's host does, and the generator after it."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).replace("`", "").replace("*", "")
    kept = [c for c in text.lower() if c in " -_" or unicodedata.category(c)[0] in "LN"]
    return "".join(kept).replace(" ", "-")


def anchors(page: str) -> set[str]:
    found: Counter[str] = Counter()
    names = set()
    for title in re.findall(r"^#{1,6} +(.*?)\s*$", prose(page), re.MULTILINE):
        name = anchor(title)
        names.add(f"{name}-{found[name]}" if found[name] else name)
        found[name] += 1
    return names | set(re.findall(r"<a (?:id|name)=\"([^\"]+)\"", prose(page)))


def broken(page: str, text: str) -> list[str]:
    """Links of a text that do not lead to a file of the project, or to a heading of one."""
    wrong = []
    for link in LINK.findall(text):
        target, _, heading = link.partition("#")
        if "://" in link or link.startswith("mailto:"):
            continue
        path = ((ROOT / page).parent / target).resolve() if target else ROOT / page
        inside = path.is_relative_to(ROOT) and path.exists()
        place = str(path.relative_to(ROOT)) if inside else ""
        if not inside or (heading and (path.suffix != ".md" or heading not in anchors(place))):
            wrong.append(link)
    return wrong


def test_every_page_is_in_the_navigation_once() -> None:
    written = {str(p.relative_to(ROOT)) for p in (ROOT / "docs").glob("*.md")}
    shown = Counter(page for group in NAVIGATION.values() for page in group)
    assert written <= shown.keys()
    assert [page for page, times in shown.items() if times > 1] == []
    assert [page for page in shown if page != DECISIONS and not (ROOT / page).is_file()] == []


def test_every_decision_has_a_number_of_its_own() -> None:
    numbers = Counter(path.name.partition("-")[0] for path in decisions())
    assert [number for number, times in numbers.items() if times > 1] == []
    for path in decisions():
        assert path.read_text("utf-8").startswith(f"# {path.name[:4]}: "), path.name


@pytest.mark.parametrize("page", PAGES)
def test_links_and_anchors_of_a_page_resolve(page: str) -> None:
    assert broken(page, prose(page)) == []


def test_links_to_nowhere_are_found() -> None:
    text = (
        "[a](docs/none.md) [b](docs/operations.md#nope) [c](#nope) [d](docs/deployment.md#memory)"
    )
    assert broken(FRONT, text) == ["docs/none.md", "docs/operations.md#nope", "#nope"]


def test_the_source_of_the_site_holds_what_its_pages_link_to(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "stale.md").write_text("# gone\n")
    write_source(source)
    assert not (source / "stale.md").exists()
    for page in pages():
        staged = source / ("index.md" if page == FRONT else page)
        for link in LINK.findall(FENCE.sub("", staged.read_text("utf-8"))):
            target = link.partition("#")[0]
            if target and "://" not in link:
                assert (staged.parent / target).is_file(), f"{page}: {link}"
    front = (source / "index.md").read_text("utf-8")
    assert front.startswith((ROOT / FRONT).read_text("utf-8").partition("\n")[0])
    assert all(page in front for group in NAVIGATION.values() for page in group)
    listed = (source / DECISIONS).read_text("utf-8")
    assert all(path.name in listed for path in decisions())
