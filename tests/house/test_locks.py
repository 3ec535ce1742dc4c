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
    ".ci/audit.lock",
    ".ci/site.lock",
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


def test_locks_hold_all_dependencies() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    runtime = requirement_names(project["dependencies"])
    assert runtime <= names("requirements.lock")
    development = requirement_names(project["optional-dependencies"]["dev"])
    assert runtime | development <= names("requirements-dev.lock")


def test_tests_run_on_the_versions_that_are_shipped() -> None:
    pins = {entry.split()[0] for entry in entries("requirements.lock")}
    assert pins <= {entry.split()[0] for entry in entries("requirements-dev.lock")}
