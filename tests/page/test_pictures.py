"""The pictures of the page in docs are of the page as it is today."""

import pytest

from tests.page.pictures import DOCS, PICTURES, fingerprint, marked, shown_in


@pytest.mark.parametrize("name", PICTURES)
def test_it_shows_the_page_of_today(name: str) -> None:
    """If it does not: `python -m tests.page.pictures`, with a Chromium."""
    assert shown_in((DOCS / name).read_bytes()) == fingerprint()


def test_the_scene_is_always_the_same_and_a_changed_page_is_noticed() -> None:
    assert fingerprint() == fingerprint()
    picture = (DOCS / "page-light.png").read_bytes()
    bare = picture.replace(fingerprint(), b"0" * len(fingerprint()))
    assert shown_in(bare) != fingerprint()
    assert shown_in(marked(picture[:33], b"another")) == b"another"


@pytest.mark.parametrize("name", PICTURES)
def test_the_documentation_shows_it(name: str) -> None:
    assert f"({name})" in (DOCS / "operations.md").read_text()
