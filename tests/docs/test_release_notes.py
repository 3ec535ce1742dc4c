"""The notes of a release are its section of the changelog, and all files name its version."""

import shutil
from pathlib import Path

import pytest

from docs.release_notes import ROOT, named_versions, notes, section

CHANGES = """# Changelog

## [Unreleased]

## [1.1.0] - 2027-01-02

### Added
- More.

## [1.0.0]
- First.
"""
FILES = (
    "pyproject.toml",
    "paimon/pyproject.toml",
    "native/pyproject.toml",
    "native/Cargo.toml",
    "helm/ingestd/Chart.yaml",
)


def test_a_section_ends_where_the_next_begins() -> None:
    assert section(CHANGES, "1.1.0") == "### Added\n- More."


@pytest.mark.parametrize(
    ("name", "error"), [("2.0.0", "no section"), ("Unreleased", "is empty"), ("1.0.0", "no date")]
)
def test_a_section_that_cannot_be_released_is_refused(name: str, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        section(CHANGES, name)


def test_the_tree_names_one_version_and_has_notes() -> None:
    assert len(set(named_versions().values())) == 1
    assert notes("").startswith("### ")


@pytest.mark.parametrize("changed", FILES)
def test_a_tag_that_a_file_does_not_agree_with_is_refused(tmp_path: Path, changed: str) -> None:
    version = named_versions()["pyproject.toml"]
    for name in (*FILES, "CHANGELOG.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "CHANGELOG.md").write_text(CHANGES.replace("1.1.0", version))
    assert notes(f"v{version}", tmp_path) == "### Added\n- More."
    file = tmp_path / changed
    file.write_text(file.read_text().replace(version, "9.9.9", 1))
    with pytest.raises(ValueError, match=r"9\.9\.9"):
        notes(f"v{version}", tmp_path)
