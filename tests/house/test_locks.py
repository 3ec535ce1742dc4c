"""The lock files install exactly what pyproject.toml asks for, checked by hash."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOCKS = (
    "requirements.lock",
    "requirements-dev.lock",
    "requirements-build.lock",
    "paimon/requirements-dev.lock",
    *(str(path.relative_to(ROOT)) for path in sorted((ROOT / ".ci").glob("*.lock"))),
    *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "tests").rglob("*.lock"))),
)


def entries(lock: str) -> list[str]:
    text = (ROOT / lock).read_text().replace("\\\n", " ")
    return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]


def names(lock: str) -> set[str]:
    return {normal(re.split(r"[= ;\[]", entry)[0]) for entry in entries(lock)}


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def requirement_names(requirements: list[str]) -> set[str]:
    return {normal(re.split(r"[<>=!\[; ]", requirement)[0]) for requirement in requirements}


@pytest.mark.parametrize("lock", LOCKS)
def test_every_entry_is_pinned_and_has_hashes(lock: str) -> None:
    for entry in entries(lock):
        assert "==" in entry, entry[:60]
        assert "--hash=sha256:" in entry, entry[:60]


def required(folder: str, *extras: str) -> set[str]:
    """Names of what a project of this tree requires, without those that are in the tree, too."""
    project = tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"]
    found = requirement_names(project["dependencies"])
    for extra in extras:
        found |= requirement_names(project["optional-dependencies"][extra])
    return found - {"ingestd-paimon"}


def test_locks_hold_all_dependencies() -> None:
    assert required("paimon", "hdfs") | required(".", "aws", "compare", "otel") <= names(
        "requirements.lock"
    )
    assert required("paimon", "dev") | required(".", "dev") <= names("requirements-dev.lock")
    assert required("paimon", "hdfs", "dev") <= names("paimon/requirements-dev.lock")


@pytest.mark.parametrize("lock", ["requirements.lock", "paimon/requirements-dev.lock"])
def test_all_tests_run_on_the_same_versions(lock: str) -> None:
    pins = {entry.split()[0] for entry in entries(lock)}
    assert pins <= {entry.split()[0] for entry in entries("requirements-dev.lock")}


def test_every_dependency_has_a_decision() -> None:
    """The first column of the policy's table, and where the last one leads."""
    policy = ROOT / "docs" / "adr" / "0007-dependency-policy.md"
    rows = [line.split("|")[1:-1] for line in policy.read_text().splitlines() if "|" in line][2:]
    decided = {name.strip() for first, *_ in rows for name in first.split(",")}
    declared = set()
    for folder in (".", "paimon"):
        project = tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"]
        declared |= requirement_names(project["dependencies"])
        for extra in project["optional-dependencies"].values():
            declared |= requirement_names(extra)
    assert {normal(name) for name in decided} == declared
    for *_, where in rows:
        page = re.search(r"\]\((.*?)\)", where)
        assert where.strip() == "here" or (page and (policy.parent / page[1]).exists()), where
