"""Prints the notes of a release: `python -m docs.release_notes [TAG]`, a section of CHANGELOG.md.

With a tag (v1.2.3) each file that names the version must agree with it, and the changelog must
have a dated section for it; without a tag the notes are those of what is not released yet.
"""

import re
import sys
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
_TITLE = re.compile(r"^## \[(?P<name>[^]]+)\](?: - (?P<date>\d{4}-\d\d-\d\d))?$", re.MULTILINE)


def named_versions(root: Path = ROOT) -> dict[str, str]:
    """Return the version that each file names."""
    projects = ("pyproject.toml", "paimon/pyproject.toml", "native/pyproject.toml")
    found = {
        name: tomllib.loads((root / name).read_text(encoding="utf-8"))["project"]["version"]
        for name in projects
    }
    cargo = tomllib.loads((root / "native" / "Cargo.toml").read_text(encoding="utf-8"))
    chart = yaml.safe_load((root / "helm/ingestd/Chart.yaml").read_text(encoding="utf-8"))
    return {
        **found,
        "native/Cargo.toml": cargo["package"]["version"],
        "Chart.yaml: version": chart["version"],
        "Chart.yaml: appVersion": chart["appVersion"],
    }


def section(changelog: str, name: str) -> str:
    """Return the text of a section; ValueError if it does not exist, is empty or has no date."""
    titles = list(_TITLE.finditer(changelog))
    for title, following in zip(titles, [*titles[1:], None], strict=True):
        if title["name"] == name:
            text = changelog[title.end() : following.start() if following else None].strip()
            if not text:
                raise ValueError(f"the section [{name}] of CHANGELOG.md is empty")
            if name != "Unreleased" and not title["date"]:
                raise ValueError(f"the section [{name}] of CHANGELOG.md has no date")
            return text
    raise ValueError(f"CHANGELOG.md has no section [{name}]")


def notes(tag: str, root: Path = ROOT) -> str:
    """Return the notes of a tag, or of what is not released yet for an empty one."""
    versions = named_versions(root)
    wanted = tag.removeprefix("v") if tag else versions["pyproject.toml"]
    if others := {name: one for name, one in versions.items() if one != wanted}:
        raise ValueError(f"the version is {wanted}, but {others}")
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    return section(changelog, wanted if tag else "Unreleased")


if __name__ == "__main__":
    try:
        sys.stdout.write(notes(sys.argv[1] if len(sys.argv) > 1 else "") + "\n")
    except ValueError as error:
        sys.exit(str(error))
