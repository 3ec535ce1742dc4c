"""`make audit ADVISORIES=FOLDER`: planted vulnerabilities are named, and silence is no pass."""

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from docs.advisories import CRATES, MAVEN, PYPI, Part
from docs.audit import Verdict, audit, main, read_database, report
from docs.locked_parts import locked_parts

TODAY = date(2026, 3, 1)
PARTS = [
    Part(PYPI, "one-two", "1.0", "a.lock"),
    Part(CRATES, "c", "0.1.0", "Cargo.lock"),
    Part(MAVEN, "org.m:m", "3", "m-3.jar"),
    Part(MAVEN, "?:n", "4", "n-4.jar"),
]


def advisory(
    ecosystem: str, name: str, fixed: str, modified: str = "2026-02-20T00:00:00Z"
) -> dict[str, Any]:
    events = [{"introduced": "0"}, {"fixed": fixed}]
    affected = {
        "package": {"ecosystem": ecosystem, "name": name},
        "ranges": [{"type": "ECOSYSTEM", "events": events}],
    }
    return {
        "id": f"ID-{name}",
        "modified": modified,
        "summary": "Bad",
        "affected": [affected],
    }


def plant(folder: Path, *documents: dict[str, Any], suffix: str = ".json") -> Path:
    folder.mkdir(exist_ok=True)
    for number, document in enumerate(documents):
        text = json.dumps(document) if suffix == ".json" else yaml.safe_dump(document)
        (folder / f"{len(list(folder.iterdir()))}-{number}{suffix}").write_text(text)
    return folder


def fresh(folder: Path) -> Path:
    """One advisory of each ecosystem that concerns no one."""
    return plant(
        folder,
        advisory(PYPI, "else", "2"),
        advisory(CRATES, "else", "2.0.0"),
        advisory(MAVEN, "org:else", "2"),
    )


def verdict(folder: Path) -> Verdict:
    return audit(PARTS, read_database([folder]), TODAY)


def test_advisories_that_concern_nothing_are_a_pass(tmp_path: Path) -> None:
    database = read_database([fresh(tmp_path)])
    found = audit(PARTS, database, TODAY)
    assert (found.code, found.unclear) == (0, [])
    lines = list(report(PARTS, database, found))
    assert lines[0] == "PyPI: 1 parts, 1 advisories, the newest of 2026-02-20"
    assert lines[-1] == "no known vulnerability"


@pytest.mark.parametrize("suffix", [".json", ".yaml"])
def test_planted_vulnerabilities_are_named_with_what_fixes_them(
    tmp_path: Path, suffix: str
) -> None:
    planted = [
        advisory(PYPI, "One_Two", "1.1"),
        advisory(CRATES, "c", "0.1.1"),
        advisory(MAVEN, "org.m:m", "3.0.1"),
        advisory(MAVEN, "anybody:n", "5"),
    ]
    found = verdict(plant(fresh(tmp_path), *planted, suffix=suffix))
    assert found.code == 1
    assert [str(finding) for finding in found.findings] == [
        "one-two 1.0 (a.lock): ID-One_Two: fixed in 1.1: Bad",
        "c 0.1.0 (Cargo.lock): ID-c: fixed in 0.1.1: Bad",
        "org.m:m 3 (m-3.jar): ID-org.m:m: fixed in 3.0.1: Bad",
        "?:n 4 (n-4.jar): ID-anybody:n: fixed in 5: Bad",
    ]


def test_fixed_versions_and_other_groups_are_no_findings(tmp_path: Path) -> None:
    others = [advisory(PYPI, "one.two", "1.0"), advisory(MAVEN, "org.other:m", "9")]
    assert verdict(plant(fresh(tmp_path), *others)).code == 0


def test_old_advisories_are_no_pass_and_say_of_when_they_are(tmp_path: Path) -> None:
    old = "2025-10-10T00:00:00Z"
    plant(tmp_path, advisory(CRATES, "else", "2.0.0"), advisory(MAVEN, "org:else", "2"))
    found = verdict(plant(tmp_path, advisory(PYPI, "else", "2", old)))
    assert found.code == 3
    assert found.unclear == ["anything of PyPI since 2025-10: its newest advisory is of 2025-10-10"]
    assert verdict(plant(tmp_path, advisory(PYPI, "one-two", "2", old))).code == 1


def test_an_ecosystem_without_advisories_is_no_pass(tmp_path: Path) -> None:
    found = verdict(plant(tmp_path, advisory(PYPI, "else", "2"), advisory(CRATES, "e", "2.0.0")))
    assert (found.code, found.unclear) == (3, ["no advisories of Maven"])


def test_what_cannot_be_read_or_compared_is_no_pass(tmp_path: Path) -> None:
    (fresh(tmp_path) / "torn.json").write_text('{"id": ')
    plant(tmp_path, advisory(PYPI, "one-two", "the next"))
    (tmp_path / "settings.yml").write_text("on: push\n")
    found = verdict(tmp_path)
    assert found.code == 3
    assert [one.partition(":")[0] for one in found.unclear] == [
        f"{tmp_path}/torn.json cannot be read",
        "one-two 1.0, ID-one-two",
    ]


def test_a_vulnerability_of_what_is_locked_ends_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (spark,) = (locked_part for locked_part in locked_parts() if locked_part.name == "pyspark")
    plant(tmp_path, advisory(PYPI, "PySpark", f"{spark.version}.1"))
    assert main([str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert f"pyspark {spark.version} (requirements.lock): ID-PySpark: fixed in" in said
    assert "no advisories of Maven" in said


@pytest.mark.parametrize("folders", [[], ["/nowhere/at/all"]])
def test_no_folder_is_no_pass(folders: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(folders) == 3
    assert "no folder of advisories" in capsys.readouterr().err
