"""Workflows do nothing that `make` does not, and run no code of others that is not pinned."""

import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
GITHUB = ROOT / ".github"
FILES = sorted(GITHUB.rglob("*.yml"))
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))


def jobs(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text())["jobs"]
    return found


def commands(job: dict[str, Any]) -> Iterator[str]:
    """The commands of a job, each once for each value of its matrix."""
    ((key, values),) = job.get("strategy", {}).get("matrix", {"": [""]}).items()
    for step in job["steps"]:
        for value in values if "run" in step else ():
            yield step["run"].replace(f"${{{{ matrix.{key} }}}}", value)


def test_every_command_is_a_target_of_make() -> None:
    targets = set(re.findall(r"^\.PHONY: (\S+)", (ROOT / "Makefile").read_text(), re.MULTILINE))
    run = [
        command for path in WORKFLOWS for job in jobs(path).values() for command in commands(job)
    ]
    assert ".ci/run" in run
    others = [one.split() for one in run if one != ".ci/run"]
    assert {program for program, *_ in others} == {"make"}
    assert {target for _, target, *_ in others} <= targets


def test_every_part_of_the_long_tests_is_run_in_a_week() -> None:
    parts = set(jobs(GITHUB / "workflows" / "weekly.yml")["long"]["strategy"]["matrix"]["part"])
    long = {
        path.relative_to(ROOT / "tests").parts[0]
        for path in (ROOT / "tests").rglob("*.py")
        if re.search(r"INGESTD_LONG\b", path.read_text()) and path != Path(__file__)
    }
    assert long - {"support", "conftest.py", "house"} <= parts
    assert [part for part in parts if not (ROOT / "tests" / part).is_dir()] == []


def test_actions_of_others_are_pinned_by_commit() -> None:
    used = [
        line.partition("uses:")[2].strip()
        for path in FILES
        for line in path.read_text().splitlines()
        if "uses:" in line
    ]
    own = {one for one in used if one.startswith("./")}
    pinned = re.compile(r"[\w-]+/[\w-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+")
    assert [one for one in used if one not in own and not pinned.fullmatch(one)] == []
    assert [one for one in own if not (ROOT / one / "action.yml").is_file()] == []
    assert len({one.split("@")[0] for one in used}) == len(set(used)), "one version of each"


def test_only_the_job_that_publishes_may_write() -> None:
    writers = {}
    for path in WORKFLOWS:
        assert yaml.safe_load(path.read_text())["permissions"] == {"contents": "read"}, path.name
        for name, job in jobs(path).items():
            if "permissions" in job:
                writers[path.name, name] = job["needs"]
    assert writers == {("release.yml", "publish"): ["build", "macos"]}


def test_the_pythons_that_run_are_those_that_are_promised() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    oldest = project["requires-python"].removeprefix(">=")
    prefix = "Programming Language :: Python :: "
    promised = {
        classifier.removeprefix(prefix)
        for classifier in project["classifiers"]
        if re.match(prefix + r"3\.\d", classifier)
    }
    for workflow, job in (("tests.yml", "python"), ("weekly.yml", "suite")):
        run = jobs(GITHUB / "workflows" / workflow)[job]["strategy"]["matrix"]["python"]
        assert {oldest, *run} == promised, workflow


def test_actionlint_refuses_what_does_not_exist(tmp_path: Path) -> None:
    """Passed over by name where there is no actionlint and nothing to build it with."""
    broken = tmp_path / "broken.yml"
    broken.write_text((GITHUB / "workflows" / "nightly.yml").read_text().replace("matrix.t", "m.t"))
    judged = [
        subprocess.run(
            [ROOT / ".ci" / "workflows", *files], capture_output=True, text=True, check=False
        )
        for files in ([], [broken])
    ]
    if "not checked" in judged[0].stderr:
        pytest.skip(judged[0].stderr.strip())
    assert [(one.returncode, bool(one.stdout)) for one in judged] == [(0, False), (1, True)]
