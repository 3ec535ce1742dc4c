"""Advisories about vulnerabilities: documents of the OSV schema, and which versions they concern.

Three kinds of versions are compared: those of Python (PEP 440), of crates (SemVer) and of Maven.
An entry of a database that cannot be compared is reported, never skipped.

Specification: OSV schema 1.7, "affected[].ranges[].events", "affected[].versions", "withdrawn".
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from packaging.version import InvalidVersion, Version

PYPI, CRATES, MAVEN = "PyPI", "crates.io", "Maven"
_TOKEN = re.compile(r"\d+|[a-z]+")
_SEMVER = re.compile(r"v?(\d+)(?:\.(\d+))?(?:\.(\d+))?(?:-([0-9A-Za-z.-]+))?(?:\+.*)?")
_QUALIFIERS = ["alpha", "beta", "milestone", "rc", "snapshot", "", "sp"]
_SAME = {"a": "alpha", "b": "beta", "m": "milestone", "cr": "rc"} | dict.fromkeys(
    ("final", "ga", "release"), ""
)
_LAST_KNOWN = re.compile(r"(<=?)\s*(\S+)$")
_RANK = {"fixed": 0, "introduced": 1, "last_affected": 2}
"""At one version a range ends before the next begins, and what is affected last begins before."""

Document = Mapping[str, Any]


class IncomparableError(ValueError):
    """A version that the rules of its ecosystem cannot compare."""


@dataclass(frozen=True, slots=True)
class Part:
    """One locked package, crate or jar, and where it is named."""

    ecosystem: str
    name: str
    version: str
    where: str


@dataclass(frozen=True, slots=True)
class Finding:
    """An advisory that concerns a part; `fixed` is None where no version is said to be better."""

    part: Part
    advisory: str
    aliases: tuple[str, ...]
    summary: str
    fixed: str | None

    def __str__(self) -> str:
        """One line for people."""
        names = " ".join((self.advisory, *self.aliases))
        fixed = f"fixed in {self.fixed}" if self.fixed else "no fixed version is known"
        part = f"{self.part.name} {self.part.version} ({self.part.where})"
        return f"{part}: {names}: {fixed}: {self.summary}"


def is_advisory(document: object) -> bool:
    """Whether a parsed file is a document of the OSV schema."""
    return isinstance(document, dict) and {"id", "modified", "affected"} <= document.keys()


def concerned(document: Document) -> Iterator[tuple[str, str, Document]]:
    """Ecosystem, normalised name and `affected` entry of each package; none if withdrawn."""
    if document.get("withdrawn"):
        return
    for affected in document["affected"] or ():
        package = affected.get("package") or {}
        ecosystem = str(package.get("ecosystem", "")).partition(":")[0]
        if ecosystem in _KEYS:
            yield ecosystem, normalised(ecosystem, str(package["name"])), affected


def normalised(ecosystem: str, name: str) -> str:
    """A name as its ecosystem compares it; for Python PEP 503."""
    return re.sub(r"[-_.]+", "-", name).lower() if ecosystem == PYPI else name


def judge(part: Part, document: Document, affected: Document) -> Finding | None:
    """What a document says of a part; IncomparableError when that cannot be known."""
    key = _KEYS[part.ecosystem]
    listed = {str(one) for one in affected.get("versions") or ()}
    hit = part.version in listed
    fixes: list[str] = []
    for one in affected.get("ranges") or ():
        if one.get("type") in {"ECOSYSTEM", "SEMVER"}:
            events = _events(one["events"], affected)
            hit = _within(key, part.version, events) or hit
            fixes += [text for kind, text in events if kind == "fixed"]
    if not hit:
        return None
    later = sorted((text for text in fixes if key(text) > key(part.version)), key=key)
    aliases = tuple(str(one) for one in document.get("aliases") or ())
    said = str(document.get("summary") or document.get("details") or "").strip()
    return Finding(
        part, str(document["id"]), aliases, said.partition("\n")[0][:160], (*later, None)[0]
    )


def _events(written: Sequence[Mapping[str, str]], affected: Document) -> list[tuple[str, str]]:
    """Kinds and versions; GitHub writes an end that is no fix beside the range."""
    events = [(kind, str(text)) for one in written for kind, text in one.items()]
    if {kind for kind, _ in events} == {"introduced"}:
        beside = (affected.get("database_specific") or {}).get("last_known_affected_version_range")
        end = _LAST_KNOWN.search(beside or "")
        if end:
            events.append(("last_affected" if end[1] == "<=" else "fixed", end[2]))
    return [event for event in events if event[0] in _RANK]


def _within(key: Callable[[str], Any], version: str, events: list[tuple[str, str]]) -> bool:
    def place(event: tuple[str, str]) -> tuple[bool, Any, int]:
        kind, text = event
        always = kind == "introduced" and text == "0"
        return (False, 0, 0) if always else (True, key(text), _RANK[kind])

    asked, inside = key(version), False
    for kind, text in sorted(events, key=place):
        if kind == "introduced":
            inside = inside or text == "0" or asked >= key(text)
        elif kind == "fixed":
            inside = inside and asked < key(text)
        else:
            inside = inside and asked <= key(text)
    return inside


def python_key(text: str) -> Version:
    """Of PEP 440, by the library that pip uses."""
    try:
        return Version(text)
    except InvalidVersion as error:
        raise IncomparableError(f"no version of PEP 440: {text!r}") from error


def crate_key(text: str) -> tuple[Any, ...]:
    """Of SemVer: a pre-release comes before its release, its numbers before its words."""
    found = _SEMVER.fullmatch(text)
    if found is None:
        raise IncomparableError(f"no semantic version: {text!r}")
    numbers = tuple(int(group or 0) for group in found.groups()[:3])
    words = found[4].split(".") if found[4] else []
    prerelease = tuple((0, int(word), "") if word.isdigit() else (1, 0, word) for word in words)
    return (*numbers, not words, prerelease)


def maven_key(text: str) -> tuple[tuple[int, int, str], ...]:
    """Of Maven: numbers after releases after pre-releases; trailing zeros say nothing.

    Unknown words come after a release and before numbers. Specification: Maven, "Version Order
    Specification", without its difference between hyphens and dots.
    """
    if not any(dead_letter.isdigit() for dead_letter in text):
        raise IncomparableError(f"no version of Maven: {text!r}")
    found: list[tuple[int, int, str]] = []
    for token in _TOKEN.findall(text.lower()):
        word = _SAME.get(token, token)
        if word.isdigit():
            found.append((2, int(word), ""))
            continue
        _trim(found)
        found.append((0, _QUALIFIERS.index(word), "") if word in _QUALIFIERS else (1, 0, word))
    _trim(found)
    return (*found, _RELEASE)


def _trim(found: list[tuple[int, int, str]]) -> None:
    while found and found[-1] in {_ZERO, _RELEASE}:
        found.pop()


_ZERO, _RELEASE = (2, 0, ""), (0, _QUALIFIERS.index(""), "")
_KEYS: dict[str, Callable[[str], Any]] = {
    PYPI: python_key,
    CRATES: crate_key,
    MAVEN: maven_key,
}
