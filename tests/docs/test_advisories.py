"""Documents of the OSV schema are applied to versions by the rules of their ecosystem."""

from typing import Any

import pytest

from docs.advisories import (
    CRATES,
    MAVEN,
    PYPI,
    Finding,
    IncomparableError,
    Part,
    concerned,
    crate_key,
    judge,
    maven_key,
    python_key,
)


def document(
    *events: dict[str, str], name: str = "one", ecosystem: str = PYPI, **more: Any
) -> dict[str, Any]:
    kind = "SEMVER" if ecosystem == CRATES else "ECOSYSTEM"
    affected = {
        "package": {"name": name, "ecosystem": ecosystem},
        "ranges": [{"type": kind, "events": list(events)}],
    }
    return {
        "id": "X-1",
        "modified": "2026-01-02T00:00:00Z",
        "summary": "Anybody may come in",
        "aliases": ["CVE-1"],
        "affected": [affected | more],
    }


def judged(version: str, written: dict[str, Any], ecosystem: str = PYPI) -> Finding | None:
    ((_, name, affected),) = concerned(written)
    return judge(Part(ecosystem, name, version, "a.lock"), written, affected)


def affected_of(versions: str, written: dict[str, Any], ecosystem: str = PYPI) -> list[str]:
    return [word for word in versions.split() if judged(word, written, ecosystem)]


def test_a_finding_names_the_part_the_advisory_and_the_first_fixed_version_after_it() -> None:
    written = document(
        {"introduced": "3.0"}, {"fixed": "3.4"}, {"introduced": "0"}, {"fixed": "2.7"}
    )
    found = judged("2.1", written)
    assert found is not None
    assert found.fixed == "2.7"
    assert str(found) == "one 2.1 (a.lock): X-1 CVE-1: fixed in 2.7: Anybody may come in"


def test_a_range_begins_with_what_introduced_it_and_ends_before_what_fixed_it() -> None:
    written = document(
        {"introduced": "1.2"}, {"fixed": "1.10"}, {"introduced": "2.0rc1"}, {"fixed": "2.0.1"}
    )
    assert affected_of("1.1 1.2 1.9 1.10 1.99 2.0rc1 2.0 2.0.1", written) == [
        "1.2",
        "1.9",
        "2.0rc1",
        "2.0",
    ]


def test_ranges_that_meet_are_one() -> None:
    written = document(
        {"introduced": "0"}, {"fixed": "3.1"}, {"introduced": "3.1"}, {"fixed": "3.2"}
    )
    assert affected_of("3.0 3.1 3.1.9 3.2", written) == ["3.0", "3.1", "3.1.9"]


def test_what_is_affected_last_is_affected() -> None:
    written = document({"introduced": "0"}, {"last_affected": "1.5"})
    assert affected_of("0.1 1.5 1.5.1", written) == ["0.1", "1.5"]
    found = judged("1.5", written)
    assert found is not None
    assert "no fixed version is known" in str(found)
    alone = document({"introduced": "1.5"}, {"last_affected": "1.5"})
    assert affected_of("1.4 1.5 1.6", alone) == ["1.5"]


@pytest.mark.parametrize(("end", "found"), [("<= 1.5", ["0.1", "1.5"]), ("< 1.5", ["0.1"])])
def test_an_end_that_is_written_beside_the_range_counts(end: str, found: list[str]) -> None:
    beside = {"last_known_affected_version_range": end}
    written = document({"introduced": "0"}, database_specific=beside)
    assert affected_of("0.1 1.5 1.5.1", written) == found


def test_a_version_may_be_listed_instead() -> None:
    assert affected_of("1.0 1.1", document(ranges=[], versions=["1.1"])) == ["1.1"]


def test_withdrawn_advisories_concern_nobody() -> None:
    written = document({"introduced": "0"})
    assert list(concerned(written))
    assert list(concerned(written | {"withdrawn": "2026-02-01T00:00:00Z"})) == []


def test_names_of_python_are_normalised_and_those_of_others_are_not() -> None:
    def name(written: str, ecosystem: str) -> str:
        ((_, found, _),) = concerned(document(name=written, ecosystem=ecosystem))
        return found

    assert name("Zope.Interface__x", PYPI) == "zope-interface-x"
    assert name("once_cell", CRATES) == "once_cell"
    assert name("org.a:B_2.13", MAVEN) == "org.a:B_2.13"


def test_ranges_of_commits_say_nothing_of_versions() -> None:
    commits = [{"type": "GIT", "events": [{"introduced": "0"}]}]
    assert judged("1.0", document(ranges=commits)) is None


@pytest.mark.parametrize(
    ("key", "ascending"),
    [
        (python_key, "1.0.dev1 1.0a1 1.0rc2 1.0 1.0.post1 1.9 1.10"),
        (crate_key, "0.9.9 1.0.0-alpha 1.0.0-alpha.1 1.0.0-alpha.beta 1.0.0-rc.2 1.0.0 1.0.10"),
        (
            maven_key,
            "1.0-alpha-1 1.0-beta2 1.0-M1 1.0-cr1 1.0-SNAPSHOT 1.0 1.0-sp1 1.0-jre 1.0.1 1.9 1.10",
        ),
    ],
)
def test_versions_ascend(key: Any, ascending: str) -> None:
    keys = [key(word) for word in ascending.split()]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys)


def test_some_versions_of_maven_are_the_same() -> None:
    same = {maven_key(one) for one in ("1", "1.0", "1.0.0", "1.0.Final", "1-ga", "1.0.0.RELEASE")}
    assert len(same) == 1


@pytest.mark.parametrize(
    ("key", "text"), [(python_key, "1.0-any"), (crate_key, "new"), (maven_key, "latest")]
)
def test_what_cannot_be_compared_is_reported(key: Any, text: str) -> None:
    with pytest.raises(IncomparableError, match=text):
        key(text)
