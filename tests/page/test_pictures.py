"""The pictures of the console in docs are of the console as it is today."""

import json

import pytest

from tests.page.pictures import DOCS, FINGERPRINTS, FOLDER, LOOKS, VIEWS, fingerprints


def test_they_show_the_console_of_today() -> None:
    """If they do not: `python -m tests.page.pictures`, with a Chromium, and look at them."""
    assert json.loads(FINGERPRINTS.read_text()) == fingerprints()
    assert fingerprints() == fingerprints(), "the scene is always the same"


@pytest.mark.parametrize("name", VIEWS)
def test_the_documentation_shows_each_view(name: str) -> None:
    text = (DOCS / "operations.md").read_text()
    for look in LOOKS:
        assert f"(console/{name}-{look}.webp)" in text
        picture = (FOLDER / f"{name}-{look}.webp").read_bytes()
        assert (picture[:4], picture[8:12]) == (b"RIFF", b"WEBP")
