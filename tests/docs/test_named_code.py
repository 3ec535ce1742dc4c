"""What the guides name in code font exists: files, folders, modules and their classes."""

import re
from pathlib import Path

import pytest

from docs.architecture_pictures import STEPS

ROOT = Path(__file__).resolve().parents[2]
GUIDES = (
    ROOT / "docs" / "architecture.md",
    ROOT / "docs" / "reliability.md",
    ROOT / "CONTRIBUTING.md",
)
DECISIONS = sorted((ROOT / "docs" / "adr").glob("[0-9]*.md"))
_CODE = re.compile(r"`([^`\n]+)`")
_FILE = re.compile(r"(?:\.ci|bench|config|docs|helm|ingestd|native|tests)/[\w./-]*[\w/]")
_MODULE = re.compile(
    r"(?:ingestd\.)?(?:cdc|cli|config|daemon|dev|ingest|kafka|paimon|spark|telemetry)(?:\.[a-z_]+)+"
)
_NOT_OURS = re.compile(
    r"kafka\.[a-z]+\.[a-z]+|spark\.(local|driver|executor|master|task|sql|python)\b.*"
)
"""Properties of Kafka and Spark."""
_REJECTED = {"ingestd.tables"}
"""Names that a decision considered and did not take."""


def _named(page: Path) -> list[str]:
    return _CODE.findall(re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL))


def _exists(name: str) -> bool:
    """Whether a dotted name is a package, a module, or a name in the text of one."""
    parts = name.removeprefix("ingestd.").split(".")
    for count in range(len(parts), 0, -1):
        path = ROOT.joinpath("ingestd", *parts[:count])
        if path.with_suffix(".py").exists():
            return all(part in path.with_suffix(".py").read_text() for part in parts[count:])
        if (path / "__init__.py").exists():
            return count == len(parts)
    return False


@pytest.mark.parametrize("page", (*GUIDES, *DECISIONS), ids=lambda page: page.name)
def test_files_that_a_page_names_exist(page: Path) -> None:
    named = [text.split("::")[0] for text in _named(page) if _FILE.fullmatch(text.split("::")[0])]
    assert [text for text in named if not (ROOT / text).exists()] == []


@pytest.mark.parametrize("page", (*GUIDES, *DECISIONS), ids=lambda page: page.name)
def test_modules_that_a_page_names_exist(page: Path) -> None:
    named = {text for text in _named(page) if _MODULE.fullmatch(text)} - _REJECTED
    ours = {text for text in named if not _NOT_OURS.fullmatch(text)}
    assert sorted(text for text in ours if not _exists(text)) == []


def test_modules_that_the_picture_names_exist() -> None:
    named = [module for _, steps in STEPS for _, module in steps]
    assert len(named) > 10
    assert [module for module in named if not _exists(module)] == []
