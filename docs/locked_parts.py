"""Everything that ingestd, its image and what builds it bring along, by the files that lock them.

Python packages and crates are those of the lock files. The jars of PySpark say themselves what they
are made of, shaded parts included; one that does not is known by its file, without a group.
"""

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

from docs.advisories import CRATES, MAVEN, PYPI, Part
from docs.sbom import ROOT, crate_components, python_components

LOCKS = (
    "requirements.lock",
    "requirements-dev.lock",
    "requirements-build.lock",
    ".ci/audit.lock",
    ".ci/release.lock",
    ".ci/site.lock",
)
PINS = ("ingestd/dev/kafka_jars.txt",)
UNKNOWN_GROUP = "?"
_OWN_NOTE = re.compile(r"META-INF/maven/[^/]+/[^/]+/pom\.properties")
_FILE = re.compile(r"(?P<name>.+?)-(?P<version>\d[^/]*)\.jar")


def locked_parts(root: Path = ROOT) -> list[Part]:
    """Packages, crates and pinned jars, each once for each version."""
    found = [
        Part(PYPI, python_component["name"], python_component["version"], lock)
        for lock in LOCKS
        for python_component in python_components((root / lock).read_text(encoding="utf-8"))
    ]
    crates = "native/Cargo.lock"
    found += [
        Part(CRATES, crate_component["name"], crate_component["version"], crates)
        for crate_component in crate_components((root / crates).read_text(encoding="utf-8"))
    ]
    found += [part for pins in PINS for part in _pinned(root / pins, pins)]
    return _once(found)


def jar_parts(folder: Path) -> list[Part]:
    """What the jars of a folder are made of."""
    return _once([part for jar in sorted(folder.glob("*.jar")) for part in _inside(jar)])


def _once(parts: list[Part]) -> list[Part]:
    first: dict[tuple[str, str, str], Part] = {}
    for part in parts:
        first.setdefault((part.ecosystem, part.name, part.version), part)
    return list(first.values())


def _pinned(path: Path, name: str) -> Iterator[Part]:
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            group, artifact, version = line.split()[0].split(":")[:3]
            yield Part(MAVEN, f"{group}:{artifact}", version, name)


def _inside(jar: Path) -> Iterator[Part]:
    by_file = _FILE.fullmatch(jar.name)
    named = False
    with zipfile.ZipFile(jar) as archive:
        for note in filter(_OWN_NOTE.fullmatch, archive.namelist()):
            lines = archive.read(note).decode("utf-8", "replace").splitlines()
            told = dict(line.split("=", 1) for line in lines if re.match(r"\w+=", line))
            if {"groupId", "artifactId", "version"} <= told.keys():
                artifact, version = told["artifactId"].strip(), told["version"].strip()
                yield Part(MAVEN, f"{told['groupId'].strip()}:{artifact}", version, jar.name)
                named = named or (by_file is not None and by_file["name"] == artifact)
    if by_file is not None and not named:
        yield Part(MAVEN, f"{UNKNOWN_GROUP}:{by_file['name']}", by_file["version"], jar.name)
